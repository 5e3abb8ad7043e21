"""A corpus as slots: which tasks it is made of, and how one slot is filled.

Task i of a corpus is the first accepted attempt of slot i, drawn from `default_rng([seed, i,
attempt, stream])`: so it does not matter which process fills which slot, or when.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandmle.config import SandboxSection
from sandmle.errors import TaskError
from sandmle.factory.attempt import attempt
from sandmle.factory.gate import ThresholdRule
from sandmle.factory.mix import Mix, stratum
from sandmle.factory.plan import Plan, TestPolicy, plan, task_id
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.tasks.folder import CARD, open_task, write_task
from sandmle.types import Record

MAX_ATTEMPTS = 40


class Job(Record):
    """Everything that decides a corpus but its size; `mix` is resolved."""

    seed: int
    mix: Mix
    policy: TestPolicy = "adaptive"
    thresholds: ThresholdRule = "anchors"


class Filled(Record):
    """A slot that has its task: what the index of a corpus needs to know of it."""

    slot: int
    task_id: str
    content_hash: str
    family: str
    metric: str
    fingerprint: str
    rejected: tuple[str, ...]


def open_factory_sandbox(backend: str) -> Sandbox:
    """Open a sandbox for the ladder's scripts: one at a time, with what they import."""
    return open_sandbox(SandboxSection(backend=backend, preload="vision,audio"), 1)


def plans(job: Job, slot: int) -> Iterator[Plan]:
    """Draw the attempts at a slot one by one."""
    wanted = stratum(job.mix, job.seed, slot)
    return (plan(job.seed, slot, k, wanted, job.policy) for k in range(MAX_ATTEMPTS))


def ids(job: Job, slot: int) -> Iterator[str]:
    """Return the ids that the attempts at a slot have: far cheaper than their plans."""
    domain = stratum(job.mix, job.seed, slot).domain
    return (task_id(job.seed, slot, k, domain) for k in range(MAX_ATTEMPTS))


def fill(out: Path, job: Job, slot: int, sandbox: Sandbox) -> Filled:
    """Fill a slot, or find what an earlier run of the same job left in it.

    Raises `TaskError` if no attempt passes the gate.
    """
    for k, name in enumerate(ids(job, slot)):
        if (out / name / CARD).exists():
            found = next(one for i, one in enumerate(plans(job, slot)) if i == k)
            return _filled(out, slot, found)
    rejected: list[str] = []
    for one in plans(job, slot):
        try:
            made = attempt(one, sandbox, rejected, job.thresholds)
        except TaskError:
            rejected.append("script_failed")  # of one attempt; a corpus does not end with it
            continue
        if not made.failed:
            write_task(out, made.card, made.files)
            return _filled(out, slot, one)
        rejected.append(made.failed[0].split(":")[0])
    where = stratum(job.mix, job.seed, slot)
    reasons = ", ".join(f"{rejected.count(name)} x {name}" for name in sorted(set(rejected)))
    raise TaskError(
        f"slot {slot} ({where.family}, {where.metric}, level {where.level}): none of "
        f"{MAX_ATTEMPTS} attempts passed the gate: {reasons}"
    )


def _filled(out: Path, slot: int, one: Plan) -> Filled:
    task = open_task(out / one.task_id)
    record: dict[str, Any] = json.loads(task.read("private/verification.json"))
    return Filled(
        slot=slot,
        task_id=task.id,
        content_hash=task.content_hash,
        family=one.recipe.family,
        metric=one.recipe.metric.name,
        fingerprint=fingerprint(one),
        rejected=tuple(record["rejected_before"]),
    )


def fingerprint(one: Plan) -> str:
    """Return what makes two tasks look alike: family, metric, story and mutations."""
    recipe = one.recipe
    names = "+".join(sorted(m.name for m in recipe.mutations))
    return f"{recipe.family}/{recipe.metric.name}/{recipe.story.slug}/{names}"
