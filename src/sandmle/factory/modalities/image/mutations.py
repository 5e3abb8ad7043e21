"""Faults of pictures: what they share.

A remedy works on the loaded pictures in the frames `train` and `test`, and leaves them bytes.
Faults lie one above the other as they come about, from the light through the camera to the file:
`layer` says where, and remedies take them off from above.
"""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Split
from sandmle.factory.mutation import Draft, Setting, TaskMutation, write
from sandmle.factory.story import StoryColumn

Bytes = NDArray[np.uint8]
PICTURES = ("image", "frames")
OPTICS, LIGHT, PRINT, SPECKS, LINES, STORAGE = range(1, 7)


class PictureMutation(TaskMutation):
    """A fault of a share of the pictures of one column; several may be on one picture."""

    column: str
    frames: bool
    share: float

    @property
    def touched(self) -> tuple[str, ...]:
        """Return nothing: faults of a picture lie one above the other."""
        return ()

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose the column of pictures, if there is one, and what `amounts` says."""
        column = setting.choose(rng, PICTURES)
        if column is None:
            return None
        frames = column.kind == "frames"
        return cls(column=column.name, frames=frames, **cls.amounts(rng, setting))

    @classmethod
    @abstractmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Draw the share of rows, and what else the fault has as parameters."""
        ...

    @abstractmethod
    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Return a picture with the fault."""
        ...

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Spoil a share of the rows, every picture of them."""
        cells = draft.cells[self.column]
        for row in draft.some(rng, self.share):
            cells[row] = self.each(cells[row], rng)

    def each(self, cell: Any, rng: np.random.Generator) -> Any:
        """Return a cell with the fault in its picture, or in each of its pictures."""
        if self.frames:
            return [self.spoil(picture, rng) for picture in cell]
        return self.spoil(cell, rng)

    def mending(self, function: str, source: str, only: str = "") -> str:
        """Return a remedy: the source of a function, applied to every picture of the column.

        With `only`, an expression for rows of `frame`, to the pictures of those rows.
        """
        mended = (
            f"[{function}(picture) for picture in cell]" if self.frames else f"{function}(cell)"
        )
        cells = f'cell in frame["{self.column}"]'
        if only:
            mended += " if wrong else cell"
            cells = f'cell, wrong in zip(frame["{self.column}"], {only})'
        return (
            f"{source.strip()}\n\n\n"
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [\n'
            f"        {mended}\n"
            f"        for {cells}\n"
            "    ]"
        )


class MarkedMutation(PictureMutation):
    """A fault of which a column says whether a row has it: its second value does."""

    mark: StoryColumn

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the column."""
        return (self.mark,)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Spoil a share of the rows and write down which."""
        rows = draft.some(rng, self.share)
        cells = draft.cells[self.column]
        for row in rows:
            cells[row] = self.each(cells[row], rng)
        right, wrong = self.mark.values
        marks = [right] * draft.n
        write(marks, rows, [wrong] * len(rows))
        draft.cells[self.mark.name] = marks

    @property
    def marked(self) -> str:
        """Return the expression for the rows of `frame` that have the fault."""
        return f'frame["{self.mark.name}"] == "{self.mark.values[1]}"'


def mark(name: str, description: str, values: tuple[str, ...], unit: str = "") -> StoryColumn:
    """Return a column that a fault adds."""
    return StoryColumn(
        name=name,
        variable=None,
        kind="category",
        relevant=False,
        unit=unit,
        description=description,
        values=values,
    )
