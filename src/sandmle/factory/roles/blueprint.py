"""What follows from a specification, and whether the data keep to it."""

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from sandmle.errors import AnswerError, GradingError, UsageError
from sandmle.factory.family import OutcomeKind, VariableKind
from sandmle.factory.roles.answers import Dna, Specification
from sandmle.factory.roles.workshop import Made, Unfit
from sandmle.factory.story import StoryTarget
from sandmle.grading.grader import Answers, read_answers
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.cells import Invalid
from sandmle.tasks.submission import Table, check, read_table
from sandmle.types import MILESTONES, Direction, SubmissionSchema

TRAIN, TEST, ANSWER, SAMPLE = "train.csv", "test.csv", "answer.csv", "sample_submission.csv"
THRESHOLD = "threshold.json"
PRIVATE = (ANSWER, THRESHOLD)
_NOT_HERE = ("lists", "sets", "probabilities")  # kinds whose training targets have another form
_OUTCOMES: dict[str, OutcomeKind] = {
    "number": "number",
    "nonnegative": "amount",
    "probability": "binary",
    "score": "binary",
    "columns": "tags",
    "shares": "shares",
    "masks": "mask",
    "boxes": "boxes",
    "texts": "span",
}
_SORTS: dict[str, VariableKind] = {"png": "image", "wav": "audio", "txt": "document"}


class Blueprint(NamedTuple):
    """A specification that has been checked, with what it names."""

    dna: Dna
    spec: Specification
    metric: Metric

    @property
    def schema(self) -> SubmissionSchema:
        """Return the form of a submission."""
        return self.spec.submission

    @property
    def id_column(self) -> str:
        """Return the column of ids."""
        return str(self.spec.submission.id_column)

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the columns of the answers."""
        return tuple(column.name for column in self.spec.submission.columns)

    @property
    def target(self) -> StoryTarget:
        """Return the target as the audit knows it."""
        kind = _OUTCOMES.get(self.metric.kind.name)
        classes = self.schema.columns[0].choices or ()
        if kind is None:
            ordered = self.metric.name == "quadratic_kappa"
            kind = "ordinal" if ordered else "binary" if len(classes) == 2 else "classes"
        if kind == "binary" and not classes:
            classes = ("0", "1")
        several = self.targets if self.metric.kind.several else classes
        first = self.schema.columns[0]
        return StoryTarget(
            name=self.targets[0], kind=kind, unit="", meaning="", classes=several,
            shape=first.shape, most=first.max_items or 0,
        )  # fmt: skip


def usable_metrics() -> list[str]:
    """Return the names of the metrics that a task can have here."""
    return [m.name for m in METRICS if m.kind.extra_truth is None and m.kind.name not in _NOT_HERE]


def blueprint(dna: Dna, spec: Specification) -> Blueprint:
    """Check that a specification can be built; `AnswerError` says what is wrong."""
    try:
        metric = METRICS.get(spec.evaluation_specs.metric)
    except UsageError as error:
        raise AnswerError(f"evaluation_specs.metric: {error}") from None
    if metric.direction != spec.evaluation_specs.direction:
        raise AnswerError(
            f"evaluation_specs.direction: {metric.name} is better {metric.direction}, and that is "
            "a fact of the metric"
        )
    if metric.kind.extra_truth is not None or metric.kind.name in (
        "lists",
        "sets",
        "probabilities",
    ):
        raise AnswerError(f"evaluation_specs.metric: {metric.name} cannot be used here")
    if spec.submission.id_column is None:
        raise AnswerError("submission.id_column: rows must have ids")
    wanted = {column.kind for column in metric.kind.columns("target", ("a", "b"))}
    kinds = {column.kind for column in spec.submission.columns}
    if kinds != wanted or (len(spec.submission.columns) > 1 and not metric.kind.several):
        raise AnswerError(
            f"submission.columns: {metric.name} wants {', '.join(sorted(wanted))}, "
            f"{'a column for each class' if metric.kind.several else 'one column'}"
        )
    if spec.submission.n_rows != spec.final_dimensions.n_test:
        raise AnswerError("submission.n_rows must be final_dimensions.n_test")
    if spec.submission.row_sum != metric.kind.row_sum:
        raise AnswerError(f"submission.row_sum must be {json.dumps(metric.kind.row_sum)}")
    abstract = {feature.name for feature in dna.features}
    if set(spec.feature_mapping) != abstract:
        odd = sorted(set(spec.feature_mapping) ^ abstract)[0]
        raise AnswerError(f"feature_mapping: {odd!r} is not in both the DNA and the mapping")
    names = [one.name for one in spec.feature_mapping.values()]
    if len({*names, *(c.name for c in spec.submission.columns)}) < len(names) + len(
        spec.submission.columns
    ):
        raise AnswerError("feature_mapping: two columns share a name")
    if spec.final_dimensions.n_features != len(names):
        raise AnswerError("final_dimensions.n_features is not the number of mapped features")
    return Blueprint(dna, spec, metric)


class Data(NamedTuple):
    """Files that keep to a blueprint, read; answers are in the order of test.csv."""

    made: Made
    train: Table
    test: Table
    answers: Answers
    kinds: dict[str, VariableKind]

    @property
    def assets(self) -> dict[str, bytes]:
        """Return the files of single rows."""
        return {path: content for path, content in self.made.files.items() if "/" in path}


def read_data(plan: Blueprint, made: Made, n_train: int, n_test: int) -> Data:
    """Check a generator's files against the blueprint; `Unfit` names the first that is wrong."""
    absent = [n for n in (TRAIN, TEST, ANSWER, SAMPLE, THRESHOLD) if n not in made.files]
    if absent:
        raise Unfit("wrong_files", f"{absent[0]} was not written; these were: {_some(made.files)}")
    tables = {name: _table(made, name) for name in (TRAIN, TEST, ANSWER, SAMPLE)}
    features = [one.name for one in plan.spec.feature_mapping.values()]
    for name, n, wanted in (
        (TRAIN, n_train, [plan.id_column, *features, *plan.targets]),
        (TEST, n_test, [plan.id_column, *features]),
    ):
        table = tables[name]
        if sorted(table.header) != sorted(wanted):
            odd = sorted(set(table.header) ^ set(wanted))
            raise Unfit("wrong_columns", f"{name}: the columns must be {wanted}; see {odd[:3]}")
        if len(table.rows) != n:
            raise Unfit("wrong_size", f"{name} has {len(table.rows)} rows, {n} were asked for")
    ids = [i for name in (TRAIN, TEST) for i in tables[name].column(plan.id_column)]
    if len(set(ids)) < len(ids):
        raise Unfit("wrong_ids", "an id occurs twice in train.csv and test.csv together")
    schema = {**plan.schema.model_dump(), "n_rows": n_test}
    try:
        answers = read_answers(made.files[ANSWER], ANSWER, schema, None)
    except GradingError as error:
        raise Unfit("wrong_answers", str(error)) from None
    if sorted(answers.ids or ()) != sorted(tables[TEST].column(plan.id_column)):
        raise Unfit("wrong_ids", "answer.csv has other ids than test.csv")
    try:
        check(made.files[SAMPLE], schema, answers.ids)
    except Invalid as error:
        raise Unfit("wrong_sample", f"sample_submission.csv: {error}") from None
    at = {name: i for i, name in enumerate(answers.ids or ())}
    order = [at[name] for name in tables[TEST].column(plan.id_column)]
    answers = Answers(
        tables[TEST].column(plan.id_column), {n: v[order] for n, v in answers.columns.items()}
    )
    kinds = {name: _kind(tables, made, name) for name in features}
    _thresholds(made, plan.metric.direction)
    return Data(made, tables[TRAIN], tables[TEST], answers, kinds)


def _table(made: Made, name: str) -> Table:
    try:
        return read_table(made.files[name])
    except Invalid as error:
        raise Unfit("wrong_files", f"{name}: {error}") from None


def _kind(tables: Mapping[str, Table], made: Made, name: str) -> VariableKind:
    """Return what a column holds; paths must name files that are there."""
    cells = [cell for table in (TRAIN, TEST) for cell in tables[table].column(name)]
    ends = {cell.rpartition(".")[2] for cell in cells if "/" in cell and "." in cell}
    sort = _SORTS.get(next(iter(ends))) if len(ends) == 1 else None
    if sort is not None:
        lost = [path for cell in cells for path in cell.split() if path not in made.files]
        if lost:
            raise Unfit("wrong_files", f"column {name!r} names {lost[0]!r}, which is not there")
        several = any(" " in cell for cell in cells)
        return "frames" if several and sort == "image" else sort
    if sum(len(cell.split()) for cell in cells) > 4 * len(cells):
        return "note"
    return "code"


def _thresholds(made: Made, direction: Direction) -> None:
    """Make the paper's check (section 4.2) on the thresholds that the generator measured."""
    try:
        found: Any = json.loads(made.files[THRESHOLD])
        levels = [float(found[f"{name}_threshold"]) for name in MILESTONES]
    except (ValueError, KeyError, TypeError) as error:
        raise Unfit("wrong_thresholds", f"threshold.json: {type(error).__name__} {error}") from None
    if len(found) != len(MILESTONES) or not all(map(math.isfinite, levels)):
        raise Unfit("wrong_thresholds", "threshold.json must hold four finite numbers, no more")
    sign = 1 if direction == "max" else -1
    rising = [sign * level for level in levels]
    if not all(low < high for low, high in pairwise(rising)):
        told = ", ".join(f"{n} {v:g}" for n, v in zip(MILESTONES, levels, strict=True))
        raise Unfit("not_monotone", f"the thresholds are not strictly ordered: {told}")


def _some(files: Mapping[str, bytes]) -> str:
    return ", ".join(sorted(files)[:8])
