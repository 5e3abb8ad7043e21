"""Submission and hidden answers to a `Grade`: the only scorer in the package.

Validating and scoring are one path: `validate` is `grade` without its last step, so what the one
accepts the other does, with the same reason when it does not.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError, TaskError
from sandmle.files import UnsafeFile, safe_read
from sandmle.metrics.registry import METRICS, Metric, finite
from sandmle.tasks.cells import Invalid, parse_cell, parse_number, split_labels
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import (
    MAX_BYTES,
    Table,
    check,
    label_speller,
    read_json_lines,
    read_table,
)
from sandmle.types import MILESTONES, Direction, Grade, Milestones


class Answers(NamedTuple):
    """The hidden answers: ids of the rows (None without an id column) and their columns."""

    ids: list[str] | None
    columns: dict[str, NDArray[Any]]


def read_answers(data: bytes, name: str, schema: Mapping[str, Any], extra: str | None) -> Answers:
    """Parse hidden answers (CSV, or one JSON object a line if `name` ends in .jsonl).

    `extra` is a column that only the answers have. Raises `GradingError`: a broken answer file is
    never the agent's fault.
    """
    try:
        table = read_json_lines(data) if name.endswith(".jsonl") else read_table(data)
    except ValueError as error:
        raise GradingError(f"{name}: {error}") from None
    expected = [column["name"] for column in schema["columns"]]
    wanted = [n for n in (schema["id_column"], extra, *expected) if n is not None]
    absent = [n for n in wanted if n not in table.header]
    if absent:
        raise GradingError(f"{name}: there is no column {absent[0]!r}")
    if len(table.rows) != schema["n_rows"]:
        raise GradingError(f"{name}: {len(table.rows)} rows, the schema says {schema['n_rows']}")
    ids = None if schema["id_column"] is None else table.column(schema["id_column"])
    if ids is not None and (len(set(ids)) < len(ids) or "" in ids):
        raise GradingError(f"{name}: an id is empty or occurs twice")
    columns = {c["name"]: _answer_column(table, c, name) for c in schema["columns"]}
    if extra is not None:
        columns[extra] = np.array(table.column(extra), dtype=object)
    return Answers(ids, columns)


def _answer_column(table: Table, column: Mapping[str, Any], name: str) -> NDArray[Any]:
    cells = table.column(column["name"])
    values: list[Any]
    if column["kind"] == "number":
        values = [parse_number(cell) for cell in cells]
        wrong = [cell for cell, v in zip(cells, values, strict=True) if not math.isfinite(v)]
    elif column["kind"] == "label":
        speller = label_speller(column["choices"])
        values = [speller(cell) for cell in cells]
        wrong = [cell for cell, value in zip(cells, values, strict=True) if value is None]
    elif column["kind"] == "labels":
        values = [split_labels(cell) for cell in cells]
        pairs = zip(cells, values, strict=True)
        wrong = [cell for cell, value in pairs if len(set(value)) < max(1, len(value))]
    else:
        try:
            values, wrong = [parse_cell(cell, column) for cell in cells], []
        except Invalid as error:
            raise GradingError(f"{name}: a cell of column {column['name']!r} {error}") from None
    if wrong:
        raise GradingError(f"{name}: {wrong[0]!r} is no answer for column {column['name']!r}")
    return np.fromiter(values, dtype=float if column["kind"] == "number" else object)


def score(
    data: bytes,
    schema: Mapping[str, Any],
    answers: Answers,
    arrays: Callable[..., tuple[Any, ...]],
    function: Callable[..., float],
    params: Mapping[str, Any],
) -> float:
    """Check a submission and compute its metric.

    Raises `Invalid` if the submission is at fault and `GradingError` if the task or metric is.
    """
    predicted = check(data, schema, answers.ids)
    return finite(function(*arrays(answers.columns, predicted, schema), **params))


def reached(value: float, direction: Direction, thresholds: Mapping[str, float]) -> dict[str, bool]:
    """Say which milestones a score reaches: at least as good as each, on unrounded values."""
    return {
        name: value >= threshold if direction == "max" else value <= threshold
        for name, threshold in thresholds.items()
    }


class Grader:
    """Grades submissions of one task; the answers are read once."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._schema = task.card.submission.model_dump()
        metric = METRICS.get(task.card.metric.name)
        metric.check_params(task.card.metric.params)
        self._metric = metric
        self._params = {**metric.params, **task.card.metric.params}
        if metric.direction != task.card.milestones.direction:
            raise TaskError(
                f"{task.root}: the milestones say {task.card.milestones.direction!r}, "
                f"{metric.name} is {metric.direction!r}"
            )
        _require_kind(task, metric)
        name = task.answer_path.name
        self._answers = read_answers(
            task.read(f"private/{name}"), name, self._schema, metric.kind.extra_truth
        )

    @property
    def ids(self) -> Sequence[str] | None:
        """Return the ids of the hidden rows in the order of the answers."""
        return self._answers.ids

    def validate(self, data: bytes) -> str | None:
        """Return why the submission is invalid, or None if `grade` would score it."""
        try:
            check(data, self._schema, self._answers.ids)
        except Invalid as error:
            return str(error)
        return None

    def grade(self, data: bytes | None) -> Grade:
        """Grade the bytes of a submission; None stands for a submission that was never written."""
        if data is None:
            return Grade(status="missing", reason="there is no submission.csv")
        try:
            value = score(
                data,
                self._schema,
                self._answers,
                self._metric.kind.arrays,
                self._metric.function,
                self._params,
            )
        except Invalid as error:
            return Grade(status="invalid", reason=str(error))
        except Exception as error:
            # the submission passed its check, so whatever fails now lies with the task or with us
            return Grade(status="grader_error", reason=f"{type(error).__name__}: {error}")
        milestones = self.task.card.milestones
        return Grade(
            status="ok",
            score=value,
            reached=reached(value, milestones.direction, thresholds(milestones)),
        )


def _require_kind(task: Task, metric: Metric) -> None:
    """Refuse a schema that the metric cannot score: every submission would be our failure."""
    columns = task.card.submission.columns
    wanted = {column.kind for column in metric.kind.columns("target", ("a", "b"))}
    too_many = len(columns) > 1 and not metric.kind.several
    if {column.kind for column in columns} != wanted or too_many:
        names = ", ".join(f"{column.name!r} ({column.kind})" for column in columns)
        raise TaskError(f"{task.root}: {metric.name} cannot score {names}")


def thresholds(milestones: Milestones) -> dict[str, float]:
    """Return the four thresholds by name, easiest first."""
    return {name: getattr(milestones, name) for name in MILESTONES}


def threshold_keys(milestones: Milestones) -> dict[str, float]:
    """Return the thresholds under the names of `threshold.json` and of the evaluator's output."""
    return {f"{name}_threshold": value for name, value in thresholds(milestones).items()}


def grade(task: Task, submission: bytes | Path | None) -> Grade:
    """Grade one submission, given as bytes or as a path; for many use a `Grader`."""
    if isinstance(submission, Path):
        try:
            submission = safe_read(submission.parent, submission.name, MAX_BYTES)
        except FileNotFoundError:
            submission = None
        except UnsafeFile as error:
            return Grade(status="invalid", reason=str(error))
    return Grader(task).grade(submission)
