"""MLE-bench's medal rule, as its grader has it (openai/mle-bench at 783b15af, `rank_score`).

A board is taken in the order of its file, best first, and never sorted. The score is rounded to
five places, the thresholds are not: 0.9305084 counts as 0.93051.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from sandmle.errors import UsageError

DIGITS = 5


class Thresholds(NamedTuple):
    """The scores that medals take, and the board's median."""

    gold: float
    silver: float
    bronze: float
    median: float
    lower_is_better: bool


class Medal(NamedTuple):
    """What a score is worth: at most one medal, and whether it beats the median."""

    gold: bool
    silver: bool
    bronze: bool
    above_median: bool

    @property
    def any(self) -> bool:
        """Return whether there is a medal."""
        return self.gold or self.silver or self.bronze


def positions(teams: int) -> tuple[int, int, int]:
    """Return the places, from 1, of the last gold, silver and bronze medal.

    >>> positions(99), positions(100), positions(250), positions(1000)
    ((9, 19, 39), (10, 20, 40), (10, 50, 100), (12, 50, 100))
    """
    if teams < 1:
        raise UsageError("a leaderboard without teams has no medals")
    gold = 10 + int(teams * 0.002) if teams >= 250 else 10
    if teams < 100:
        gold = max(1, int(teams * 0.1))
    if teams < 250:
        return gold, max(1, int(teams * 0.2)), max(1, int(teams * 0.4))
    if teams < 1000:
        return gold, 50, 100
    return gold, int(teams * 0.05), int(teams * 0.1)


def thresholds(board: Sequence[float]) -> Thresholds:
    """Return the thresholds of a board.

    Lower is better if the first score is below the last one; if they are equal, higher is.
    """
    gold, silver, bronze = (board[place - 1] for place in positions(len(board)))
    return Thresholds(gold, silver, bronze, float(median(board)), board[0] < board[-1])


def rank(score: float | None, levels: Thresholds) -> Medal:
    """Judge a score, rounded already: ties win a medal, and beat no median; NaN wins nothing."""
    if score is None or math.isnan(score):
        return Medal(False, False, False, False)
    sign = -1 if levels.lower_is_better else 1
    at_least = [sign * score >= sign * level for level in (levels.gold, levels.silver)]
    gold = at_least[0]
    silver = not gold and at_least[1]
    bronze = not gold and not silver and sign * score >= sign * levels.bronze
    return Medal(gold, silver, bronze, sign * score > sign * levels.median)
