"""Mutations: systematic faults of the data, each with the lines that undo it.

A mutation is a frozen record: which columns, how much. It changes the cells of a draft and gives
the remedy as source that works on the frames `train` and `test`, in which pictures and sounds are
loaded. What is left after all remedies and is still not a number in a numeric column is a gap.
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Cells, Split
from sandmle.factory.skin import Skin
from sandmle.factory.story import Story, StoryColumn
from sandmle.registry import Registry
from sandmle.tasks.cells import parse_number
from sandmle.types import Record

NUMERIC = ("number", "reading", "amount")
_EDGE = 4.5  # spreads within which every value of a column lies, nearly


@dataclass
class Draft:
    """Rows that are being made: cells by column, and the abstract target as observed.

    A cell is text, or what will be a file: a picture, a list of them, a `Sound`, a document.
    `tables` are those of the sample; replace what is in them, never change it in place.
    """

    cells: dict[str, list[Any]]
    observed: NDArray[Any]
    tables: dict[str, dict[str, Cells]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return len(self.observed)

    def some(self, rng: np.random.Generator, share: float) -> NDArray[np.int64]:
        """Return the positions of a share of the rows, in order."""
        return np.sort(rng.permutation(self.n)[: round(share * self.n)])


class Setting(NamedTuple):
    """Where mutations are drawn: the story, its skin, and the columns that are still untouched."""

    story: Story
    skin: Skin
    free: tuple[StoryColumn, ...]
    level: int

    def choose(
        self, rng: np.random.Generator, kinds: Iterable[str], least: int = 0
    ) -> StoryColumn | None:
        """Return one of the free relevant columns of these kinds with at least so many values."""
        fitting = [
            c for c in self.free if c.relevant and c.kind in kinds and len(c.values) >= least
        ]
        return fitting[int(rng.integers(len(fitting)))] if fitting else None

    def share(self, low: float, high: float) -> float:
        """Return the share of rows that are hit, growing with the level."""
        return round(low + (high - low) * (self.level - 1) / 4, 3)


class TaskMutation(Record):
    """One mutation of one task. A class is registered under `name`; `sort` is what it works on.

    Of several on the same cells, those of a higher `layer` come later, and are undone before.
    """

    name: ClassVar[str]
    sort: ClassVar[Literal["cells", "labels"]] = "cells"
    layer: ClassVar[int] = 0

    @classmethod
    @abstractmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose columns and amounts; None where the task has nothing that it could change."""
        ...

    @property
    @abstractmethod
    def touched(self) -> tuple[str, ...]:
        """Return the columns that no other mutation may change."""
        ...

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the columns that it adds."""
        return ()

    @abstractmethod
    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Change a draft in place."""
        ...

    @property
    @abstractmethod
    def recovery(self) -> str:
        """Return in a sentence how it is undone."""
        ...

    @abstractmethod
    def remedy(self, target: str) -> str:
        """Return the lines that undo it; `target` is the name of the target's column."""
        ...


class ColumnMutation(TaskMutation):
    """A mutation of a share of the cells of one column."""

    column: str
    share: float

    @property
    def touched(self) -> tuple[str, ...]:
        """Return the column."""
        return (self.column,)


MUTATIONS: Registry[type[TaskMutation]] = Registry(
    "mutation",
    builtins=(
        "sandmle.factory.modalities.tabular.value_mutations",
        "sandmle.factory.modalities.tabular.text_mutations",
        "sandmle.factory.modalities.tabular.label_mutations",
        "sandmle.factory.modalities.text.word_mutations",
        "sandmle.factory.modalities.text.passage_mutations",
        "sandmle.factory.modalities.series.mutations",
        "sandmle.factory.modalities.image.light_mutations",
        "sandmle.factory.modalities.image.camera_mutations",
        "sandmle.factory.modalities.image.readout_mutations",
        "sandmle.factory.modalities.audio.mutations",
        "sandmle.factory.modalities.audio.recorder_mutations",
        "sandmle.factory.modalities.graph.mutations",
    ),
    group="sandmle.mutations",
)


def draw_mutations(
    rng: np.random.Generator, setting: Setting, names: Iterable[str], forced: Iterable[str], n: int
) -> tuple[TaskMutation, ...]:
    """Draw `n` mutations, forced ones first; fewer if no more apply. At most one is of labels."""
    forced = tuple(forced)
    others = [name for name in names if name not in forced]
    order = [*forced, *(others[i] for i in rng.permutation(len(others)))]
    drawn: list[TaskMutation] = []
    for name in order:
        sort = MUTATIONS.get(name)
        if len(drawn) == n:
            break
        if sort.sort == "labels" and any(one.sort == "labels" for one in drawn):
            continue
        one = sort.draw(rng, setting)
        if one is not None:
            drawn.append(one)
            free = tuple(c for c in setting.free if c.name not in one.touched)
            setting = setting._replace(free=free)
    # labels last: an entry is copied as it stands in the file, and is the first to be undone
    return tuple(sorted(drawn, key=lambda one: (one.sort == "labels", one.layer)))


def edge(column: StoryColumn, side: int) -> float:
    """Return the value that nearly all values of a numeric column lie below (1) or above (-1)."""
    if column.kind == "amount":
        return column.center * float(np.exp(side * _EDGE))
    return column.center + side * _EDGE * column.spread


def numbers(cells: list[str], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return some cells of a column as numbers, NaN for an empty one."""
    return np.array([parse_number(cells[i]) for i in rows])


def write(cells: list[str], rows: NDArray[np.int64], texts: Iterable[str]) -> None:
    """Replace some cells of a column."""
    for row, text in zip(rows, texts, strict=True):
        cells[row] = text


def spelled(value: float) -> str:
    """Return a limit as it is written into a script."""
    return f"{value:.6g}"
