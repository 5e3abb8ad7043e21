"""Faults of pictures from sensor and storage: dead pixels, stamps, turned or inverted files."""

from typing import Any, ClassVar

import numpy as np

from sandmle.factory.family import Split
from sandmle.factory.modalities.image.mutations import (
    LINES,
    PRINT,
    SPECKS,
    STORAGE,
    Bytes,
    MarkedMutation,
    PictureMutation,
    mark,
)
from sandmle.factory.mutation import MUTATIONS, Draft, Setting
from sandmle.factory.story import StoryColumn

_SMALLEST = 64  # pixels along a side of the smallest pictures


@MUTATIONS.register("salt_and_pepper")
class SaltAndPepper(PictureMutation):
    """Some pixels are white or black."""

    name: ClassVar[str] = "salt_and_pepper"
    layer: ClassVar[int] = SPECKS
    amount: float

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pixels."""
        return {"share": 1.0, "amount": setting.share(0.04, 0.08)}

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
        return self.mending(
            "without_specks",
            """
def without_specks(picture):
    middle = ndimage.median_filter(picture, (3, 3) + (1,) * (picture.ndim - 2))
    return np.where((picture == 0) | (picture == 255), middle, picture)
""",
        )


@MUTATIONS.register("dead_lines")
class DeadLines(PictureMutation):
    """Some rows and columns of the sensor always give the same value."""

    name: ClassVar[str] = "dead_lines"
    layer: ClassVar[int] = LINES
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    value: int

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose the lines, none beside another, and whether they are dark or light."""
        n = round(setting.share(3, 5))
        places = [1 + 2 * rng.permutation(_SMALLEST // 2 - 1)[:n] for _ in range(2)]
        rows, columns = (tuple(sorted(some.tolist())) for some in places)
        value = int(rng.choice((rng.integers(10, 30), rng.integers(225, 245))))
        return {"share": 1.0, "rows": rows, "columns": columns, "value": value}

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Overwrite the lines."""
        spoiled = picture.copy()
        spoiled[list(self.rows)] = self.value
        spoiled[:, list(self.columns)] = self.value
        return spoiled

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"rows and columns of {self.column} that are the same everywhere: copy the next one"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_dead_lines",
            f"""
def without_dead_lines(picture):
    rows, columns = np.array({list(self.rows)}), np.array({list(self.columns)})
    whole = picture.copy()
    whole[rows] = whole[rows - 1]
    whole[:, columns] = whole[:, columns - 1]
    return whole
""",
        )


@MUTATIONS.register("corner_stamp")
class CornerStamp(PictureMutation):
    """A share of the pictures has a plate of one colour near a corner, any of the four."""

    name: ClassVar[str] = "corner_stamp"
    layer: ClassVar[int] = PRINT
    value: int
    shape: tuple[int, int]

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures, and how large and light the plate is."""
        shape = (int(rng.integers(7, 10)), int(rng.integers(14, 19)))
        value = int(rng.choice((rng.integers(3, 15), rng.integers(240, 252))))
        return {"share": setting.share(0.6, 0.8), "value": value, "shape": shape}

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Cover a corner, one or two pixels from the rims."""
        (height, width), spoiled = self.shape, picture.copy()
        (top, left), (low, right) = rng.integers(1, 3, 2), rng.integers(0, 2, 2)
        down = picture.shape[0] - height - top if low else top
        across = picture.shape[1] - width - left if right else left
        spoiled[down : down + height, across : across + width] = self.value
        return spoiled

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"plates of grey {self.value} in {self.column} are filled with what is beside them"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_stamp",
            f"""
def without_stamp(picture):
    plain = (picture.reshape(*picture.shape[:2], -1) == {self.value}).all(axis=2)
    stamp = ndimage.binary_opening(ndimage.binary_closing(plain), np.ones((4, 8)))
    hidden = ndimage.binary_dilation(stamp, iterations=2)
    _, (down, right) = ndimage.distance_transform_edt(hidden, return_indices=True)
    return picture[down, right]
""",
        )


@MUTATIONS.register("turned_camera")
class TurnedCamera(PictureMutation):
    """A share of the pictures is turned by quarters; a column says by how many."""

    name: ClassVar[str] = "turned_camera"
    layer: ClassVar[int] = STORAGE
    turns: StoryColumn

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures."""
        what = "how far the camera was turned clockwise"
        turns = mark("camera_turn", what, ("0", "90", "180", "270"), "degrees")
        return {"share": setting.share(0.5, 0.75), "turns": turns}

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
        for row in rows:
            k = int(quarters[row])
            several = cells[row] if self.frames else [cells[row]]
            turned = [np.rot90(picture, k).copy() for picture in several]
            cells[row] = turned if self.frames else turned[0]
        draft.cells[self.turns.name] = [self.turns.values[k] for k in quarters]

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"pictures in {self.column} are turned back by {self.turns.name}"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        back = "[np.rot90(one, -k) for one in cell]" if self.frames else "np.rot90(cell, -k)"
        return (
            "for frame in (train, test):\n"
            f'    quarters = frame["{self.turns.name}"] // 90\n'
            f'    pairs = zip(frame["{self.column}"], quarters)\n'
            f'    frame["{self.column}"] = [{back} for cell, k in pairs]'
        )


@MUTATIONS.register("stored_negative")
class StoredNegative(MarkedMutation):
    """A share of the pictures is stored as negatives; a column says which."""

    name: ClassVar[str] = "stored_negative"
    layer: ClassVar[int] = STORAGE

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures."""
        column = mark("picture_tone", "how the picture was stored", ("positive", "negative"))
        return {"share": setting.share(0.35, 0.5), "mark": column}

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Invert the picture."""
        return 255 - picture

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"pictures in {self.column} whose {self.mark.name} is negative are inverted back"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        inverted = "def inverted(picture):\n    return 255 - picture"
        return self.mending("inverted", inverted, self.marked)


@MUTATIONS.register("swapped_channels")
class SwappedChannels(MarkedMutation):
    """In a share of the colour pictures red and blue are swapped; a column says in which."""

    name: ClassVar[str] = "swapped_channels"
    layer: ClassVar[int] = STORAGE

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures."""
        column = mark("picture_export", "software that saved the picture", ("v1.8", "v2.0"))
        return {"share": setting.share(0.35, 0.5), "mark": column}

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Reverse the channels."""
        return picture[..., ::-1].copy()

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        wrong = f"{self.mark.name} {self.mark.values[1]}"
        return f"pictures in {self.column} of {wrong} have red and blue swapped back"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        swapped = "def swapped(picture):\n    return picture[..., ::-1]"
        return self.mending("swapped", swapped, self.marked)
