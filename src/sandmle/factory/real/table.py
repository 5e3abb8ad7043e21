"""A real table: what its target is, which metric fits, and which rows are kept hidden."""

import gzip
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sandmle.errors import UsageError
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.cells import Invalid, parse_number
from sandmle.tasks.submission import Table, read_table
from sandmle.types import MetricRef

Split = Literal["hash", "group", "time"]
MAX_CLASSES = 30
MIN_ROWS = 60
_FEW_NUMBERS = 10  # so many different whole numbers at most are classes
FORMS = ("label", "score", "probability", "probabilities", "number", "nonnegative")
CLASS_FORMS = FORMS[:4]


class Request(NamedTuple):
    """What somebody wants made of a table.

    `id_column` None: ids are made. `group`: its rows stay on one side; `time`: the last rows are
    hidden. `drop` are columns that nobody may see. `baseline` are predictions for the hidden rows.
    """

    path: Path
    target: str
    id_column: str | None = None
    group: str | None = None
    time: str | None = None
    metric: str | None = None
    drop: tuple[str, ...] = ()
    test_share: float = 0.3
    seed: int = 0
    baseline: Path | None = None
    title: str | None = None


class Real(NamedTuple):
    """A table with its target told apart; `hidden[i]` says whether row i is kept back.

    `units[i]` is the group or the time of row i, or its features: what is not split.

    `key` is the id column, `classes` the labels of a target of classes, `values` its spelled
    target. `positive` is the label that 1 stands for, where the metric wants 0 and 1.
    """

    table: Table
    key: str
    ids: list[str]
    features: list[str]
    target: str
    values: list[str]
    classes: tuple[str, ...]
    metric: Metric
    split: Split
    units: list[str]
    hidden: list[bool]
    dropped: int
    positive: str | None

    @property
    def ref(self) -> MetricRef:
        """Return the metric as a card names it."""
        return MetricRef(name=self.metric.name)

    @property
    def targets(self) -> list[str]:
        """Return the columns of a submission but the id."""
        return list(self.classes) if self.metric.kind.several else [self.target]

    def rows(self, hidden: bool) -> list[int]:
        """Return the positions of the hidden rows, or of the others."""
        return [i for i, is_hidden in enumerate(self.hidden) if is_hidden == hidden]

    def column(self, name: str, rows: Sequence[int]) -> list[str]:
        """Return the cells of a column for some rows."""
        cells = self.table.column(name)
        return [cells[i] for i in rows]


def read_real(request: Request) -> Real:
    """Read a table and split it; raises `UsageError` for whatever no task can be made of."""
    table, dropped = _usable(_read(request.path), request)
    target = request.target
    named = [n for n in (request.id_column, request.group, request.time) if n is not None]
    for name in (*named, *request.drop):
        if name not in table.header or name == target:
            raise UsageError(f"{request.path}: there is no feature column {name!r}")
    if len(table.rows) < MIN_ROWS:
        raise UsageError(
            f"{request.path}: {len(table.rows)} rows with a target; a task takes {MIN_ROWS}"
        )
    values, classes = _target(request, table.column(target))
    metric = _metric(request, classes)
    positive = classes[1] if metric.kind.name in ("score", "probability") else None
    if positive is not None and classes != ("0", "1"):
        values = [str(int(value == positive)) for value in values]
    key, ids = _ids(request, table)
    aside = {target, key, *request.drop}
    features = [name for name in table.header if name not in aside]
    if not features:
        raise UsageError(f"{request.path}: nothing is left to predict {target!r} from")
    split: Split = "group" if request.group else "time" if request.time else "hash"
    units = _units(request, table, features)
    hidden = _hidden(request, units)
    if classes and {v for v, h in zip(values, hidden, strict=True) if not h} != set(values):
        raise UsageError(f"{request.path}: some class of {target!r} is in no training row")
    return Real(
        table, key, ids, features, target, values, classes, metric, split, units, hidden, dropped,
        positive,
    )  # fmt: skip


def _read(path: Path) -> Table:
    try:
        data = path.read_bytes()
        return read_table(gzip.decompress(data) if path.suffix == ".gz" else data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Invalid as error:
        raise UsageError(f"{path}: {error}") from None


def _usable(table: Table, request: Request) -> tuple[Table, int]:
    """Leave out the rows without a target, and say how many there were."""
    if request.target not in table.header:
        names = ", ".join(table.header[:12])
        raise UsageError(f"{request.path}: no column {request.target!r}; there are: {names}")
    place = table.header.index(request.target)
    rows = [row for row in table.rows if row[place].strip()]
    kept = Table(table.header, rows, list(range(2, len(rows) + 2)))
    return kept, len(table.rows) - len(rows)


def _target(request: Request, cells: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the values of the target, and its classes if it has any."""
    numbers = [parse_number(cell) for cell in cells]
    wanted = METRICS.get(request.metric).kind.name if request.metric else None
    kinds = set(cells)
    numeric = not any(math.isnan(n) for n in numbers)
    whole = numeric and all(n == int(n) for n in numbers)
    as_class = not numeric or (whole and len(kinds) <= _FEW_NUMBERS)
    if wanted is not None:
        as_class = wanted in CLASS_FORMS
    if not as_class:
        if not numeric:
            raise UsageError(f"{request.path}: {request.target!r} is not all numbers")
        return cells, ()
    if not 2 <= len(kinds) <= MAX_CLASSES:
        raise UsageError(
            f"{request.path}: {request.target!r} has {len(kinds)} classes; a task takes 2 to "
            f"{MAX_CLASSES}"
        )
    order = sorted(kinds, key=lambda text: (parse_number(text) if numeric else 0.0, text))
    return cells, tuple(order)


def _metric(request: Request, classes: tuple[str, ...]) -> Metric:
    usual = "rmse" if not classes else "roc_auc" if len(classes) == 2 else "accuracy"
    metric = METRICS.get(request.metric or usual)
    if metric.kind.name not in FORMS:
        raise UsageError(f"{metric.name} is no metric for one column of a table; try {usual}")
    if metric.kind.name in ("score", "probability") and len(classes) != 2:
        raise UsageError(f"{metric.name} wants two classes, {request.target!r} has {len(classes)}")
    return metric


def _ids(request: Request, table: Table) -> tuple[str, list[str]]:
    """Return the id column: the one that is named, or one that is made and means nothing."""
    if request.id_column is not None:
        ids = table.column(request.id_column)
        if "" in ids or len(set(ids)) < len(ids):
            raise UsageError(f"{request.path}: {request.id_column!r} is empty or repeats itself")
        return request.id_column, ids
    name = next(n for n in ("id", "row_id", "sandmle_id") if n not in table.header)
    order = sorted(range(len(table.rows)), key=lambda i: _digest(request.seed, "id", str(i)))
    numbers = {row: 10_000 + place for place, row in enumerate(order)}
    return name, [f"r{numbers[i]}" for i in range(len(table.rows))]


def _digest(seed: int, *texts: str) -> str:
    return hashlib.sha256("\x1f".join((str(seed), *texts)).encode()).hexdigest()


def _units(request: Request, table: Table, features: Sequence[str]) -> list[str]:
    """Return what each row belongs to: its group, its time, or its features."""
    if request.group and request.time:
        raise UsageError("split by group or by time, not by both")
    name = request.group or request.time
    if name is not None:
        return table.column(name)
    places = [table.header.index(feature) for feature in features if feature in table.header]
    return ["\x1f".join(row[p] for p in places) for row in table.rows]


def _hidden(request: Request, units: Sequence[str]) -> list[bool]:
    """Choose the hidden rows: whole units, so that no twin of a hidden row can be learned from.

    Units go by a hash of what they are, or by time, the last first; the share is reached to within
    a unit.
    """
    if not 0 < request.test_share < 1:
        raise UsageError(f"a test share of {request.test_share} is not within (0, 1)")
    order = sorted(set(units), key=lambda unit: _digest(request.seed, unit))
    if request.time:
        order = by_time(order)[::-1]
    if len(order) < 4:
        raise UsageError(f"{request.path}: {len(order)} different units cannot be split")
    counts = Counter(units)
    chosen: set[str] = set()
    taken, wanted = 0, request.test_share * len(units)
    for unit in order[:-1]:
        if taken >= wanted:
            break
        chosen.add(unit)
        taken += counts[unit]
    return [unit in chosen for unit in units]


def by_time(times: Sequence[str]) -> list[str]:
    """Sort times: as numbers if all of them are, otherwise as text (ISO dates sort so)."""
    numbers = {time: parse_number(time) for time in times}
    plain = any(math.isnan(number) for number in numbers.values())
    return sorted(times, key=lambda time: (0.0 if plain else numbers[time], time))
