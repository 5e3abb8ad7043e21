"""Faults of numeric values: sentinels, spikes, mixed units, swapped fields, another device."""

from itertools import permutations
from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import Split
from sandmle.factory.mutation import (
    MUTATIONS,
    NUMERIC,
    ColumnMutation,
    Draft,
    Setting,
    TaskMutation,
    edge,
    numbers,
    spelled,
    write,
)
from sandmle.factory.story import StoryColumn, fixed

_SENTINELS = ("-999", "-9999")


@MUTATIONS.register("sentinel")
class Sentinel(ColumnMutation):
    """A value that was not taken is written as an impossible number."""

    name: ClassVar[str] = "sentinel"
    value: str

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a numeric column."""
        column = setting.choose(rng, NUMERIC)
        if column is None:
            return None
        value = _SENTINELS[int(rng.integers(len(_SENTINELS)))]
        return cls(column=column.name, value=value, share=setting.share(0.06, 0.14))

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Overwrite a share of the cells."""
        rows = draft.some(rng, self.share)
        write(draft.cells[self.column], rows, [self.value] * len(rows))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"{self.value} in {self.column} stands for a missing value"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = frame["{self.column}"].replace({self.value}, np.nan)'
        )


@MUTATIONS.register("spikes")
class Spikes(ColumnMutation):
    """Some values are far outside of anything possible."""

    name: ClassVar[str] = "spikes"
    low: float
    high: float
    size: float
    decimals: int

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a numeric column; amounts are skewed by themselves and left alone."""
        column = setting.choose(rng, ("number", "reading"))
        if column is None:
            return None
        return cls(
            column=column.name,
            low=edge(column, -1),
            high=edge(column, 1),
            size=column.spread,
            decimals=column.decimals,
            share=setting.share(0.05, 0.1),
        )

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Throw a share of the values 20 to 60 spreads up or down."""
        rows = draft.some(rng, self.share)
        far = rng.uniform(20, 60, len(rows)) * rng.choice([-1.0, 1.0], len(rows)) * self.size
        cells = draft.cells[self.column]
        write(cells, rows, fixed(numbers(cells, rows) + far, self.decimals))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"values of {self.column} beyond 8 robust spreads are errors: treat them as gaps"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        name = self.column
        return (
            f'middle = train["{name}"].median()\n'
            f'spread = 1.48 * (train["{name}"] - middle).abs().median()\n'
            "for frame in (train, test):\n"
            f'    usual = (frame["{name}"] - middle).abs() < 8 * spread\n'
            f'    frame["{name}"] = frame["{name}"].where(usual)'
        )


@MUTATIONS.register("unit_mixup")
class UnitMixup(ColumnMutation):
    """Some rows have a column in another unit, told by its size only."""

    name: ClassVar[str] = "unit_mixup"
    factor: float
    limit: float
    decimals: int

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a column whose values, times a factor, lie apart from themselves."""
        column = setting.choose(rng, NUMERIC)
        if column is None:
            return None
        low, high = edge(column, -1), edge(column, 1)
        factors = [f for f in (10.0, 100.0, 1000.0, 1e6) if low > 0 and low * f > 1.1 * high]
        if not factors:
            return None
        factor = factors[int(rng.integers(min(2, len(factors))))]
        return cls(
            column=column.name,
            factor=factor,
            limit=float(f"{np.sqrt(high * low * factor):.4g}"),
            decimals=column.decimals,
            share=setting.share(0.12, 0.35),
        )

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Multiply a share of the values."""
        rows = draft.some(rng, self.share)
        cells = draft.cells[self.column]
        write(cells, rows, fixed(self.factor * numbers(cells, rows), self.decimals))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"values of {self.column} above {self.limit:g} are {self.factor:g} times too large"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        name = self.column
        return (
            "for frame in (train, test):\n"
            f'    frame["{name}"] = frame["{name}"].where(frame["{name}"] < {spelled(self.limit)}, '
            f'frame["{name}"] / {spelled(self.factor)})'
        )


@MUTATIONS.register("swapped_fields")
class SwappedFields(TaskMutation):
    """Two columns were filled in the wrong order in some rows."""

    name: ClassVar[str] = "swapped_fields"
    low: str
    high: str
    limit: float
    share: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose two columns with ranges apart, one of them relevant."""
        columns = [c for c in setting.free if c.kind == "number"]
        pairs = [
            (a, b)
            for a, b in permutations(columns, 2)
            if (a.relevant or b.relevant) and edge(a, 1) < edge(b, -1)
        ]
        if not pairs:
            return None
        low, high = pairs[int(rng.integers(len(pairs)))]
        limit = float(f"{(edge(low, 1) + edge(high, -1)) / 2:.5g}")
        return cls(low=low.name, high=high.name, limit=limit, share=setting.share(0.12, 0.3))

    @property
    def touched(self) -> tuple[str, ...]:
        """Return both columns."""
        return (self.low, self.high)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Exchange the cells of a share of the rows."""
        low, high = draft.cells[self.low], draft.cells[self.high]
        for row in draft.some(rng, self.share):
            low[row], high[row] = high[row], low[row]

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"where {self.low} is above {self.limit:g}, it and {self.high} are exchanged"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        pair, turned = f'["{self.low}", "{self.high}"]', f'["{self.high}", "{self.low}"]'
        return (
            "for frame in (train, test):\n"
            f"    frame[{pair}] = frame[{pair}].astype(float)\n"
            f'    wrong = frame["{self.low}"] > {spelled(self.limit)}\n'
            f"    frame.loc[wrong, {pair}] = frame.loc[wrong, {turned}].to_numpy()"
        )


@MUTATIONS.register("recalibrated")
class Recalibrated(TaskMutation):
    """Devices of a second type read higher or lower; all rows of the test are from that type."""

    name: ClassVar[str] = "recalibrated"
    column: str
    offset: float
    decimals: int
    share: float
    flag: StoryColumn

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a column and two types."""
        column = setting.choose(rng, ("number", "reading"))
        if column is None:
            return None
        types = setting.skin.version
        first, second = rng.permutation(len(types.values))[:2]
        offset = round(float(rng.uniform(2.5, 4.0) * rng.choice([-1.0, 1.0])), 2)
        return cls(
            column=column.name,
            offset=round(offset * column.spread, column.decimals),
            decimals=column.decimals,
            share=0.5,
            flag=StoryColumn(
                name=types.name,
                description=types.description,
                kind="category",
                variable=None,
                relevant=False,
                values=(types.values[first], types.values[second]),
            ),
        )

    @property
    def touched(self) -> tuple[str, ...]:
        """Return the column and the type's."""
        return (self.column, self.flag.name)

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the type of the device."""
        return (self.flag,)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Move the values of the second type."""
        types = [self.flag.values[0]] * draft.n
        rows = draft.some(rng, self.share if split == "train" else 1.0)
        write(types, rows, [self.flag.values[1]] * len(rows))
        draft.cells[self.flag.name] = types
        cells = draft.cells[self.column]
        write(cells, rows, fixed(numbers(cells, rows) + self.offset, self.decimals))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return (
            f"bring the mean of {self.column} in train to the same value for each {self.flag.name}"
        )

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        flag, name = self.flag.name, self.column
        return (
            f'means = train.groupby("{flag}")["{name}"].mean()\n'
            "for frame in (train, test):\n"
            f'    frame["{name}"] -= frame["{flag}"].map(means)'
        )
