"""Faults of pictures from optics and light: a camera that moves, poor exposure, coloured lamps."""

from typing import Any, ClassVar

import numpy as np

from sandmle.factory.modalities.image.mutations import (
    LIGHT,
    OPTICS,
    Bytes,
    MarkedMutation,
    PictureMutation,
    mark,
)
from sandmle.factory.modalities.image.pixels import smeared, to_bytes
from sandmle.factory.mutation import MUTATIONS, Setting


@MUTATIONS.register("motion_blur")
class MotionBlur(MarkedMutation):
    """A share of the pictures is smeared along one line: the camera moves, the shutter is slow."""

    name: ClassVar[str] = "motion_blur"
    layer: ClassVar[int] = OPTICS
    length: float
    angle: float

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures, how far and in which direction."""
        angle, length = rng.uniform(0, np.pi), rng.uniform(7.5, 9)
        column = mark("shutter", "time that the shutter was open", ("1/500", "1/15"), "s")
        return {
            "share": setting.share(0.5, 0.7),
            "mark": column,
            "length": round(length, 1),
            "angle": round(angle, 2),
        }

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Smear the picture."""
        return to_bytes(smeared(picture.astype(float), self.angle, self.length))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return (
            f"pictures in {self.column} with {self.mark.name} {self.mark.values[1]} are smeared "
            f"over {self.length:g} pixels, {np.degrees(self.angle):.0f} degrees from the rows: a "
            "Wiener filter"
        )

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        source = _SHARP.format(length=self.length, angle=self.angle)
        return self.mending("sharp", source, self.marked)


_SHARP = """
def sharp(picture):
    margin = [(16, 16)] * 2 + [(0, 0)] * (picture.ndim - 2)
    wide = np.pad(picture.astype(float), margin, mode="reflect")
    down, right = np.fft.fftfreq(wide.shape[0])[:, None], np.fft.fftfreq(wide.shape[1])
    smear = np.sinc({length} * (right * np.cos({angle}) + down * np.sin({angle})))
    undo = (smear / (smear**2 + 0.01)).reshape(smear.shape + (1,) * (picture.ndim - 2))
    back = np.fft.ifft2(np.fft.fft2(wide, axes=(0, 1)) * undo, axes=(0, 1)).real
    return back[16:-16, 16:-16].clip(0, 255).round().astype(np.uint8)
"""


@MUTATIONS.register("poor_exposure")
class PoorExposure(PictureMutation):
    """A share of the pictures has less contrast, and is too light or too dark."""

    name: ClassVar[str] = "poor_exposure"
    layer: ClassVar[int] = LIGHT
    gain: float

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures, and how little contrast is left in the worst of them."""
        gain = round(float(rng.uniform(0.25, 0.4)), 2)
        return {"share": setting.share(0.5, 0.7), "gain": gain}

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Move every value towards a grey of its own."""
        gain, grey = rng.uniform(self.gain, 2 * self.gain), rng.uniform(70, 185)
        return to_bytes(grey + gain * (picture.astype(float) - 128))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"some pictures in {self.column} are flat, light or dark: bring all to one contrast"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "exposed",
            """
def exposed(picture):
    x = picture.astype(float)
    level = 128 + 24 * (x - np.median(x)) / max(x.std(), 1)
    return level.clip(0, 255).round().astype(np.uint8)
""",
        )


@MUTATIONS.register("colour_cast")
class ColourCast(PictureMutation):
    """Lamps of different colours: a share of the pictures has a cast; for colour pictures."""

    name: ClassVar[str] = "colour_cast"
    layer: ClassVar[int] = LIGHT
    strength: float

    @classmethod
    def amounts(cls, rng: np.random.Generator, setting: Setting) -> dict[str, Any]:
        """Choose how many pictures, and how strong the lamps are coloured."""
        return {"share": setting.share(0.7, 0.9), "strength": setting.share(0.3, 0.4)}

    def spoil(self, picture: Bytes, rng: np.random.Generator) -> Bytes:
        """Multiply each channel by a factor of its own; the mean brightness stays."""
        factors = np.exp(rng.uniform(-self.strength, self.strength, 3))
        return to_bytes(picture * (factors / factors.mean()))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"pictures in {self.column} have a cast: give all channels the same median"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_cast",
            """
def without_cast(picture):
    middle = np.median(picture, axis=(0, 1)).clip(1)
    return (picture * (middle.mean() / middle)).clip(0, 255).round().astype(np.uint8)
""",
        )
