"""What a run amounts to: rates and means with their intervals."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sandmle.rollout.record import UNSCORABLE
from sandmle.stats import mean_interval
from sandmle.types import MILESTONES, Trajectory, Turn

RATES = ("valid", *MILESTONES, "any_medal")


def summarise(
    trajectories: Sequence[Trajectory], expected: int, broken: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the tables of `summary.json`; `broken` are reasons why tasks could not be played.

    Rates have all trajectories as their denominator, failures of ours included (they count as not
    reached); `without_failures` gives the same rates without them. `complete` is false while
    episodes are missing or could not be scored, or a task was broken.
    """
    failures = [t for t in trajectories if t.stop_reason in UNSCORABLE]
    scored = [t for t in trajectories if t.stop_reason not in UNSCORABLE]
    rewarded = [t for t in trajectories if t.reward is not None]
    return {
        "trajectories": len(trajectories),
        "expected": expected,
        "complete": len(scored) == expected and not broken,
        "broken": list(broken),
        "rates": _rates(trajectories),
        "without_failures": _rates(scored),
        "reward": _interval(rewarded, [t.reward.total for t in rewarded if t.reward]),
        "reward_parts": _parts(rewarded),
        "stop_reasons": dict(Counter(t.stop_reason for t in trajectories)),
        "timed_out": sum(any(_timed_out(u) for u in t.turns) for t in trajectories),
        "masked": dict(Counter(t.mask.why for t in trajectories if t.mask.masked)),
        "flags": dict(Counter(flag for t in trajectories for flag in t.flags)),
        "failures": [{"id": t.id, "error": _error(t)} for t in failures],
        "turns": _interval(trajectories, [float(len(t.turns)) for t in trajectories]),
        "seconds_per_episode": {
            part: _interval(
                trajectories, [sum(getattr(u.seconds, part) for u in t.turns) for t in trajectories]
            )
            for part in ("model", "execution")
        },
    }


def _rates(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    reached = [_reached(t) for t in trajectories]
    return {
        name: _interval(trajectories, [float(name in one) for one in reached]) for name in RATES
    }


def _reached(trajectory: Trajectory) -> set[str]:
    """Return which of `RATES` a trajectory counts for; a failure of ours counts for none."""
    if trajectory.stop_reason in UNSCORABLE or trajectory.grade.status != "ok":
        return set()
    milestones = {name for name, is_reached in trajectory.grade.reached.items() if is_reached}
    medal = {"any_medal"} if milestones & set(MILESTONES[1:]) else set()
    return {"valid"} | milestones | medal


def _timed_out(turn: Turn) -> bool:
    return turn.result is not None and turn.result.status == "timeout"


def _parts(rewarded: Sequence[Trajectory]) -> dict[str, Any]:
    parts = [t.reward.parts for t in rewarded if t.reward]
    names = list(parts[0]) if parts else []
    return {name: _interval(rewarded, [one[name] for one in parts]) for name in names}


def _interval(trajectories: Sequence[Trajectory], values: Sequence[float]) -> dict[str, Any]:
    """Return the mean of a figure that each trajectory has; the interval is over tasks."""
    estimate, low, high, n, tasks = mean_interval(values, [t.task_id for t in trajectories])
    return {"mean": estimate, "low": low, "high": high, "n": n, "tasks": tasks}


def _error(trajectory: Trajectory) -> str:
    error = trajectory.error
    return f"{error.boundary}: {error.message}" if error else trajectory.stop_reason
