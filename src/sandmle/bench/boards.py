"""Leaderboards from the user's own files; what is no board, or not all of it, is refused."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from sandmle.errors import UsageError

_POINTER = b"version https://git-lfs.github.com/spec/"
# what the listing of Kaggle gives where the board has hundreds: the first page
FIRST_PAGE = 20
_LEAST = 0.5  # share of the known teams; boards that were edited lack a few, never half


def read_board(path: Path, teams: int | None = None, column: str | int = "score") -> list[float]:
    """Return the scores of a leaderboard in the order of its file, best first.

    `teams` is how many teams it is known to have. `column` is a name, or a position for boards that
    are read by it. Raises `UsageError` with the fix for a Git LFS pointer, a board that is far too
    short, and whatever is not a column of finite numbers.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the leaderboard cannot be read ({error.strerror})") from None
    if data.startswith(_POINTER):
        raise UsageError(
            f"{path}: is a Git LFS pointer, not the leaderboard; run `git lfs pull` in the "
            "repository it comes from"
        )
    scores = _numbers(path, data, column)
    least = FIRST_PAGE + 1 if teams is None else math.ceil(_LEAST * teams)
    if teams is not None and len(scores) < least:
        raise UsageError(
            f"{path}: has {len(scores)} teams, the board of this competition about {teams}; it "
            "looks like the first page only: restore the file that came with the benchmark"
        )
    return scores


def _numbers(path: Path, data: bytes, column: str | int) -> list[float]:
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: is no CSV file: {error}") from None
    header, body = (rows[0], [row for row in rows[1:] if row]) if rows else ([], [])
    place = _place(path, header, column)
    if not body:
        raise UsageError(f"{path}: the leaderboard has no teams")
    found = []
    for number, row in enumerate(body, start=2):
        try:
            found.append(float(row[place]))
        except (ValueError, IndexError):
            raise UsageError(f"{path}, row {number}: there is no score") from None
        if not math.isfinite(found[-1]):
            raise UsageError(f"{path}, row {number}: {row[place]!r} is no score")
    return found


def _place(path: Path, header: Sequence[str], column: str | int) -> int:
    if isinstance(column, int):
        if len(header) <= column:
            raise UsageError(f"{path}: has {len(header)} columns; the score is column {column + 1}")
        return column
    if column not in header:
        raise UsageError(f"{path}: the leaderboard has no column {column!r}")
    return header.index(column)
