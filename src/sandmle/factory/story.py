"""From the abstract to a story: which column a variable becomes, and how its cells are spelled."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Family, OutcomeKind, SideTable, Table, Variable, VariableKind
from sandmle.factory.skin import Amount, Ask, Labels, Quantity, Skin
from sandmle.types import Record

ASSETS: tuple[VariableKind, ...] = (
    "image",
    "frames",
    "audio",
    "document",
)  # a cell of these is the path of a file
TEXTS: tuple[VariableKind, ...] = ("note", "document")
NAMED: tuple[VariableKind, ...] = ("group", "node", "query")
IN_LOGS = ("amount", "forecast")
ASKS = {"relevance": "ranking", "shares": "classes"}  # other kinds are asked under their own name
_EPOCH = datetime(2023, 1, 1)  # a Sunday
AMOUNT_SPREAD = 0.8  # of the logarithm of an `amount` target


class StoryColumn(Record):
    """One column of train.csv and test.csv; `variable` is None for one that a mutation added.

    `center` and `spread` are those of the values, for an `amount` of typical size and unused.
    """

    name: str
    variable: str | None
    kind: VariableKind
    relevant: bool
    unit: str = ""
    description: str
    center: float = 0.0
    spread: float = 1.0
    decimals: int = 0
    values: tuple[str, ...] = ()
    prefix: str = ""


class StoryTarget(Record):
    """The target; `classes` as spelled in the files, `labels` as the story calls them.

    For `tags` and `shares` the classes are the columns. `nouns` are those of the text that a `span`
    comes from, `shape` is that of the picture that a `mask` or `boxes` belong to, and `most` how
    many boxes a row may have.
    """

    name: str
    kind: OutcomeKind
    unit: str
    meaning: str
    classes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    center: float = 0.0
    spread: float = 1.0
    decimals: int = 0
    nouns: tuple[str, ...] = ()
    shape: tuple[int, int] | None = None
    most: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the target's columns in train.csv."""
        return self.classes if self.kind in ("tags", "shares") else (self.name,)


class StoryTable(Record):
    """A side table as it is shipped: its name, its columns with descriptions, its cells."""

    file: str
    columns: tuple[StoryColumn, ...]
    rows: tuple[tuple[str, ...], ...]


class StoryFile(Record):
    """A table that every draw brings its own rows of, and what is said of it."""

    path: str
    description: str
    columns: dict[str, str]


class Story(Record):
    """A skin cut down to what one task uses."""

    slug: str
    domain: str
    title: str
    background: str
    ask: str
    verified: str
    justification: str
    id_column: str
    id_prefix: str
    target: StoryTarget
    columns: tuple[StoryColumn, ...]
    table: StoryTable | None = None
    files: tuple[StoryFile, ...] = ()

    def column(self, name: str) -> StoryColumn:
        """Return the column with this name."""
        return next(column for column in self.columns if column.name == name)


def tell(skin: Skin, family: Family, by_label: bool, rng: np.random.Generator) -> Story:
    """Choose a column of the skin for each variable; `by_label` if a submission names classes."""
    pick = _Picker(skin, rng)
    side = family.side_table()
    columns = tuple(pick(v, key=side.key if side else None) for v in family.variables())
    kind = family.outcome().kind
    ask = getattr(skin, ASKS.get(kind, kind))
    return Story(
        slug=skin.slug,
        domain=skin.domain,
        title=ask.title,
        background=skin.story.strip(),
        ask=ask.ask,
        verified=skin.verified,
        justification=skin.justification,
        id_column=skin.id.name,
        id_prefix=skin.id.prefix,
        target=_target(ask, family, by_label, columns),
        columns=tuple(_dated(c) if kind == "forecast" and c.kind == "time" else c for c in columns),
        table=_table(skin, side, columns) if side else None,
        files=tuple(_file(skin, table) for table in family.tables()),
    )


def _dated(column: StoryColumn) -> StoryColumn:
    """Say of the time of a forecast what it is the time of."""
    first = "first of the coming days; the history ends the day before"
    return column.model_copy(update={"description": first})


class _Picker:
    """Hands out each column of a skin once, in an order drawn for the task."""

    def __init__(self, skin: Skin, rng: np.random.Generator) -> None:
        self._skin = skin
        self._measures = self._shuffled(rng, skin.measures)
        self._levels = self._shuffled(rng, skin.levels)
        self._places = self._shuffled(rng, skin.readings.places)
        self._categories = self._shuffled(rng, skin.categories)
        self._rng = rng

    @staticmethod
    def _shuffled(rng: np.random.Generator, items: Sequence[Any]) -> list[Any]:
        return [items[i] for i in rng.permutation(len(items))]

    def __call__(self, variable: Variable, key: str | None) -> StoryColumn:
        make: dict[str, Callable[[], dict[str, Any]]] = {
            "number": lambda: dict(self._measures.pop()),
            "amount": self._level,
            "reading": self._reading,
            "category": lambda: self._category(variable, key),
            "node": lambda: self._node(variable),
            "series": self._series,
            "note": lambda: self._text(variable),
            "document": lambda: self._text(variable),
        }
        skin: Any = self._skin
        chosen = make.get(variable.kind, lambda: dict(getattr(skin, variable.kind)))()
        return StoryColumn(
            variable=variable.name, kind=variable.kind, relevant=variable.relevant, **chosen
        )

    def _level(self) -> dict[str, Any]:
        level = dict(self._levels.pop())
        center = level.pop("typical")
        return {**level, "center": center}

    def _series(self) -> dict[str, Any]:
        history = self._skin.history
        return {
            "name": history.name,
            "unit": history.unit,
            "description": f"{history.description}, a number for each day, the latest last",
            "center": history.typical,
            "decimals": history.decimals,
        }

    def _node(self, variable: Variable) -> dict[str, Any]:
        node = self._skin.node
        return {**dict(node), "name": f"{node.name}_{variable.name}"}

    def _text(self, variable: Variable) -> dict[str, Any]:
        nouns = self._shuffled(self._rng, self._skin.nouns)[: variable.size]
        return {**dict(getattr(self._skin, variable.kind)), "values": tuple(nouns)}

    def _reading(self) -> dict[str, Any]:
        readings = dict(self._skin.readings)
        place = self._places.pop()
        del readings["places"]
        texts = {name: readings[name].format(place) for name in ("name", "description")}
        return {**readings, **texts}

    def _category(self, variable: Variable, key: str | None) -> dict[str, Any]:
        if variable.name == key:
            site = self._skin.site.key
            values = tuple(f"{site.prefix}{i + 1}" for i in range(variable.size))
            return {**dict(site), "values": values}
        category = dict(self._categories.pop())
        chosen = self._rng.permutation(len(category["values"]))[: variable.size]
        return {**category, "values": tuple(category["values"][i] for i in chosen)}


def _target(
    ask: Ask, family: Family, by_label: bool, columns: Sequence[StoryColumn]
) -> StoryTarget:
    outcome = family.outcome()
    facts: dict[str, Any] = {"name": ask.name, "kind": outcome.kind, "meaning": ask.meaning}
    if isinstance(ask, Labels):
        labels = _spread_out(ask.classes, outcome.size)
        spelled = by_label or outcome.kind in ("tags", "shares")
        return StoryTarget(
            **facts, unit="", classes=labels if spelled else ("0", "1"), labels=labels
        )
    if isinstance(ask, Quantity):
        return StoryTarget(
            **facts, unit=ask.unit, center=ask.center, spread=ask.spread, decimals=ask.decimals
        )
    if isinstance(ask, Amount):
        spread = AMOUNT_SPREAD if outcome.kind == "amount" else 1.0
        return StoryTarget(
            **facts, unit=ask.unit, center=ask.typical, spread=spread, decimals=ask.decimals
        )
    nouns = next((c.values for c in columns if c.kind in TEXTS), ())
    return StoryTarget(**facts, unit="", nouns=nouns, shape=outcome.shape, most=outcome.size)


def _file(skin: Skin, table: Table) -> StoryFile:
    def told(text: str) -> str:
        for mark, words in (
            ("{id}", skin.id.name),
            ("{edge}", skin.edge.description),
            ("{node}", skin.node.name),
        ):
            text = text.replace(mark, words)
        return text

    return StoryFile(
        path=table.path,
        description=told(table.description),
        columns={told(name): told(what) for name, what in table.columns.items()},
    )


def _spread_out(labels: tuple[str, ...], size: int) -> tuple[str, ...]:
    """Take `size` labels in their order, the first and the last among them."""
    return tuple(labels[round(i * (len(labels) - 1) / (size - 1))] for i in range(size))


def _table(skin: Skin, side: SideTable, columns: Sequence[StoryColumn]) -> StoryTable:
    site = skin.site
    key = next(column for column in columns if column.variable == side.key)
    sources = {"latitude": site.latitude, "longitude": site.longitude, "capacity": site.capacity}
    made = [StoryColumn(**{**dict(key), "description": "as in train.csv and test.csv"})]
    for name in side.columns:
        source = dict(sources[name])
        kind = "number" if name == "capacity" else name
        made.append(StoryColumn(variable=name, kind=kind, relevant=True, **source))
    cells = [key.values, *(spell(c, side.columns[str(c.variable)]) for c in made[1:])]
    return StoryTable(file=site.file, columns=tuple(made), rows=tuple(zip(*cells, strict=True)))


# --- cells ----------------------------------------------------------------------------------------


def spell(
    column: StoryColumn, values: NDArray[Any], group: Callable[[int], str] = str
) -> list[Any]:
    """Spell abstract values as the cells of a column; `group` names groups, nodes and queries.

    A cell that will be a file stays what it is until it is written.
    """
    if column.kind in ("number", "reading"):
        return fixed(column.center + column.spread * values, column.decimals)
    if column.kind == "amount":
        return fixed(column.center * np.exp(values), column.decimals)
    if column.kind in ("latitude", "longitude"):
        return fixed(values, 4)
    if column.kind in TEXTS:
        return [in_nouns(text, column.values) for text in values]
    if column.kind in ASSETS:
        return list(values)
    return [_word(column, value, group) for value in values]


def _word(column: StoryColumn, value: Any, group: Callable[[int], str]) -> str:
    if column.kind == "time":
        return (_EPOCH + timedelta(minutes=int(value))).strftime("%Y-%m-%d %H:%M")
    if column.kind == "category":
        return column.values[int(value)]
    if column.kind == "series":
        return " ".join(fixed(column.center * np.exp(value), column.decimals))
    if column.kind == "plan":
        return " ".join(str(int(day)) for day in value)
    return group(int(value)) if column.kind in NAMED else str(value)


def in_nouns(text: str, nouns: Sequence[str]) -> str:
    """Write a text of a family with the nouns of the story."""
    return re.sub(r"<(\d+)>", lambda found: nouns[int(found[1])], text)


def target_values(target: StoryTarget, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the abstract values of a quantity in the units of the story."""
    scaled = target.spread * values
    return target.center * np.exp(scaled) if target.kind in IN_LOGS else target.center + scaled


def fixed(values: NDArray[np.float64], decimals: int) -> list[str]:
    """Spell numbers with a fixed number of decimals; NaN is an empty cell."""
    return ["" if isnan(value) else f"{value:.{decimals}f}" for value in values]
