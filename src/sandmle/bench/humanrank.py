"""HumanRank: the share of a leaderboard that a score beats, in two variants.

`code` is what MLE-Dojo does at 667a8fd0: (N - p + 1) / N with p the first place whose score is no
better, so a tie takes the best of the tied places. `paper` is what it and SandMLE write: 1 - p / N,
smaller by 1 / N. Behind everybody is 0 either way. Where there is a public and a private board,
the two are averaged.
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from sandmle.errors import UsageError
from sandmle.types import Direction

Variant = Literal["code", "paper"]


def place(score: float | None, board: Sequence[float], direction: Direction) -> int:
    """Return the place that a score takes, from 1 to len(board) + 1; NaN comes last."""
    if not board:
        raise UsageError("a leaderboard without teams has no places")
    if score is None or math.isnan(score):
        return len(board) + 1
    sign = 1 if direction == "max" else -1
    ordered = sorted((sign * one for one in board), reverse=True)
    return next((n for n, one in enumerate(ordered, 1) if sign * score >= one), len(board) + 1)


def human_rank(
    score: float | None, board: Sequence[float], direction: Direction, variant: Variant = "code"
) -> float:
    """Return the position score on one board, from 0 to 1."""
    teams, taken = len(board), place(score, board, direction)
    shift = 1 if variant == "code" else 0
    return max(0.0, (teams - taken + shift) / teams)


def mean_human_rank(
    score: float | None,
    boards: Sequence[Sequence[float]],
    direction: Direction,
    variant: Variant = "code",
) -> float | None:
    """Return the mean over the boards that there are; None without any."""
    ranks = [human_rank(score, board, direction, variant) for board in boards]
    return fmean(ranks) if ranks else None


def require_direction(board: Sequence[float], direction: Direction, where: str) -> None:
    """Refuse a board that is sorted the other way round than its metric counts."""
    first, last = board[0], board[-1]
    if first != last and (first < last) != (direction == "min"):
        said = "lower" if direction == "min" else "higher"
        raise UsageError(f"{where}: {said} is better by the metric, the board is the other way")
