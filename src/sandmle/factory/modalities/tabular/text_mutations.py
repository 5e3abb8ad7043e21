"""Faults of spelling: decimal commas, units in cells, one word written in several ways."""

from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import Split
from sandmle.factory.mutation import (
    MUTATIONS,
    NUMERIC,
    ColumnMutation,
    Draft,
    Setting,
    write,
)


@MUTATIONS.register("decimal_comma")
class DecimalComma(ColumnMutation):
    """Some rows have a comma for the decimal point."""

    name: ClassVar[str] = "decimal_comma"

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a numeric column with decimals."""
        with_decimals = tuple(c for c in setting.free if c.decimals > 0)
        column = setting._replace(free=with_decimals).choose(rng, NUMERIC)
        return None if column is None else cls(column=column.name, share=setting.share(0.45, 0.75))

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Write a share of the cells with a comma."""
        rows = draft.some(rng, self.share)
        cells = draft.cells[self.column]
        write(cells, rows, [cells[i].replace(".", ",") for i in rows])

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"a comma in {self.column} is a decimal point"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        name = self.column
        return (
            "for frame in (train, test):\n"
            f'    frame["{name}"] = frame["{name}"].astype(str).str.replace(",", ".").astype(float)'
        )


@MUTATIONS.register("unit_text")
class UnitText(ColumnMutation):
    """Some cells have their unit behind the number."""

    name: ClassVar[str] = "unit_text"
    unit: str

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a numeric column with a unit."""
        with_unit = tuple(c for c in setting.free if c.unit)
        column = setting._replace(free=with_unit).choose(rng, NUMERIC)
        if column is None:
            return None
        return cls(column=column.name, unit=column.unit, share=setting.share(0.45, 0.75))

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Append the unit to a share of the cells."""
        rows = draft.some(rng, self.share)
        cells = draft.cells[self.column]
        write(cells, rows, [cells[i] and f"{cells[i]} {self.unit}" for i in rows])

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"cells of {self.column} are numbers, some with {self.unit} behind them"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        name = self.column
        return (
            "for frame in (train, test):\n"
            f'    frame["{name}"] = frame["{name}"].astype(str).str.split(" ").str[0].astype(float)'
        )


@MUTATIONS.register("spelling")
class Spelling(ColumnMutation):
    """One word of a category is written in several ways."""

    name: ClassVar[str] = "spelling"

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose a category."""
        column = setting.choose(rng, ("category",), least=2)
        return None if column is None else cls(column=column.name, share=setting.share(0.4, 0.65))

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Write a share of the cells in capitals, with underscores or with blanks around them."""
        rows = draft.some(rng, self.share)
        cells = draft.cells[self.column]
        ways = rng.integers(0, 4, len(rows))
        write(cells, rows, [_respell(cells[i], way) for i, way in zip(rows, ways, strict=True)])

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"capitals, underscores and outer blanks mean nothing in {self.column}"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        name = self.column
        return (
            "for frame in (train, test):\n"
            f'    frame["{name}"] = frame["{name}"].str.strip().str.lower().str.replace("_", " ")'
        )


def _respell(word: str, way: int) -> str:
    ways = (word.upper(), word.title(), f" {word.upper()} ", f"{word.replace(' ', '_').title()} ")
    return ways[way] if ways[way] != word else f" {word}"
