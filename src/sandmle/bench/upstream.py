"""The user's own installation of openai/mle-bench: its graders, called as they are."""

import importlib
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sandmle.bench.strict import Scored
from sandmle.errors import GradingError, MissingExtraError

# it is on no package index; its boards are Git LFS files
_INSTALL = (
    "git clone https://github.com/openai/mle-bench && git -C mle-bench lfs pull && "
    "pip install -e mle-bench"
)


def package_boards() -> Path | None:
    """Return the folder that has a board for each competition, if mlebench is installed."""
    found = find_spec("mlebench")
    places = list(found.submodule_search_locations or []) if found else []
    return Path(places[0]) / "competitions" if places else None


def require_upstream() -> None:
    """Raise `MissingExtraError`, with what to do, unless mlebench can be imported."""
    _module("mlebench.utils")


@cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(f"mlebench cannot be imported ({error}): {_INSTALL}") from None


def upstream_score(name: str, answers_path: Path, data: bytes) -> Scored:
    """Score with the competition's own grader, bug for bug: NaN and all; unrounded.

    Every exception of the grader makes the submission invalid there, so it does here. What it
    cannot read as answers is a `GradingError`.
    """
    utils, boards = _module("mlebench.utils"), package_boards()
    try:
        config = utils.load_yaml(Path(boards or "") / name / "config.yaml")
        grade = utils.import_fn(config["grader"]["grade_fn"])
    except Exception as error:
        raise GradingError(f"mlebench has no usable grader of {name}: {error}") from None
    try:
        answers = utils.load_answers(answers_path)
    except Exception as error:
        raise GradingError(f"{answers_path}: {type(error).__name__}: {error}") from None
    with tempfile.TemporaryDirectory(prefix="sandmle-") as folder:
        path = Path(folder) / "submission.csv"
        path.write_bytes(data)
        try:
            return Scored(float(grade(utils.read_csv(path), answers)))
        except Exception as error:
            return Scored(None, f"{type(error).__name__}: {error}")
