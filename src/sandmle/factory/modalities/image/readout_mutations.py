"""Faults of pictures that were read out in the wrong order: every value is there, elsewhere."""

from typing import Any, ClassVar

import numpy as np

from sandmle.factory.modalities.image.mutations import STORAGE, Bytes, MarkedMutation, mark
from sandmle.factory.mutation import MUTATIONS, Setting


class Readout(MarkedMutation):
    """A share of the pictures is read in another order; a column says which, but not how."""

    layer: ClassVar[int] = STORAGE
    told: ClassVar[tuple[str, str, tuple[str, str]]]
    function: ClassVar[str]
    source: ClassVar[str]

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures."""
        return {"share": setting.share(0.4, 0.55), "mark": mark(*cls.told)}

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(self.function, self.source, self.marked)


@MUTATIONS.register("skewed_rows")
class SkewedRows(Readout):
    """Each row starts one pixel later than the one above: the length of a line was taken wrong."""

    name: ClassVar[str] = "skewed_rows"
    told: ClassVar[tuple[str, str, tuple[str, str]]] = (
        "frame_grabber", "device that read the camera out", ("fg-2", "fg-3"),
    )  # fmt: skip
    function: ClassVar[str] = "unskewed"
    source: ClassVar[str] = """
def unskewed(picture):
    down, right = np.indices(picture.shape[:2])
    return picture[down, (right + down) % picture.shape[1]]
"""

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Shift every row to the right by its number, around the rim."""
        down, right = np.indices(picture.shape[:2])
        shifted: Bytes = picture[down, (right - down) % picture.shape[1]]
        return shifted

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"rows of {self.column} by {self.mark.values[1]} are skewed: shift row i left by i"


@MUTATIONS.register("split_fields")
class SplitFields(Readout):
    """The even lines stand above the odd ones: two fields were stored one after the other."""

    name: ClassVar[str] = "split_fields"
    told: ClassVar[tuple[str, str, tuple[str, str]]] = (
        "scan_mode", "how the camera read its lines", ("progressive", "interlaced"),
    )  # fmt: skip
    function: ClassVar[str] = "woven"
    source: ClassVar[str] = """
def woven(picture):
    whole = np.empty_like(picture)
    whole[::2], whole[1::2] = np.split(picture, 2)
    return whole
"""

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Put the even lines first."""
        return np.concatenate([picture[::2], picture[1::2]])

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"{self.mark.values[1]} pictures in {self.column} have the even lines above the odd"


@MUTATIONS.register("mirrored")
class Mirrored(Readout):
    """Left and right are exchanged: the camera looked into a mirror."""

    name: ClassVar[str] = "mirrored"
    told: ClassVar[tuple[str, str, tuple[str, str]]] = (
        "camera_view", "how the camera saw what it took", ("direct", "by mirror"),
    )  # fmt: skip
    function: ClassVar[str] = "unmirrored"
    source: ClassVar[str] = """
def unmirrored(picture):
    return picture[:, ::-1]
"""

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Exchange left and right."""
        return picture[:, ::-1].copy()

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"pictures in {self.column} that were taken {self.mark.values[1]} are turned over"
