"""Kinds of submission: which columns a metric wants, and how they become its arrays.

A kind has two halves. `columns` builds the schema's columns from a target name and its classes.
`arrays` turns hidden answers and checked predictions, both columns in the order of the ids, into
the positional arguments of a metric. Number columns are float64, label columns str, label lists
tuples of str, texts str, masks runs of pixels (k, 2), boxes rows of five numbers (k, 5). Answers
that make no sense for the kind raise `GradingError`: never the agent's fault.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError, UsageError
from sandmle.types import Column

Values = Mapping[str, NDArray[Any]]
Schema = Mapping[str, Any]
Arrays = tuple[Any, ...]
SHARE_TOLERANCE = 1e-3 + 1e-9  # as for the row sums of a submission


@dataclass(frozen=True)
class Kind:
    """One kind of submission; `describe` is the sentence that a task description prints.

    `several`: there is a column for each class, and none for the target itself.
    """

    name: str
    columns: Callable[[str, Sequence[str]], tuple[Column, ...]]
    arrays: Callable[[Values, Values, Schema], Arrays]
    describe: str
    row_sum: float | None = None
    extra_truth: str | None = None
    several: bool = False


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


def tag_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true (n, k) of 0 and 1 and probabilities (n, k) as float64, in schema order."""
    names = [column["name"] for column in schema["columns"]]
    y_true = np.column_stack([truth[name] for name in names])
    if not np.isin(y_true, (0, 1)).all():
        raise GradingError("hidden answers about tags must be 0 or 1")
    return y_true, np.column_stack([predicted[name] for name in names])


def share_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return true and predicted shares (n, k) as float64, in schema order."""
    names = [column["name"] for column in schema["columns"]]
    y_true = np.column_stack([truth[name] for name in names])
    if (y_true < 0).any() or (np.abs(y_true.sum(axis=1) - 1) > SHARE_TOLERANCE).any():
        raise GradingError("the shares of each hidden row must not be negative and add up to 1")
    return y_true, np.column_stack([predicted[name] for name in names])


def ranking_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return relevance (n,), score (n,) as float64, and the query of each row (n,) as str."""
    if "query" not in truth:
        raise GradingError("the hidden answers of a ranking task need a column 'query'")
    return *number_arrays(truth, predicted, schema), truth["query"]


def list_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return the relevant labels of each row and the predicted labels, best first, as tuples."""
    return cell_arrays(truth, predicted, schema)


def cell_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return two lists of what the cells hold: runs of pixels, boxes, texts."""
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


def _mask_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="mask", shape=(1, 1)),)  # `Metric.schema` knows the shape


def _box_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="boxes", max_items=1),)  # `Metric.schema` knows how many


def _text_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return (Column(name=target, kind="text"),)


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
    several=True,
)
COLUMNS = Kind(
    "columns",
    _class_columns,
    tag_arrays,
    "the probability that this tag holds, from 0 to 1",
    several=True,
)
SHARES = Kind(
    "shares",
    _class_columns,
    share_arrays,
    "the share of this part, from 0 to 1; a row adds up to 1",
    row_sum=1.0,
    several=True,
)
RANKING = Kind(
    "ranking",
    _number_columns,
    ranking_arrays,
    "a score; within a query, higher ranks first",
    extra_truth="query",
)
LISTS = Kind("lists", _list_columns, list_arrays, "labels, best first, separated by blanks")
MASKS = Kind(
    "masks",
    _mask_columns,
    cell_arrays,
    "the pixels inside, as pairs of start and length separated by blanks; pixels are counted from "
    "1, down the columns, the left column first; empty for none",
)
BOXES = Kind(
    "boxes",
    _box_columns,
    cell_arrays,
    "boxes, each as confidence (0 to 1), x and y of the upper left corner, width and height in "
    "pixels, all separated by blanks; empty for none",
)
TEXTS = Kind("texts", _text_columns, cell_arrays, "a text of at most 2,000 characters")


# --- a truth with more in it than the submission, several numbers a row, sets of labels ---


def grouped_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true (n,), y_pred (n,) as float64, and the group of each row (n,) as str."""
    return *number_arrays(truth, predicted, schema), truth["group"].astype(str)


def part_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true and y_pred (m,) as float64 of the m rows whose `scored` is 1."""
    unknown = set(truth["scored"]) - {"0", "1"}
    if unknown:
        raise GradingError(f"the hidden column 'scored' must be 0 or 1, not {min(unknown)!r}")
    scored = truth["scored"] == "1"
    if not scored.any():
        raise GradingError("no hidden row is scored")
    y_true, y_pred = number_arrays(truth, predicted, schema)
    return y_true[scored], y_pred[scored]


def identity_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return y_true (n,), scores (n,), and who each row speaks of: a boolean (n, m) for m names."""
    named = [set(cell.split()) for cell in truth["identities"]]
    names = sorted(set().union(*named))
    member = np.array([[name in row for name in names] for row in named], dtype=bool)
    return *binary_arrays(truth, predicted, schema), member.reshape(len(named), len(names))


def table_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return true and predicted numbers (n, k) as float64, in schema order."""
    names = [column["name"] for column in schema["columns"]]
    return tuple(np.column_stack([side[name] for name in names]) for side in (truth, predicted))


def place_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return true and predicted places (n, 2) in degrees, and the group of each row as str."""
    return *table_arrays(truth, predicted, schema), truth["group"].astype(str)


def class_cell_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return two lists of what the cells hold, and the class of each row (n,) as str."""
    return *cell_arrays(truth, predicted, schema), truth["class"].astype(str)


def shaped_mask_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return two lists of runs of pixels, and the shape (height, width) of the pictures."""
    return *cell_arrays(truth, predicted, schema), tuple(schema["columns"][0]["shape"])


def set_arrays(truth: Values, predicted: Values, schema: Schema) -> Arrays:
    """Return the labels of each row, as a set of str: a list of the true and of the predicted."""
    sides = cell_arrays(truth, predicted, schema)
    return tuple([frozenset(cell.split()) for cell in side] for side in sides)


def _table_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="number") for name in classes)


def _nonnegative_table_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, kind="number", minimum=0) for name in classes)


def _two(classes: Sequence[str], what: str) -> Sequence[str]:
    if len(classes) != 2:
        raise UsageError(f"there must be two columns, {what}; {len(classes)} are named")
    return classes


def _uncertain_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    value, spread = _two(classes, "the value and its standard deviation")
    return (
        Column(name=value, kind="number"),
        Column(name=spread, kind="number", minimum=0),
    )


def _angle_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    return _table_columns(target, _two(classes, "azimuth and zenith"))


def _place_columns(target: str, classes: Sequence[str]) -> tuple[Column, ...]:
    latitude, longitude = _two(classes, "latitude and longitude")
    return (
        Column(name=latitude, kind="number", minimum=-90, maximum=90),
        Column(name=longitude, kind="number", minimum=-180, maximum=180),
    )


GROUPED = Kind("grouped", _number_columns, grouped_arrays, "a number", extra_truth="group")
PART = Kind(
    "part",
    _number_columns,
    part_arrays,
    "a number; some rows do not count, and nobody says which",
    extra_truth="scored",
)
IDENTITIES = Kind(
    "identities",
    _probability_column,
    identity_arrays,
    "the probability of class 1, from 0 to 1",
    extra_truth="identities",
)
TABLE = Kind("table", _table_columns, table_arrays, "a number", several=True)
NONNEGATIVE_TABLE = Kind(
    "nonnegative_table",
    _nonnegative_table_columns,
    table_arrays,
    "a number, not negative",
    several=True,
)
UNCERTAIN = Kind(
    "uncertain",
    _uncertain_columns,
    table_arrays,
    "a number: the first column is the value, the second its standard deviation, not negative",
    several=True,
)
ANGLES = Kind(
    "angles",
    _angle_columns,
    table_arrays,
    "an angle in radians: the first column is the azimuth, the second the zenith",
    several=True,
)
PLACES = Kind(
    "places",
    _place_columns,
    place_arrays,
    "degrees: the first column is the latitude (-90 to 90), the second the longitude (-180 to 180)",
    extra_truth="group",
    several=True,
)
SHAPED_MASKS = Kind("shaped_masks", _mask_columns, shaped_mask_arrays, MASKS.describe)
CLASS_MASKS = Kind(
    "class_masks", _mask_columns, class_cell_arrays, MASKS.describe, extra_truth="class"
)
CLASS_BOXES = Kind(
    "class_boxes", _box_columns, class_cell_arrays, BOXES.describe, extra_truth="class"
)
SETS = Kind(
    "sets",
    _text_columns,
    set_arrays,
    "labels in any order, separated by blanks, at most 2,000 characters; empty for none",
)
