"""Faults of pictures: dead pixels, turned cameras.

A remedy works on the loaded pictures in the frames `train` and `test`.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Split
from sandmle.factory.mutation import MUTATIONS, Draft, Setting, TaskMutation
from sandmle.factory.story import StoryColumn

Bytes = NDArray[np.uint8]
PICTURES = ("image", "frames")


class PictureMutation(TaskMutation):
    """A fault of a share of the pictures of one column; several may be on one picture."""

    column: str
    share: float

    @property
    def touched(self) -> tuple[str, ...]:
        """Return nothing: faults of a picture lie one above the other."""
        return ()

    @classmethod
    def column_of(cls, rng: np.random.Generator, setting: Setting) -> StoryColumn | None:
        """Return the column of pictures, if there is one."""
        return setting.choose(rng, PICTURES)

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
        if isinstance(cell, list):
            return [self.spoil(picture, rng) for picture in cell]
        return self.spoil(cell, rng)


def mending(column: str, function: str, source: str) -> str:
    """Return a remedy that applies a function of a picture to all of a column."""
    return (
        f"{source.strip()}\n\n\n"
        "for frame in (train, test):\n"
        f'    frame["{column}"] = [\n'
        f"        [{function}(picture) for picture in cell] if isinstance(cell, list)\n"
        f"        else {function}(cell)\n"
        f'        for cell in frame["{column}"]\n'
        "    ]"
    )


@MUTATIONS.register("salt_and_pepper")
class SaltAndPepper(PictureMutation):
    """Some pixels are white or black."""

    name: ClassVar[str] = "salt_and_pepper"
    amount: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how many pixels."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        return cls(column=column.name, share=1.0, amount=setting.share(0.05, 0.12))

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Set pixels to an extreme, all channels at once."""
        spoiled = picture.copy()
        dice = rng.random(picture.shape[:2])
        spoiled[dice < self.amount / 2] = 0
        spoiled[dice > 1 - self.amount / 2] = 255
        return spoiled

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"single black and white pixels of {self.column} take the median around them"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return mending(
            self.column,
            "without_specks",
            """
def without_specks(picture):
    size = (3, 3) + (1,) * (picture.ndim - 2)
    middle = ndimage.median_filter(picture, size)
    return np.where((picture == 0) | (picture == 255), middle, picture)
""",
        )


@MUTATIONS.register("turned_camera")
class TurnedCamera(PictureMutation):
    """A share of the pictures is turned by quarters; a column says by how many."""

    name: ClassVar[str] = "turned_camera"
    turns: StoryColumn

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how many pictures."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        turns = StoryColumn(
            name="camera_turn",
            variable=None,
            kind="category",
            relevant=False,
            unit="degrees",
            description="how far the camera was turned clockwise",
            values=("0", "90", "180", "270"),
        )
        return cls(column=column.name, share=setting.share(0.5, 0.75), turns=turns)

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the column that says how far."""
        return (self.turns,)

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Do nothing: rows are turned together with their column."""
        return picture

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Turn a share of the rows and write down how far."""
        quarters = np.zeros(draft.n, dtype=int)
        rows = draft.some(rng, self.share)
        quarters[rows] = rng.integers(1, 4, len(rows))
        cells = draft.cells[self.column]
        for row, k in enumerate(quarters):
            turned = [np.rot90(one, k).copy() for one in _listed(cells[row])]
            cells[row] = turned if isinstance(cells[row], list) else turned[0]
        draft.cells[self.turns.name] = [self.turns.values[k] for k in quarters]

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"pictures in {self.column} are turned back by {self.turns.name}"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    quarters = frame["{self.turns.name}"] // 90\n'
            f'    frame["{self.column}"] = [\n'
            "        [np.rot90(one, -k) for one in cell] if isinstance(cell, list)\n"
            "        else np.rot90(cell, -k)\n"
            f'        for cell, k in zip(frame["{self.column}"], quarters)\n'
            "    ]"
        )


def _listed(cell: Any) -> list[Bytes]:
    return cell if isinstance(cell, list) else [cell]
