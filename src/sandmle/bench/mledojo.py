"""MLE-Dojo's layout: boards, ranks, and its competitions as task folders where that is possible.

A competition is a folder with `public/` (description.txt, sample_submission.csv and the data) and
`private/` (test_answer.csv, and what boards there are: `private_leaderboard.csv` and
`public_leaderboard.csv`, whose second column is the score).
"""

from pathlib import Path
from typing import Any, NamedTuple

from sandmle.bench.boards import read_board
from sandmle.bench.humanrank import Variant, human_rank, mean_human_rank, require_direction
from sandmle.errors import UsageError
from sandmle.grading.grader import read_answers, score
from sandmle.metrics.registry import METRICS
from sandmle.tasks.submission import Invalid, read_table
from sandmle.types import Direction

BOARDS = ("private", "public")
_SCORE = 1  # boards are read by position


class DojoCompetition(NamedTuple):
    """A competition of MLE-Dojo on disk."""

    root: Path

    @property
    def name(self) -> str:
        """Return its name, that of the folder."""
        return self.root.name

    @property
    def answers(self) -> Path:
        """Return the hidden answers."""
        return self.root / "private" / "test_answer.csv"

    def boards(self) -> dict[str, list[float]]:
        """Return the boards that there are."""
        found = {which: self.root / "private" / f"{which}_leaderboard.csv" for which in BOARDS}
        return {
            which: read_board(path, column=_SCORE)
            for which, path in found.items()
            if path.is_file()
        }


class DojoGrade(NamedTuple):
    """A score with its position scores by board, their mean, or why there is none."""

    score: float | None
    positions: dict[str, float]
    human_rank: float | None
    reason: str = ""


def open_competition(root: Path) -> DojoCompetition:
    """Open a folder; `UsageError` names what is missing."""
    for part in (
        "public/description.txt",
        "public/sample_submission.csv",
        "private/test_answer.csv",
    ):
        if not (root / part).is_file():
            raise UsageError(f"{root / part}: missing; this is no prepared MLE-Dojo competition")
    return DojoCompetition(root)


def rank_score(
    value: float | None, one: DojoCompetition, direction: Direction, variant: Variant = "code"
) -> DojoGrade:
    """Return the HumanRank of a score; a metric that disagrees with its board is refused.

    No score, or NaN, is behind everybody: 0.
    """
    boards = one.boards()
    for which, board in boards.items():
        require_direction(board, direction, f"{one.name}, {which} leaderboard")
    ranks = {which: human_rank(value, board, direction, variant) for which, board in boards.items()}
    mean = mean_human_rank(value, list(boards.values()), direction, variant)
    return DojoGrade(value, ranks, mean)


def grade_dojo(
    data: bytes | None,
    one: DojoCompetition,
    metric: str,
    variant: Variant = "code",
    params: dict[str, Any] | None = None,
) -> DojoGrade:
    """Check and score a submission with one of our metrics, and rank it.

    Ids are the first column of the answers, as there, the others are the targets. What MLE-Dojo
    lets through (a row left empty, probabilities that do not add up) is invalid here.
    """
    chosen = METRICS.get(metric)
    if data is None:
        return rank_score(None, one, chosen.direction, variant)._replace(reason="no submission")
    table = read_table(one.answers.read_bytes())
    key, *names = table.header
    label = chosen.kind.name == "label"
    classes = tuple(sorted({*table.column(names[0])})) if label else tuple(names)
    schema = chosen.schema(key, names[0], classes, len(table.rows), params).model_dump()
    hidden = read_answers(one.answers.read_bytes(), one.answers.name, schema, None)
    whole = {**chosen.params, **(params or {})}
    try:
        value = score(data, schema, hidden, chosen.kind.arrays, chosen.function, whole)
    except Invalid as error:
        return rank_score(None, one, chosen.direction, variant)._replace(reason=str(error))
    return rank_score(value, one, chosen.direction, variant)


def list_competitions(root: Path) -> list[DojoCompetition]:
    """Return the prepared competitions of a data directory, by name."""
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder")
    found = [
        DojoCompetition(folder)
        for folder in sorted(root.iterdir())
        if (folder / "private" / "test_answer.csv").is_file()
    ]
    if not found:
        raise UsageError(f"{root}: holds no prepared MLE-Dojo competition")
    return found
