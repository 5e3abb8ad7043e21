"""The MLOps Engineer: the evaluator, held against the built-in metric and odd submissions."""

import json
import re
from typing import Any

from sandmle.factory.roles.attempts import worked
from sandmle.factory.roles.blueprint import ANSWER, SAMPLE, Blueprint, Data
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.roles.strategist import prompt
from sandmle.factory.roles.workshop import EVALUATOR, Unfit, judged
from sandmle.files import to_json
from sandmle.grading.grader import score, threshold_keys
from sandmle.llm.structured import read_files
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.submission import read_table, to_csv
from sandmle.types import Milestones

ATTEMPTS = 3  # as in the paper
_NAMES = re.compile(re.escape(EVALUATOR))
_AGAIN = (
    "Reply with the whole file again, in a fenced block that begins with ```python evaluator.py."
)
_CLOSE = 1e-6


def evaluate(
    desk: Desk, call: Call, plan: Blueprint, data: Data, milestones: Milestones, sandbox: Sandbox
) -> str:
    """Return an evaluator that scores as ours does; `Unfit` with the last fault if none does."""

    def build(text: str) -> str:
        source = read_files(text, _NAMES)[EVALUATOR]
        _agree(source, plan, data, milestones, sandbox)
        return source

    return worked(desk, call, _brief(plan, data), build, _AGAIN, ATTEMPTS)


def _brief(plan: Blueprint, data: Data) -> str:
    return prompt(
        "mlops",
        id_column=plan.id_column,
        metric=plan.metric.title,
        formula=plan.metric.formula,
        lower="true" if plan.metric.direction == "min" else "false",
        columns=", ".join([plan.id_column, *plan.targets]),
        head="\n".join(data.made.files[ANSWER].decode().splitlines()[:4]),
    )


def _agree(
    source: str, plan: Blueprint, data: Data, milestones: Milestones, sandbox: Sandbox
) -> None:
    """Run the evaluator on good and odd submissions; `Unfit` where it says what it must not."""
    good, bad = _cases(plan, data)
    levels = threshold_keys(milestones)
    private = {ANSWER: data.made.files[ANSWER], "threshold.json": to_json(levels).encode()}
    told = judged(source, private, {**good, **bad}, sandbox)
    for name in [*good, *bad]:
        code, said = told.get(name, (1, ""))
        if code != 0:
            raise Unfit("evaluator_exits", f"{name}: it exits with status {code}, not with 0")
        try:
            verdict: Any = json.loads(said)
        except ValueError:
            raise Unfit(
                "evaluator_prints", f"{name}: {said[:200]!r} is not one JSON object"
            ) from None
        found = verdict.get("score") if isinstance(verdict, dict) else None
        if name in bad:
            if found is not None or not isinstance(verdict, dict) or "error" not in verdict:
                raise Unfit("evaluator_accepts", f"{name}: wrong, but it says {said[:200]}")
            continue
        ours = _score(plan, data, good[name])
        if not isinstance(found, int | float) or abs(found - ours) > _CLOSE * max(1, abs(ours)):
            raise Unfit(
                "evaluator_disagrees", f"{name}: it says {found}, {plan.metric.name} is {ours:.6g}"
            )
        if {k: v for k, v in verdict.items() if k in levels} != levels:
            raise Unfit("evaluator_prints", f"{name}: the thresholds are not those of the file")
        if verdict.get("is_lower_better") is not (plan.metric.direction == "min"):
            raise Unfit("evaluator_prints", f"{name}: is_lower_better is wrong or missing")


def _score(plan: Blueprint, data: Data, submission: bytes) -> float:
    schema = {**plan.schema.model_dump(), "n_rows": len(data.test.rows)}
    metric = plan.metric
    return score(
        submission, schema, data.answers, metric.kind.arrays, metric.function, metric.params
    )


def _cases(plan: Blueprint, data: Data) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return submissions to score and submissions to refuse, by name."""
    answer, sample = read_table(data.made.files[ANSWER]), read_table(data.made.files[SAMPLE])
    names = [plan.id_column, *plan.targets]
    perfect = {name: answer.column(name) for name in names}
    plain = {name: sample.column(name) for name in names}
    target = names[1]
    first = perfect[target][0]
    good = {
        "sample": to_csv(plain),
        "perfect": to_csv(perfect),
        "rows_turned_round": to_csv({name: cells[::-1] for name, cells in plain.items()}),
        "constant": to_csv({**perfect, target: [first] * len(answer.rows)}),
    }
    last = plain[plan.id_column][-1]
    bad = {
        "id_twice": to_csv({**plain, plan.id_column: [last, *plain[plan.id_column][1:]]}),
        "row_missing": to_csv({name: cells[1:] for name, cells in plain.items()}),
        "unknown_id": to_csv({**plain, plan.id_column: ["no-such-id", *plain[plan.id_column][1:]]}),
        "empty_cell": to_csv({**plain, target: ["", *plain[target][1:]]}),
        "nan_cell": to_csv({**plain, target: ["NaN", *plain[target][1:]]}),
        "column_missing": to_csv({plan.id_column: plain[plan.id_column]}),
        "no_table": b"\x00\xff not a table",
        "nothing": b"",
    }
    return good, bad
