"""Faults of histories: days off, wrong signs, another unit in the past, days listed backwards.

They change single days of a cell, so several may lie on one history and are undone in any order.
A remedy works on the loaded histories, arrays of floats, in the frames `train` and `test`.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Split, VariableKind
from sandmle.factory.mutation import MUTATIONS, Draft, Setting, TaskMutation, spelled
from sandmle.factory.story import StoryColumn, fixed

Days = NDArray[np.float64]
_OFF = (3, 8)  # the shortest run of days off, and one more than the longest
_FACTOR = 1000.0


class SeriesMutation(TaskMutation):
    """A fault of a share of the rows of one column of lists of days."""

    column: str
    share: float

    @property
    def touched(self) -> tuple[str, ...]:
        """Return nothing: faults lie one above the other."""
        return ()


class HistoryMutation(SeriesMutation):
    """A fault that replaces some of the numbers of a history, spelled with `decimals`."""

    decimals: int

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose the history, and how many rows are hit."""
        column = setting.choose(rng, ("series",))
        if column is None:
            return None
        share = setting.share(0.5, 0.75)
        return cls(column=column.name, share=share, decimals=column.decimals, **cls.facts(column))

    @classmethod
    def facts(cls, column: StoryColumn) -> dict[str, Any]:
        """Return what else must be known of the column."""
        return {}

    @abstractmethod
    def spoil(self, days: Days, rng: np.random.Generator) -> Days:
        """Return a history with the fault."""
        ...

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Spoil a share of the histories."""
        cells = draft.cells[self.column]
        for row in draft.some(rng, self.share):
            days = np.array(cells[row].split(), dtype=float)
            cells[row] = " ".join(fixed(self.spoil(days, rng), self.decimals))


@MUTATIONS.register("outages")
class Outages(HistoryMutation):
    """In some runs of days nothing was counted, and 0 was written down."""

    name: ClassVar[str] = "outages"

    def spoil(self, days: Days, rng: np.random.Generator) -> Days:
        """Set two runs of days to 0."""
        days = days.copy()
        for _ in range(2):
            start = int(rng.integers(len(days) - _OFF[0]))
            days[start : start + int(rng.integers(*_OFF))] = 0
        return days

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"zeros in {self.column} lie between what the same weekday had before and after"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return f'''\
def without_outages(x):
    """Put what the same weekdays of other weeks had in the place of zeros."""
    x, days = x.copy(), np.arange(len(x))
    off = x == 0
    for weekday in np.unique(days[off] % 7):
        same = days % 7 == weekday
        x[same & off] = np.interp(days[same & off], days[same & ~off], x[same & ~off])
    return x


for frame in (train, test):
    frame["{self.column}"] = [without_outages(x) for x in frame["{self.column}"]]'''


@MUTATIONS.register("negative_days")
class NegativeDays(HistoryMutation):
    """Some days were booked with the wrong sign."""

    name: ClassVar[str] = "negative_days"

    def spoil(self, days: Days, rng: np.random.Generator) -> Days:
        """Turn the sign of one day in ten."""
        return np.where(rng.random(len(days)) < 0.1, -days, days) + 0.0  # no negative zero

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"negative numbers in {self.column} have the wrong sign"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [np.abs(x) for x in frame["{self.column}"]]'
        )


@MUTATIONS.register("old_unit")
class OldUnit(HistoryMutation):
    """Up to some day of their own, rows were kept in a unit a thousand times smaller."""

    name: ClassVar[str] = "old_unit"
    limit: float

    @classmethod
    def facts(cls, column: StoryColumn) -> dict[str, Any]:
        """Return the limit that only numbers in the smaller unit exceed."""
        return {"limit": float(f"{column.center * np.sqrt(_FACTOR):.4g}")}

    def spoil(self, days: Days, rng: np.random.Generator) -> Days:
        """Multiply the days before one of the last weeks."""
        change = int(rng.integers(len(days) // 2, len(days) - 3))
        return np.where(np.arange(len(days)) < change, _FACTOR * days, days)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"numbers of {self.column} above {self.limit:g} are {_FACTOR:g} times too large"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [\n'
            f"        np.where(np.abs(x) > {spelled(self.limit)}, x / {_FACTOR:g}, x)\n"
            f'        for x in frame["{self.column}"]\n'
            "    ]"
        )


class FlaggedMutation(SeriesMutation):
    """A fault that turns a list of days into another one, and is told by a column of its own."""

    kind: ClassVar[VariableKind]
    flag: StoryColumn

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose the column, and how many rows are hit."""
        column = setting.choose(rng, (cls.kind,))
        if column is None:
            return None
        return cls(column=column.name, share=setting.share(0.4, 0.5), flag=cls.flag_of(column))

    @staticmethod
    @abstractmethod
    def flag_of(column: StoryColumn) -> StoryColumn:
        """Return the column that tells, the value for rows without the fault first."""
        ...

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the column that tells."""
        return (self.flag,)

    @staticmethod
    @abstractmethod
    def turned(days: list[str]) -> list[str]:
        """Return a list of days with the fault."""
        ...

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Turn a share of the lists and say so."""
        cells, told = draft.cells[self.column], [self.flag.values[0]] * draft.n
        for row in draft.some(rng, self.share):
            cells[row] = " ".join(self.turned(cells[row].split()))
            told[row] = self.flag.values[1]
        draft.cells[self.flag.name] = told

    def undone(self, expression: str) -> str:
        """Return a remedy: `expression` for a list `x` with the fault."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [\n'
            f'        {expression} if told == "{self.flag.values[1]}" else x\n'
            f'        for x, told in zip(frame["{self.column}"], frame["{self.flag.name}"])\n'
            "    ]"
        )


@MUTATIONS.register("backward_days")
class BackwardDays(FlaggedMutation):
    """Some histories begin with the last day."""

    name: ClassVar[str] = "backward_days"
    kind: ClassVar[VariableKind] = "series"

    @staticmethod
    def flag_of(column: StoryColumn) -> StoryColumn:
        """Return the order of the export."""
        return StoryColumn(
            name="export_order",
            description=f"how the export sorted the days of {column.name}",
            kind="category",
            variable=None,
            relevant=False,
            values=("ascending", "descending"),
        )

    @staticmethod
    def turned(days: list[str]) -> list[str]:
        """Return the days backwards."""
        return days[::-1]

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return (
            f"{self.column} is turned around where {self.flag.name} is {self.flag.values[1]!r}: "
            "the last day comes first there"
        )

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.undone("x[::-1]")


@MUTATIONS.register("inverted_plan")
class InvertedPlan(FlaggedMutation):
    """In some plans the days that are left out have the 1."""

    name: ClassVar[str] = "inverted_plan"
    kind: ClassVar[VariableKind] = "plan"

    @staticmethod
    def flag_of(column: StoryColumn) -> StoryColumn:
        """Return what is marked."""
        return StoryColumn(
            name="plan_marks",
            description=f"which days have the 1 in {column.name}",
            kind="category",
            variable=None,
            relevant=False,
            values=("planned days", "all others"),
        )

    @staticmethod
    def turned(days: list[str]) -> list[str]:
        """Return the plan with 0 and 1 exchanged."""
        return ["1" if day == "0" else "0" for day in days]

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return (
            f"0 and 1 change places in {self.column} where {self.flag.name} is "
            f"{self.flag.values[1]!r}"
        )

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.undone("1 - x")
