"""From the abstract to a story: which column a variable becomes, and how its cells are spelled."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Family, OutcomeKind, SideTable, Variable, VariableKind
from sandmle.factory.skin import Amount, Labels, Quantity, Skin
from sandmle.types import Record

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
    """The target column; `classes` as spelled in the files, `labels` as the story calls them."""

    name: str
    kind: OutcomeKind
    unit: str
    meaning: str
    classes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    center: float = 0.0
    spread: float = 1.0
    decimals: int = 0


class StoryTable(Record):
    """A side table as it is shipped: its name, its columns with descriptions, its cells."""

    file: str
    columns: tuple[StoryColumn, ...]
    rows: tuple[tuple[str, ...], ...]


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

    def column(self, name: str) -> StoryColumn:
        """Return the column with this name."""
        return next(column for column in self.columns if column.name == name)


def tell(skin: Skin, family: Family, by_label: bool, rng: np.random.Generator) -> Story:
    """Choose a column of the skin for each variable; `by_label` if a submission names classes."""
    pick = _Picker(skin, rng)
    side = family.side_table()
    columns = tuple(pick(v, key=side.key if side else None) for v in family.variables())
    ask = getattr(skin, family.outcome().kind)
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
        target=_target(ask, family, by_label),
        columns=columns,
        table=_table(skin, side, columns) if side else None,
    )


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


def _target(ask: Labels | Quantity | Amount, family: Family, by_label: bool) -> StoryTarget:
    outcome = family.outcome()
    facts: dict[str, Any] = {"name": ask.name, "kind": outcome.kind, "meaning": ask.meaning}
    if isinstance(ask, Labels):
        labels = _spread_out(ask.classes, outcome.size)
        classes = labels if by_label else ("0", "1")
        return StoryTarget(**facts, unit="", classes=classes, labels=labels)
    center = ask.center if isinstance(ask, Quantity) else ask.typical
    spread = ask.spread if isinstance(ask, Quantity) else AMOUNT_SPREAD
    return StoryTarget(**facts, unit=ask.unit, center=center, spread=spread, decimals=ask.decimals)


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
) -> list[str]:
    """Spell abstract values as the cells of a column; `group` names the groups."""
    if column.kind in ("number", "reading"):
        return fixed(column.center + column.spread * values, column.decimals)
    if column.kind == "amount":
        return fixed(column.center * np.exp(values), column.decimals)
    if column.kind in ("latitude", "longitude"):
        return fixed(values, 4)
    return [_word(column, value, group) for value in values]


def _word(column: StoryColumn, value: Any, group: Callable[[int], str]) -> str:
    if column.kind == "time":
        return (_EPOCH + timedelta(minutes=int(value))).strftime("%Y-%m-%d %H:%M")
    if column.kind == "category":
        return column.values[int(value)]
    return group(int(value)) if column.kind == "group" else str(value)


def target_values(target: StoryTarget, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the abstract values of a quantity in the units of the story."""
    scaled = target.spread * values
    return target.center * np.exp(scaled) if target.kind == "amount" else target.center + scaled


def spell_target(target: StoryTarget, values: NDArray[Any]) -> list[str]:
    """Spell abstract target values as cells."""
    if target.classes:
        return [target.classes[int(i)] for i in values]
    return fixed(target_values(target, values), target.decimals)


def fixed(values: NDArray[np.float64], decimals: int) -> list[str]:
    """Spell numbers with a fixed number of decimals; NaN is an empty cell."""
    return ["" if isnan(value) else f"{value:.{decimals}f}" for value in values]
