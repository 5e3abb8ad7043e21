"""The gate for tasks that a model wrote: the same thresholds, checks and probes as for others.

The calibration rows are another draw of the whole task: the scripts learn from its own training
rows there, since nothing is known of how the generator names its files.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sandmle.errors import TaskError
from sandmle.factory.audit import Case, checks_of
from sandmle.factory.build import Draw
from sandmle.factory.gate import Verdict, judge
from sandmle.factory.ladder import Rank, Script
from sandmle.factory.probes import View
from sandmle.factory.roles.answers import N_MUTATIONS, Faults
from sandmle.factory.roles.blueprint import ANSWER, SAMPLE, TEST, TRAIN, Blueprint, Data
from sandmle.factory.roles.workshop import Unfit
from sandmle.factory.targets import SORTS, Columns
from sandmle.factory.trial import Stage, Trial
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.submission import check, read_table
from sandmle.types import Check

SOLUTION = re.compile(r"solutions/(\d\d)-([a-z][a-z0-9_]{1,30})\.py")
_POOL = "p:"  # before the ids of the other draw


def ladder_of(files: Mapping[str, str]) -> list[Script]:
    """Return the scripts of a ladder, easiest first; `Unfit` if one of the three sorts lacks."""
    scripts = []
    for path, code in sorted(files.items()):
        found = SOLUTION.fullmatch(path)
        if found is not None:
            order = int(found[1])
            kind: Rank = "dummy" if order < 20 else "generic" if order < 90 else "reference"
            scripts.append(Script(order, found[2], kind, code))
    kinds = [script.kind for script in scripts]
    for kind, least in (("dummy", 1), ("generic", 2), ("reference", 1)):
        if kinds.count(kind) < least:
            raise Unfit("no_ladder", f"there are {kinds.count(kind)} {kind} scripts of {least}")
    if len({script.name for script in scripts}) < len(scripts):
        raise Unfit("no_ladder", "two scripts of the ladder share a name")
    return scripts


def examine(
    plan: Blueprint, faults: Faults, scripts: list[Script], shipped: Data, other: Data,
    sandbox: Sandbox, seed: int,
) -> Verdict:  # fmt: skip
    """Run the ladder on both draws and make every check; `Unfit` if a script fails."""
    trial = _trial(plan, scripts, shipped, other, sandbox)
    verdict = judge(trial, np.random.default_rng([seed, 5]))
    sign = 1 if verdict.milestones.direction == "max" else -1
    median, gold = sign * verdict.milestones.median, sign * verdict.milestones.gold
    case = _case(plan, shipped, other, trial, median, gold)
    count = len({fault.name for fault in faults.mutations})
    enough = Check(name="mutations", passed=count == N_MUTATIONS, value=count, limit=N_MUTATIONS)
    return verdict._replace(checks=(*verdict.checks, enough, *checks_of(case)))


def _trial(
    plan: Blueprint, scripts: list[Script], shipped: Data, other: Data, sandbox: Sandbox
) -> Trial:
    """Predict both draws with every script."""
    halves: list[dict[str, Columns]] = []
    seconds: dict[str, float] = {}
    for data in (shipped, other):
        public = {n: c for n, c in data.made.files.items() if n not in (ANSWER, "threshold.json")}
        schema = {**plan.schema.model_dump(), "n_rows": len(data.test.rows)}
        with Stage(public, schema, data.answers.ids or [], sandbox) as stage:
            try:
                halves.append({script.name: stage.predict(script) for script in scripts})
            except TaskError as error:
                raise Unfit("solution_failed", str(error)[-1500:]) from None
        seconds |= stage.seconds
    n_test, n_other = len(shipped.test.rows), len(other.test.rows)
    ids = [*(shipped.answers.ids or []), *(_POOL + i for i in other.answers.ids or [])]
    answers = _joined(shipped.answers.columns, other.answers.columns)
    sort, form = SORTS[plan.target.kind], plan.metric.kind.name
    schema = {**plan.schema.model_dump(), "n_rows": n_test + n_other}
    sample = check(
        shipped.made.files[SAMPLE], {**schema, "n_rows": n_test}, shipped.answers.ids or []
    )
    return Trial(
        metric=plan.metric,
        schema=schema,
        n_test=n_test,
        ids=tuple(ids),
        answers=answers,
        predictions={s.name: _joined(halves[0][s.name], halves[1][s.name]) for s in scripts},
        kinds={script.name: script.kind for script in scripts},
        blind=sort.blind(plan.target, form, answers, n_test + n_other),
        sample=sample,
        seconds=seconds,
    )


def _joined(first: Columns, second: Columns) -> dict[str, Any]:
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def _case(
    plan: Blueprint, shipped: Data, other: Data, trial: Trial, median: float, gold: float
) -> Case:
    views = {
        "pool": _view(plan, other, TEST),
        "test": _view(plan, shipped, TEST),
        "train": _view(plan, shipped, TRAIN),
    }
    sort = SORTS[plan.target.kind]
    told = {
        "pool": _answers_in_order(plan, other),
        "test": _answers_in_order(plan, shipped),
        "train": shipped.train,
    }
    goals = {where: sort.goal(plan.target, table) for where, table in told.items()}
    return Case(views, goals, plan.target, sort, trial, median, gold)


def _answers_in_order(plan: Blueprint, data: Data) -> Any:
    """Return the answers as a table in the order of test.csv."""
    table = read_table(data.made.files[ANSWER])
    at = {name: i for i, name in enumerate(table.column(plan.id_column))}
    order = [at[name] for name in data.test.column(plan.id_column)]
    return table._replace(rows=[table.rows[i] for i in order])


def _view(plan: Blueprint, data: Data, name: str) -> View:
    files = data.made.files
    drawn = Draw(files[TRAIN], files[TEST], files[ANSWER], b"", files[SAMPLE], {}, {}, data.assets)
    return View.of(files[name], drawn, plan.id_column, plan.targets, data.kinds)
