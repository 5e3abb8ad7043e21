"""What a step's episodes amount to: who can be compared with whom, and the line of metrics."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from sandmle.outcome import RATES, reached
from sandmle.train.collect import Clock, Rollout
from sandmle.types import Trajectory

_SAME = 1e-9  # rewards that differ by less are equal: they are sums of a few weights


def reward_of(trajectory: Trajectory) -> float | None:
    """Return what a trajectory is compared by; None for one that must not be compared.

    That is one that is masked, or has no reward, or a reward that is no number.
    """
    if trajectory.mask.masked or trajectory.reward is None:
        return None
    total = trajectory.reward.total
    return total if math.isfinite(total) else None


def flat_groups(rewards: Sequence[float | None], size: int) -> list[bool]:
    """Say of each group of `size` rewards, one after the other, whether it teaches nothing.

    That is one with fewer than two scorable members, or whose rewards are all equal.
    """
    groups = [rewards[i : i + size] for i in range(0, len(rewards), size)]
    scored = [[reward for reward in group if reward is not None] for group in groups]
    return [len(group) < 2 or max(group) - min(group) < _SAME for group in scored]


def step_figures(rollouts: Sequence[Rollout], size: int) -> dict[str, Any]:
    """Return the figures of a step that its episodes decide.

    `reward` and its parts are means over the scorable; rates have all episodes as their
    denominator, failures of ours included. `tokens` are those that were sampled.
    """
    played = [rollout.trajectory for rollout in rollouts]
    rewards = [reward_of(one) for one in played]
    flat = flat_groups(rewards, size)
    masked = Counter(one.mask.why or "masked" for one in played if one.mask.masked)
    return {
        **mean_figures(played),
        "episodes": len(played),
        "turns": _mean([float(len(one.turns)) for one in played]),
        "flagged": _mean([float(bool(one.flags)) for one in played]),
        "masked": sum(masked.values()),
        "masked_why": dict(sorted(masked.items())),
        "groups": len(flat),
        "flat_groups": sum(flat),
        "tokens": sum(sum(rollout.ledger.mask) for rollout in rollouts),
    }


def mean_figures(played: Sequence[Trajectory]) -> dict[str, Any]:
    """Return mean reward, its parts, and the rates; None where nothing could be scored."""
    scored = [one for one in played if reward_of(one) is not None and one.reward is not None]
    parts = [one.reward.parts for one in scored if one.reward is not None]
    names = sorted({name for one in played if one.reward for name in one.reward.parts})
    goals = [reached(one) for one in played]
    return {
        "reward": _mean([one.reward.total for one in scored if one.reward is not None]),
        **{f"part_{name}": _mean([one[name] for one in parts]) for name in names},
        **{name: _mean([float(name in one) for one in goals]) for name in RATES},
    }


class Spent(NamedTuple):
    """Seconds, or CPU seconds of this process, of a step.

    `whole` is the step, `batch` all of it up to the first update, `forward` what the model was used
    in that without sampling.
    """

    whole: float
    batch: float
    forward: float

    @property
    def update(self) -> float:
        """Return what the updates took."""
        return self.whole - self.batch + self.forward


def phases(clock: Clock, wall: Spent, cpu: Spent) -> dict[str, float]:
    """Return the seconds of a step by what they went into, and this process's CPU seconds.

    `other` is parsing, grading and journaling (CPU seconds of ours beside the programs), collating
    and recording. What is done beside sampling counts twice, and its CPU seconds as sampling.
    """
    return {
        "seconds": wall.whole,
        "seconds_generate": clock.generate,
        "seconds_execute": max(0.0, clock.waiting - clock.handling),
        "seconds_update": wall.update,
        "seconds_other": clock.handling
        + wall.batch
        - wall.forward
        - clock.generate
        - clock.waiting,
        "cpu_generate": clock.cpu["generate"],
        "cpu_update": cpu.update,
        "cpu_other": cpu.batch - cpu.forward - clock.cpu["generate"],
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
