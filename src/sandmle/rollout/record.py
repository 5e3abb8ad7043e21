"""From the outcome of an episode to its trajectory: identity, reward and mask."""

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from sandmle.config import timeout_limit
from sandmle.env.flags import flags
from sandmle.env.workbench import Outcome
from sandmle.outcome import UNSCORABLE
from sandmle.rewards import reward
from sandmle.tasks.folder import Task
from sandmle.types import (
    Feedback,
    JsonDict,
    Mask,
    Record,
    RewardRule,
    Trajectory,
    Usage,
)


class EpisodeKey(Record):
    """What makes an episode the one it is; equal keys need not be played twice."""

    task_hash: str
    scaffold: str
    policy: str
    sampling: JsonDict
    seed: int


def episode_seed(run_seed: int, task_hash: str, k: int) -> int:
    """Return the seed of member `k` of a task's group: 32 bits, independent for every episode."""
    sequence = np.random.SeedSequence([run_seed, int(task_hash, 16), k])
    return int(sequence.generate_state(1)[0])


def episode_id(group: str, k: int) -> str:
    """Return the id of member `k` of a group, unique within its run."""
    return f"{group}.{k}"


def make_trajectory(
    outcome: Outcome,
    task: Task,
    key: EpisodeKey,
    k: int,
    rule: RewardRule,
    feedback: Feedback,
    timeout_rule: str = "any",
    group: str | None = None,
    served: Mapping[str, str] | None = None,
) -> Trajectory:
    """Judge an outcome: reward by `rule`, mask by `timeout_rule`; `None` reward if unscorable.

    `group` names the group; a task that is played by one group only names it itself. `served` are
    versions of a server that replied.
    """
    group = group or task.id
    turns = outcome.turns
    share = sum(turn.format_ok for turn in turns) / len(turns) if turns else 0.0
    scorable = outcome.stop_reason not in UNSCORABLE
    return Trajectory(
        id=episode_id(group, k),
        task_id=task.id,
        group=group,
        k=k,
        **dict(key),
        feedback=feedback,
        isolation=outcome.isolation,
        turns=turns,
        stop_reason=outcome.stop_reason,
        grade=outcome.grade,
        reward=reward(outcome.grade, task.card, share, rule) if scorable else None,
        mask=mask_of(outcome, timeout_rule),
        flags=flags(turns, outcome.planted),
        usage=Usage.total([turn.usage for turn in turns]),
        error=outcome.error,
        versions={**(served or {}), **versions()},
    )


def mask_of(outcome: Outcome, timeout_rule: str) -> Mask:
    """Say whether a trajectory is kept out of the loss (the paper: any execution timed out).

    `timeout_rule` is `any`, `never` or `fraction>X`: that share of its executions timed out.
    """
    if outcome.stop_reason in UNSCORABLE:
        return Mask(masked=True, why=outcome.stop_reason)
    timed_out = [t.result.status == "timeout" for t in outcome.turns if t.result is not None]
    limit = timeout_limit(timeout_rule)
    if limit is not None and sum(timed_out) > limit * len(timed_out):
        return Mask(masked=True, why="execution_timeout")
    return Mask()


@cache
def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    found = {"python": platform.python_version()}
    for name in ("sandmle", "numpy", "pandas", "scikit-learn", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
