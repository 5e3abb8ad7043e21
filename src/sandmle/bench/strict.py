"""Strict scoring of a submission to an MLE-bench competition, in two steps.

The form is checked first: columns, ids as a set and each once, finite numbers, class probabilities
that add up. Then the user's installed grader scores it, or our own metric where the two were held
against each other and agree (`same_score`), so that most tables need nothing installed.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.bench.facts import Competition
from sandmle.errors import GradingError, MissingExtraError
from sandmle.grading.grader import read_answers, score
from sandmle.metrics.registry import METRICS
from sandmle.tasks.submission import Invalid, Table, parse_number, read_table, to_csv
from sandmle.types import SubmissionSchema

_TRUTH = {"true": "1", "false": "0"}


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
    truth = {name: answers.column(name) for name in (key, *names)}
    if metric.kind.name == "label":
        # a class that no hidden row has may be predicted all the same: it is wrong, not invalid
        choices = {*truth[names[0]], *filter(None, submitted.column(names[0]))}
        classes: tuple[str, ...] = tuple(sorted(choices, key=_order))
    else:
        classes = tuple(names)
        truth = {n: [_TRUTH.get(c.lower(), c) for c in cells] for n, cells in truth.items()}
        truth[key] = answers.column(key)
    schema = metric.schema(key, names[0], classes, len(answers.rows), competition.params)
    # a score is a probability there
    limits = {"minimum": 0.0, "maximum": 1.0} if metric.kind.name == "score" else {}
    columns = tuple(column.model_copy(update=limits) for column in schema.columns)
    kept = to_csv({name: submitted.column(name) for name in (key, *names)})
    plain: dict[str, Any] = SubmissionSchema(
        id_column=key, columns=columns, n_rows=schema.n_rows, row_sum=schema.row_sum
    ).model_dump()
    hidden = read_answers(to_csv(truth), "answers", plain, None)
    params = {**metric.params, **competition.params}
    return score(kept, plain, hidden, metric.kind.arrays, metric.function, params)


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
