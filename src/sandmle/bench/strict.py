"""Strict scoring of a submission to an MLE-bench competition, in two steps.

The form is checked first: columns, ids as a set and each once, finite numbers, class probabilities
that add up. Then the user's installed grader scores it, or our own metric where the two were held
against each other and agree (`same_score`), so that most tables need nothing installed.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.bench.facts import Competition
from sandmle.errors import GradingError, MissingExtraError
from sandmle.grading.grader import read_answers, score
from sandmle.metrics.registry import METRICS
from sandmle.tasks.cells import Invalid, parse_number
from sandmle.tasks.submission import Table, read_table, to_csv
from sandmle.types import SubmissionSchema

_TRUTH = {"true": "1", "false": "0"}
Floats = NDArray[np.float64]


def _log_loss(y_true: Floats, y_pred: Floats) -> float:
    """Return the log loss as scikit-learn computes it, by which MLE-bench scores.

    It clips where the next float64 begins, our metrics at 1e-15: a sure mistake costs 36.0 there.
    """
    tiny = float(np.finfo(float).eps)
    p = np.clip(y_pred, tiny, 1 - tiny)
    if p.ndim == 1:
        p = np.where(y_true == 1, p, np.clip(1 - y_pred, tiny, 1 - tiny))
    else:
        p = p[y_true == 1]
    return float(-np.mean(np.log(p)))


def _set_f1(truth: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> float:
    """Return the F1 of sets of labels; MLE-bench leaves out what no hidden row has."""
    known = frozenset().union(*truth)
    return METRICS.get("set_f1_micro").function(truth, [row & known for row in predicted])


# where MLE-bench's graders do not do what the metric of that name does
_THEIRS: dict[str, Callable[..., float]] = {
    "log_loss": _log_loss,
    "log_loss_multiclass": _log_loss,
    "set_f1_micro": _set_f1,
}


def as_read(cells: dict[str, list[str]], schema: SubmissionSchema) -> dict[str, list[str]]:
    """Return answers as our metrics read them: True is 1 and False 0, but where they are words."""
    if schema.columns[0].kind != "number":
        return cells
    return {n: [_TRUTH.get(c.lower(), c) for c in column] for n, column in cells.items()}


class Scored(NamedTuple):
    """A score, unrounded, or why there is none."""

    score: float | None
    reason: str = ""


def strict_score(data: bytes, competition: Competition, answers_path: Path) -> Scored:
    """Score a submission; raises `GradingError` if the answers are at fault."""
    answers = read_answer_table(answers_path)
    try:
        submitted = read_table(data)
        require_form(submitted, competition, answers)
        if not competition.same_score:
            return _upstream(competition, answers_path, data)
        return Scored(own_score(data, submitted, competition, answers))
    except Invalid as error:
        return Scored(None, str(error))


def read_answer_table(path: Path) -> Table:
    """Read the answers of a competition as text."""
    try:
        return read_table(path.read_bytes())
    except OSError as error:
        raise GradingError(f"{path}: cannot be read ({error.strerror})") from None
    except Invalid as error:
        raise GradingError(f"{path}: {error}") from None


def require_form(submitted: Table, competition: Competition, answers: Table) -> None:
    """Raise `Invalid` unless the submission has the columns and the ids of the answers, each once.

    No number may be NaN or infinite, whatever the competition's own grader makes of it.
    """
    wanted = [*competition.id_columns, *targets(competition, answers)]
    absent = [name for name in wanted if name not in submitted.header]
    if absent:
        raise Invalid(f"there is no column {absent[0]!r}")
    keys = [_keys(table, competition.id_columns) for table in (submitted, answers)]
    given, expected = map(set, keys)
    if len(given) < len(keys[0]):
        raise Invalid("an id is there twice")
    missing, unknown = sorted(expected - given), sorted(given - expected)
    if missing or unknown:
        raise Invalid(
            f"{len(missing)} ids are missing and {len(unknown)} are unknown, "
            f"the first {(missing or unknown)[0]!r}"
        )
    for name in targets(competition, answers):
        for cell in submitted.column(name):
            if cell.lower().lstrip("+-") in ("nan", "inf", "infinity"):
                raise Invalid(f"column {name!r} holds {cell!r}")
    if competition.row_tolerance is not None:
        _require_sums(submitted, targets(competition, answers), competition.row_tolerance)


def _require_sums(submitted: Table, names: Sequence[str], tolerance: float) -> None:
    numbers = [[parse_number(cell) for cell in submitted.column(name)] for name in names]
    sums = np.sum(numbers, axis=0)
    off = np.flatnonzero(np.abs(sums - 1) > tolerance)  # not a cell without a number: see `score`
    if len(off):
        total = float(sums[off[0]])
        raise Invalid(f"row {off[0] + 1} adds up to {total:.8g}, not to 1 within {tolerance:g}")


def _keys(table: Table, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(zip(*(table.column(name) for name in columns), strict=True))


def targets(competition: Competition, answers: Table) -> list[str]:
    """Return the columns to predict: those that are known, or all of the answers but the id."""
    if competition.target_columns is not None:
        return list(competition.target_columns)
    return [name for name in answers.header if name not in competition.id_columns]


def own_score(data: bytes, submitted: Table, competition: Competition, answers: Table) -> float:
    """Score with our metric; raises `Invalid` or `GradingError`."""
    metric = METRICS.get(str(competition.metric))
    names = targets(competition, answers)
    key = competition.id_columns[0]
    truth = {name: answers.column(name) for name in names}
    if metric.kind.name == "label":
        # a class that no hidden row has may be predicted all the same: it is wrong, not invalid
        choices = {*truth[names[0]], *filter(None, submitted.column(names[0]))}
        classes: tuple[str, ...] = tuple(sorted(choices, key=_order))
    else:
        classes = tuple(names) if metric.kind.several else ()
    schema = metric.schema(key, names[0], classes, len(answers.rows), competition.params)
    # a score is a probability there
    limits = {"minimum": 0.0, "maximum": 1.0} if metric.kind.name == "score" else {}
    columns = tuple(column.model_copy(update=limits) for column in schema.columns)
    kept = to_csv({name: submitted.column(name) for name in (key, *names)})
    plain: dict[str, Any] = SubmissionSchema(
        id_column=key, columns=columns, n_rows=schema.n_rows, row_sum=schema.row_sum
    ).model_dump()
    told = to_csv({key: answers.column(key), **as_read(truth, schema)})
    hidden = read_answers(told, "answers", plain, None)
    params = {**metric.params, **competition.params}
    function = _THEIRS.get(metric.name, metric.function)
    return score(kept, plain, hidden, metric.kind.arrays, function, params)


def _order(label: str) -> tuple[float, str]:
    value = parse_number(label)
    return (math.inf if math.isnan(value) else value, label)


def _upstream(competition: Competition, answers_path: Path, data: bytes) -> Scored:
    from sandmle.bench.upstream import upstream_score

    try:
        return upstream_score(competition.id, answers_path, data)
    except MissingExtraError as error:
        raise GradingError(
            f"{competition.id}: its metric is not ours to compute to the digit; {error}"
        ) from None
