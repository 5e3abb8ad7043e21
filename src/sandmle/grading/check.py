"""`tasks check`: is a task folder whole, does its grader behave? Runs none of its code."""

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from sandmle.errors import GradingError, TaskError, UsageError
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import Grader, threshold_keys, thresholds
from sandmle.metrics.registry import METRICS
from sandmle.tasks.cells import parse_number, split_labels
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import Table, read_json_lines, read_table, to_csv
from sandmle.types import Check, Column, Milestones

_HIDDEN = ("answer", "threshold", "evaluator", "spec", "generate_task_env", "verification")
# what pandas.read_csv takes for a missing value unless told otherwise
READ_AS_MISSING = {
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
}


def check_task(task: Task) -> list[Check]:
    """Make every check that needs no execution; a check that cannot be made has `passed` None."""
    checks = [
        _made("files_unchanged", lambda: _files(task)),
        _made("public_holds_no_answers", lambda: _nothing_hidden_in_public(task)),
    ]
    try:
        grader = Grader(task)
        answers = _answer_table(task)
    except (GradingError, TaskError, UsageError, ValueError) as error:
        return [*checks, Check(name="answers_readable", passed=False, detail=str(error))]
    return [
        *checks,
        Check(name="answers_readable", passed=True, value=len(answers.rows)),
        _made("ids_match_and_survive", lambda: _ids(task, answers)),
        _made("labels_survive_read_csv", lambda: _labels(task)),
        _made("thresholds_agree", lambda: _thresholds(task)),
        _made("paper_monotone", lambda: _order(task)),
        _made("sample_valid", lambda: _sample(task, grader)),
        _made("columns_described", lambda: _described(task)),
        _made("evaluator_is_the_grader", lambda: _evaluator(task)),
        *_behaviour(task, grader, answers),
    ]


def _made(name: str, make: Callable[[], Check]) -> Check:
    """Make a check; a file that cannot be read fails it and not the others."""
    try:
        return make()
    except (TaskError, OSError, ValueError, RecursionError) as error:
        return Check(name=name, passed=False, detail=str(error) or type(error).__name__)


def _files(task: Task) -> Check:
    faults = task.faults()
    return Check(
        name="files_unchanged", passed=not faults, value=len(faults), limit=0, detail=_some(faults)
    )


def _nothing_hidden_in_public(task: Task) -> Check:
    names = [p.name for p in task.public.rglob("*") if p.stem in _HIDDEN or p.is_symlink()]
    return Check(name="public_holds_no_answers", passed=not names, detail=_some(names))


def _answer_table(task: Task) -> Table:
    path = task.answer_path
    parse = read_json_lines if path.suffix == ".jsonl" else read_table
    return parse(task.read(f"private/{path.name}"))


def _ids(task: Task, answers: Table) -> Check:
    """Ids are those of test.csv, and still distinct when somebody reads them as numbers."""
    name = "ids_match_and_survive"
    column = task.card.submission.id_column
    if column is None:
        return Check(name=name, passed=None, detail="rows are matched by their order: no ids")
    ids = answers.column(column)
    distinct = {text if math.isnan(n := parse_number(text)) else n for text in ids}
    if len(distinct) < len(ids):
        return Check(name=name, passed=False, detail="two ids are equal as numbers")
    if not (task.public / "test.csv").exists():
        return Check(name=name, passed=None, detail="there is no public/test.csv")
    test = read_table(task.read("public/test.csv"))
    same = column in test.header and sorted(test.column(column)) == sorted(ids)
    detail = "" if same else f"column {column!r} of public/test.csv has other ids than the answers"
    return Check(name=name, passed=same, value=len(ids), detail=detail)


def _labels(task: Task) -> Check:
    choices = [choice for c in task.card.submission.columns for choice in c.choices or ()]
    lost = sorted(set(choices) & READ_AS_MISSING)
    detail = f"pandas.read_csv takes {_some(lost)} for missing" if lost else ""
    return Check(name="labels_survive_read_csv", passed=not lost, detail=detail)


def _thresholds(task: Task) -> Check:
    name = "thresholds_agree"
    if not (task.private / "threshold.json").exists():
        return Check(name=name, passed=None, detail="there is no private/threshold.json")
    written = json.loads(task.read("private/threshold.json"))
    same = written == threshold_keys(task.card.milestones)
    return Check(name=name, passed=same, detail="" if same else "they differ from task.json")


def paper_gap(milestones: Milestones) -> float:
    """Return the smallest gap of the paper's sanity check (section 4.2): above 0 if it holds.

    The milestones must be strictly ordered, and gold must beat the sample submission if its score
    is known.
    """
    sign = 1 if milestones.direction == "max" else -1
    steps = [sign * threshold for threshold in thresholds(milestones).values()]
    gaps = [high - low for low, high in pairwise(steps)]
    if milestones.sample_score is not None:
        gaps.append(steps[-1] - sign * milestones.sample_score)
    return min(gaps)


def _order(task: Task) -> Check:
    gap = paper_gap(task.card.milestones)
    return Check(name="paper_monotone", passed=gap > 0, value=gap, limit=0)


def _sample(task: Task, grader: Grader) -> Check:
    grade = grader.grade(task.read("public/sample_submission.csv"))
    return Check(
        name="sample_valid", passed=grade.status == "ok", value=grade.score, detail=grade.reason
    )


def _described(task: Task) -> Check:
    schema = task.card.submission
    names = [schema.id_column, *(column.name for column in schema.columns)]
    text = task.description
    absent = [name for name in names if name is not None and name not in text]
    return Check(name="columns_described", passed=not absent, detail=_some(absent))


def _evaluator(task: Task) -> Check:
    path = task.private / "evaluator.py"
    expected = render_evaluator(task.card).encode()
    if path.exists() and task.read("private/evaluator.py") == expected:
        return Check(name="evaluator_is_the_grader", passed=True)
    detail = "private/evaluator.py is missing, or was not written by this version of sandmle"
    return Check(name="evaluator_is_the_grader", passed=None, detail=detail)


def _behaviour(task: Task, grader: Grader, answers: Table) -> list[Check]:
    """Metamorphic checks: perfect is best, row order means nothing, ids mean everything."""
    schema = task.card.submission
    id_column = schema.id_column
    columns = {c.name: _perfect(answers.column(c.name), c) for c in schema.columns}
    if id_column is not None:
        columns[id_column] = answers.column(id_column)
    grade = grader.grade(to_csv(columns))
    best = METRICS.get(task.card.metric.name).best
    perfect = grade.score is not None and abs(grade.score - best) < 1e-9
    checks = [
        Check(
            name="perfect_is_best",
            passed=perfect and grade.reached.get("gold", False),
            value=grade.score,
            limit=best,
            detail=grade.reason,
        )
    ]
    if id_column is None:
        return checks
    turned = grader.grade(to_csv({name: cells[::-1] for name, cells in columns.items()}))
    checks.append(Check(name="row_order_means_nothing", passed=turned == grade, value=turned.score))
    first, *others = columns[id_column]
    shifted = grader.grade(to_csv({**columns, id_column: [*others, first]}))
    checks.append(
        Check(name="ids_mean_something", passed=shifted.score != grade.score, value=shifted.score)
    )
    return checks


def _perfect(cells: list[str], column: Column) -> list[str]:
    if column.kind != "labels":
        return cells
    return [" ".join(split_labels(cell)[: column.max_items]) for cell in cells]


def _some(lines: Sequence[str]) -> str:
    return "; ".join(lines[:3]) + (f"; and {len(lines) - 3} more" if len(lines) > 3 else "")
