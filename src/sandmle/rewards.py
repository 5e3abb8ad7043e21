"""From a grade to a training scalar.

    total = sum of weight * part        parts: format, execute, median, bronze, silver, gold, skill

`format` is the share of replies in the asked form, `execute` whether there is a valid submission,
the milestones whether its score reaches them. In `exclusive` mode only the best milestone counts;
in `continuous` mode `skill`, the way from the floor to gold within [0, 1], takes their place.
"""

import math
from collections.abc import Iterable, Mapping

from sandmle.config import RewardSection
from sandmle.errors import UsageError
from sandmle.registry import nearest
from sandmle.types import MILESTONES, REWARD_PARTS, Grade, Reward, RewardRule, TaskCard

PRESETS: Mapping[str, RewardRule] = {
    # arXiv 2604.04872, section 5.1
    "paper": RewardRule(
        mode="cumulative",
        weights={
            "format": 0.1,
            "execute": 0.3,
            "median": 0.1,
            "bronze": 0.2,
            "silver": 0.2,
            "gold": 0.1,
        },
    ),
    # arXiv 2604.04872, section 6.2
    "sparse": RewardRule(mode="cumulative", weights={"format": 0.1, "gold": 0.9}),
    # the code that the paper's authors released (Tonyzhou98/SandMLE, August 2026)
    "release": RewardRule(
        mode="exclusive",
        weights={
            "format": 0.1,
            "execute": 0.2,
            "median": 0.1,
            "bronze": 0.5,
            "silver": 0.6,
            "gold": 0.7,
        },
    ),
    # ours: the paper's weights with the four steps made one slope
    "continuous": RewardRule(
        mode="continuous", weights={"format": 0.1, "execute": 0.3, "skill": 0.6}
    ),
}


def reward_rule(section: RewardSection) -> RewardRule:
    """Return the rule that a configuration asks for; `UsageError` for an unknown preset."""
    if section.mode is not None and section.weights is not None:
        return RewardRule(mode=section.mode, weights=section.weights)
    if section.preset not in PRESETS:
        raise UsageError(
            f"unknown reward {section.preset!r}; {nearest(section.preset, [*PRESETS])}"
        )
    return PRESETS[section.preset]


def require_floors(rule: RewardRule, cards: Iterable[TaskCard]) -> None:
    """Refuse a continuous reward for tasks on which skill has no scale, before any work."""
    if rule.mode == "continuous":
        for card in cards:
            skill(card.milestones.gold, card)


def reward(grade: Grade, card: TaskCard, format_share: float, rule: RewardRule) -> Reward | None:
    """Return the reward of a graded trajectory, or None if it could not be scored (our fault).

    `format_share` is the share of replies in the asked form, in [0, 1]. The total is rounded to 12
    digits, so that equal rewards are equal and a group without spread has none.
    """
    if grade.status == "grader_error":
        return None
    if not 0 <= format_share <= 1:
        raise ValueError(f"a format share of {format_share} is not within [0, 1]")
    parts = dict.fromkeys(REWARD_PARTS, 0.0)
    parts["format"] = format_share
    if grade.status == "ok" and grade.score is not None:
        parts["execute"] = 1.0
        if rule.mode == "continuous":
            parts["skill"] = skill(grade.score, card)
        else:
            parts.update({name: float(grade.reached[name]) for name in MILESTONES})
    if rule.mode == "exclusive":
        best = next((name for name in reversed(MILESTONES) if parts[name]), None)
        parts.update({name: float(name == best) for name in MILESTONES})
    total = math.fsum(weight * parts[name] for name, weight in rule.weights.items())
    return Reward(
        total=round(total, 12),
        parts={name: parts[name] for name in rule.weights},
        weights=dict(rule.weights),
        mode=rule.mode,
    )


def skill(score: float, card: TaskCard) -> float:
    """Return how far a score has come from the task's floor (0) to its gold (1), clipped.

    Raises `UsageError` for a task whose floor is unknown or not worse than its gold.
    """
    floor, gold = card.floor, card.milestones.gold
    span = None if floor is None else gold - floor
    if floor is None or not span or (span > 0) != (card.milestones.direction == "max"):
        raise UsageError(f"{card.id}: a continuous reward needs a floor worse than gold")
    return min(1.0, max(0.0, (score - floor) / span))
