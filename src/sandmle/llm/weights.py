"""Where the weights are that a path names: a folder of a model, a checkpoint, or a training run."""

import re
from pathlib import Path

from sandmle.errors import UsageError

BEST = "best"  # a file beside the checkpoints of a run that names the best of them
_NAME = re.compile(r"step-(\d{6,})")


def checkpoint_steps(checkpoints: Path) -> list[int]:
    """Return the steps of the checkpoints in a folder, in order; none if it is not there."""
    names = [path.name for path in checkpoints.iterdir()] if checkpoints.is_dir() else []
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def checkpoint_path(checkpoints: Path, step: int) -> Path:
    """Return where the checkpoint after a step lies."""
    return checkpoints / f"step-{step:06d}"


def weights_folder(path: Path) -> Path:
    """Return the folder of weights that a path names.

    A run folder stands for its best checkpoint, or the last one if none was validated, and
    `RUN/checkpoints/best` for the one that it names. Raises `UsageError` if there is none.
    """
    checkpoints = path / "checkpoints"
    if steps := checkpoint_steps(checkpoints):
        best = checkpoints / BEST
        path = best if best.is_file() else checkpoint_path(checkpoints, steps[-1])
    if path.name == BEST and path.is_file():
        path = path.parent / path.read_text(encoding="utf-8").strip()
    if not (path / "config.json").is_file():
        adapter = (path / "adapter_config.json").is_file()
        what = "a LoRA adapter; merge it into its model first" if adapter else "no model"
        raise UsageError(f"{path}: holds {what}")
    return path.absolute()
