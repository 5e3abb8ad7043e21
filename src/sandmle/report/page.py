"""One self-contained HTML page of a run. What agents wrote is text on it, never markup."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from sandmle.errors import TaskError, UsageError
from sandmle.files import read_lines, write_atomic
from sandmle.types import MILESTONES, REWARD_PARTS, RunManifest, Trajectory, first_fault

T = TypeVar("T")


def write_page(run: Path, out: Path | None = None) -> Path:
    """Write the page of a run folder and return its path; `UsageError` if there is no run."""
    if not (run / "run.json").is_file():
        raise UsageError(f"{run}: holds no run; `sandmle rollout` and `sandmle train` make one")
    manifest = _parse(run / "run.json", RunManifest.model_validate_json)[0]
    played = _parse(run / "trajectories.jsonl", Trajectory.model_validate_json)
    trajectories = {trajectory.id: trajectory for trajectory in played}
    summary = _parse(run / "summary.json", json.loads)
    path = out or run / "page.html"
    page = (
        environment()
        .get_template("run.html.j2")
        .render(
            manifest=manifest,
            trajectories=[trajectories[name] for name in sorted(trajectories)],
            summary=summary[0] if summary else None,
            steps=_parse(run / "metrics.jsonl", json.loads),
            milestones=MILESTONES,
            parts=REWARD_PARTS,
        )
    )
    try:
        write_atomic(path, page)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def _parse(path: Path, parse: Callable[[str], T]) -> list[T]:
    """Parse each line of a `.jsonl` file, another file as a whole; nothing if it is not there."""
    if not path.exists():
        return []
    try:
        texts = read_lines(path) if path.suffix == ".jsonl" else [path.read_text(encoding="utf-8")]
        return [parse(text) for text in texts]
    except ValueError as error:
        reason = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise TaskError(f"{path}: {reason}") from None


def environment() -> Environment:
    """Return what pages are rendered with: values are escaped, names must exist."""
    environment = Environment(
        loader=PackageLoader("sandmle.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = lambda value: "–" if value is None else f"{value:.3g}"
    return environment
