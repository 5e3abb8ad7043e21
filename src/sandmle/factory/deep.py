"""`tasks check --deep`: make a task again from its specification, and look whether it is the same.

Rebuilds every file, runs the ladder in the sandbox, makes every check of the gate anew, and
compares hashes and five digits. A task that a model wrote has its own programs run again.
"""

import atexit
import json
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sandmle.errors import TaskError
from sandmle.factory.attempt import examine, public_files
from sandmle.factory.build import Recipe, draw, ladder
from sandmle.factory.gate import Verdict
from sandmle.factory.roles.again import (
    check_again,
    check_description,
    told_by_model,
    written_by_model,
)
from sandmle.factory.slot import open_factory_sandbox
from sandmle.files import sha256
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task, open_task
from sandmle.types import Check

_DIGITS = 1e-4  # of the size of a figure: five digits, and the last may be rounded either way


def check_all(tasks: Sequence[Task], workers: int, backend: str) -> Iterator[list[Check]]:
    """Check some tasks, several side by side; yields what is found in their order.

    A task that cannot be rebuilt has failed, the others go on.
    """
    if workers == 1 or len(tasks) == 1:
        with closing(open_factory_sandbox(backend)) as sandbox:
            for task in tasks:
                yield _checked(task, sandbox)
        return
    roots = [task.root.resolve() for task in tasks]
    with ProcessPoolExecutor(
        min(workers, len(tasks)), get_context("spawn"), _begin, (backend,)
    ) as pool:
        yield from pool.map(_check_there, roots)


_sandboxes: list[Sandbox] = []  # of a worker process: the one that it opened


def _begin(backend: str) -> None:
    # one thread each: the tables are tiny, and the other cores have workers of their own
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    _sandboxes.append(open_factory_sandbox(backend))
    atexit.register(_sandboxes[0].close)


def _check_there(root: Path) -> list[Check]:
    return _checked(open_task(root), _sandboxes[0])


def _checked(task: Task, sandbox: Sandbox) -> list[Check]:
    try:
        return check_deep(task, sandbox)
    except (TaskError, ValueError, KeyError) as error:
        return [Check(name="rebuilt", passed=False, detail=str(error).splitlines()[0])]


def check_deep(task: Task, sandbox: Sandbox) -> list[Check]:
    """Rebuild, re-run and compare one task; a task without a recipe has one check, not made."""
    spec = task.spec
    if spec is not None and written_by_model(spec):
        return check_again(task, spec, sandbox)
    if spec is None or "story" not in spec.parameters:
        detail = "the task has no recipe of a procedural family to be rebuilt from"
        return [Check(name="rebuilt", passed=None, detail=detail)]
    recipe = Recipe.model_validate(spec.parameters)
    size = spec.final_dimensions
    drawn = draw(recipe, spec.seed, size.n_samples, size.n_test)
    files = {
        **public_files(recipe, size.n_samples, size.n_test, drawn),
        "private/answer.csv": drawn.answer if recipe.denoised else drawn.noisy,
        **{f"private/solutions/{s.order:02d}-{s.name}.py": s.code.encode() for s in ladder(recipe)},
    }
    told = []
    if told_by_model(spec):  # its description is nobody's to make again
        told = [check_description(task, spec, files)]
        del files["public/description.md"]
    other = sorted(name for name in files if task.card.files.get(name) != sha256(files[name]))
    record = json.loads(task.read("private/verification.json"))
    verdict = examine(recipe, spec.seed, size.n_test, drawn, sandbox, record["thresholds"])
    return [
        Check(
            name="rebuilt",
            passed=not other,
            value=len(other),
            limit=0,
            detail=f"not what the specification gives: {', '.join(other)}" if other else "",
        ),
        *told,
        _compare("ladder_again", _ladder(task.card.ladder), _ladder(verdict.ladder)),
        _compare("milestones_again", _milestones(task), _numbers(verdict)),
        _compare("checks_again", _checks(record["checks"]), _checks(_dumped(verdict))),
        *verdict.checks,
    ]


def _ladder(rungs: Sequence[Any]) -> dict[str, float]:
    tests = {f"{rung.name} on test": rung.test for rung in rungs}
    return tests | {f"{rung.name} on pool": rung.pool for rung in rungs}


def _milestones(task: Task) -> dict[str, float]:
    values = task.card.milestones.model_dump(exclude={"direction"})
    return {name: value for name, value in values.items() if value is not None}


def _numbers(verdict: Verdict) -> dict[str, float]:
    return verdict.milestones.model_dump(exclude={"direction"})


def _dumped(verdict: Verdict) -> list[dict[str, Any]]:
    return [check.model_dump(mode="json") for check in verdict.checks]


def _checks(checks: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {c["name"]: c["value"] for c in checks if c["value"] is not None}


def _compare(name: str, before: dict[str, float], now: dict[str, float]) -> Check:
    """Compare figures by name to five digits."""
    other = [
        f"{key}: {before.get(key)} before, {now.get(key)} now"
        for key in sorted(before.keys() | now.keys())
        if key not in before
        or key not in now
        or not math.isclose(before[key], now[key], rel_tol=_DIGITS, abs_tol=1e-9)
    ]
    return Check(
        name=name, passed=not other, value=len(other), limit=0, detail="; ".join(other[:3])
    )
