"""What a run amounts to: rates and means with their intervals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sandmle.outcome import RATES, UNSCORABLE, reached
from sandmle.stats import known_sum, mean_interval, pass_at_k
from sandmle.types import Direction, Trajectory, Turn

_PARTS = ("model", "execution")


def summarise(
    trajectories: Sequence[Trajectory],
    expected: int,
    broken: Sequence[str] = (),
    directions: Mapping[str, Direction] | None = None,
) -> dict[str, Any]:
    """Return the tables of `summary.json`; `broken` are reasons why tasks could not be played.

    `directions` says by task id whether a higher score is better; without it nobody can tell
    whether an earlier submission was better than the last one (`reverted`).

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
        "directions": dict(directions or {}),
        "rates": _rates(trajectories),
        "without_failures": _rates(scored),
        "pass_at_k": {name: _pass_at_k(trajectories, name) for name in ("any_medal", "gold")},
        "reverted": _reverted(scored, directions or {}),
        "reward": _interval(rewarded, [t.reward.total for t in rewarded if t.reward]),
        "reward_parts": _parts(rewarded),
        "stop_reasons": dict(Counter(t.stop_reason for t in trajectories)),
        "timed_out": sum(any(_timed_out(u) for u in t.turns) for t in trajectories),
        "masked": dict(Counter(t.mask.why for t in trajectories if t.mask.masked)),
        "flags": dict(Counter(flag for t in trajectories for flag in t.flags)),
        "usage": {
            name: known_sum([getattr(t.usage, name) for t in trajectories])
            for name in ("prompt_tokens", "completion_tokens", "usd")
        },
        "failures": [
            {"id": t.id, "task_id": t.task_id, "seed": t.seed, "error": _error(t)} for t in failures
        ],
        "turns": _interval(trajectories, [float(len(t.turns)) for t in trajectories]),
        "seconds_per_episode": {part: _seconds(trajectories, part) for part in _PARTS},
        "seconds_per_turn": {
            part: _seconds([t for t in trajectories if t.turns], part, by_turn=True)
            for part in _PARTS
        },
    }


def _seconds(
    trajectories: Sequence[Trajectory], part: str, by_turn: bool = False
) -> dict[str, Any]:
    sums = [sum(getattr(turn.seconds, part) for turn in t.turns) for t in trajectories]
    counts = [len(t.turns) if by_turn else 1 for t in trajectories]
    return _interval(trajectories, [s / n for s, n in zip(sums, counts, strict=True)])


def _pass_at_k(trajectories: Sequence[Trajectory], name: str) -> dict[str, Any]:
    """Return, for k = 1, 2, 4, ... up to the smallest group, the mean over tasks with its bounds.

    Failures of ours count as not reached.
    """
    groups: dict[str, list[bool]] = {}
    for t in trajectories:
        groups.setdefault(t.group, []).append(name in reached(t))
    most = min(map(len, groups.values()), default=0)
    task_of = {t.group: t.task_id for t in trajectories}
    found = {}
    for k in (2**i for i in range(most.bit_length())):
        values = [pass_at_k(len(one), sum(one), k) for one in groups.values()]
        estimate, low, high, n, tasks = mean_interval(values, [task_of[g] for g in groups])
        found[str(k)] = {"mean": estimate, "low": low, "high": high, "n": n, "tasks": tasks}
    return found


def _reverted(scored: Sequence[Trajectory], directions: Mapping[str, Direction]) -> dict[str, Any]:
    """Return the share of episodes that ended worse than some turn of them had left it.

    Of those that had a valid submission at some time.
    """
    able, values = [], []
    for t in scored:
        best = [g.score for u in t.turns if (g := u.hidden_grade) and g.score is not None]
        if t.task_id not in directions or not best:
            continue
        sign = 1 if directions[t.task_id] == "max" else -1
        final = t.grade.score
        able.append(t)
        values.append(float(final is None or max(sign * s for s in best) > sign * final))
    return _interval(able, values)


def _rates(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    goals = [reached(t) for t in trajectories]
    return {name: _interval(trajectories, [float(name in one) for one in goals]) for name in RATES}


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
