"""Kinds of submission: which columns a metric wants, and how they become its arrays.

A kind has two halves. `columns` builds the schema's columns from a target name and its classes.
`arrays` turns hidden answers and checked predictions, both columns in the order of the ids, into
the positional arguments of a metric. Number columns are float64, label columns str, label lists
tuples of str. Answers that make no sense for the kind raise `GradingError`: never the agent's
fault.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.types import Column

Values = Mapping[str, NDArray[Any]]
Schema = Mapping[str, Any]
Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """One kind of submission; `describe` is the sentence that a task description prints."""

    name: str
    columns: Callable[[str, Sequence[str]], tuple[Column, ...]]
    arrays: Callable[[Values, Values, Schema], Arrays]
    describe: str
    row_sum: float | None = None
    extra_truth: str | None = None


def label_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true (n,) and y_pred (n,) as str, and the classes in schema order."""
    column = schema["columns"][0]
    return truth[column["name"]], predicted[column["name"]], list(column["choices"])


def number_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true (n,) and y_pred (n,) as float64."""
    name = schema["columns"][0]["name"]
    return truth[name], predicted[name]


def binary_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true (n,) of 0 and 1 and the score of class 1 (n,) as float64."""
    y_true, y_pred = number_arrays(truth, predicted, schema)
    if not np.isin(y_true, (0, 1)).all():
        raise GradingError("hidden answers of a binary task must be 0 or 1")
    return y_true, y_pred


def probability_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return one-hot y_true (n, k) and probabilities (n, k) as float64, in schema order."""
    names = [column["name"] for column in schema["columns"]]
    y_true = np.column_stack([truth[name] for name in names])
    if not (np.isin(y_true, (0, 1)).all() and (y_true.sum(axis=1) == 1).all()):
        raise GradingError(
            "each hidden row must have a 1 for exactly one class and 0 for the others"
        )
    return y_true, np.column_stack([predicted[name] for name in names])


def ranking_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return relevance (n,), score (n,) as float64, and the query of each row (n,) as str."""
    if "query" not in truth:
        raise GradingError("the hidden answers of a ranking task need a column 'query'")
    return *number_arrays(truth, predicted, schema), truth["query"]


def list_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return the relevant labels of each row and the predicted labels, best first, as tuples."""
    name = schema["columns"][0]["name"]
    return list(truth[name]), list(predicted[name])


def _label_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="label", choices=tuple(classes)),)


def _number_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="number"),)


def _nonnegative_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="number", minimum=0),)


def _probability_column(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="number", minimum=0, maximum=1),)


def _class_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="number", minimum=0, maximum=1) for name in classes)


def _list_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="labels", choices=tuple(classes) or None, max_items=1),)


LABEL = Kind("label", _label_columns, label_arrays, "one of the classes, spelled as in train.csv")
NUMBER = Kind("number", _number_columns, number_arrays, "a number")
NONNEGATIVE = Kind("nonnegative", _nonnegative_columns, number_arrays, "a number, not negative")
PROBABILITY = Kind(
    "probability", _probability_column, binary_arrays, "the probability of class 1, from 0 to 1"
)
SCORE = Kind("score", _number_columns, binary_arrays, "a score, higher for class 1 being likelier")
PROBABILITIES = Kind(
    "probabilities",
    _class_columns,
    probability_arrays,
    "a probability for each class; a row adds up to 1",
    row_sum=1.0,
)
RANKING = Kind(
    "ranking",
    _number_columns,
    ranking_arrays,
    "a score; within a query, higher ranks first",
    extra_truth="query",
)
LISTS = Kind("lists", _list_columns, list_arrays, "labels, best first, separated by blanks")
