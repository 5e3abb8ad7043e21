"""Image regions: a region that is told by nothing but the direction of its stripes.

Inside and outside are equally striped and nearly equally bright, so models of brightness see next
to nothing. Whoever computes the direction of the stripes around each pixel sees the region at once.
"""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    FamilyOf,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    Variable,
)
from sandmle.factory.modalities.image.pixels import clouds, grid, to_bytes
from sandmle.types import Record

_SIZE = 64
# strength of the stripes and of the grain in grey levels, degrees between inside and outside, by
# how many degrees a picture's stripes are turned, spread of the annotators' shifts in pixels
_LEVELS = (
    (30, 9, 90, 5, 1.0),
    (27, 10, 85, 6, 1.2),
    (25, 11, 78, 7, 1.4),
    (23, 12, 70, 8, 1.6),
    (21, 13, 62, 9, 1.8),
)


class ImageRegionsConfig(Record):
    """The drawn parameters: angles in degrees, lengths in pixels, all else in grey levels.

    Stripes inside run along `angle`, those outside `apart` from it to either side; a picture's are
    turned by `turn` in spread. Inside is brighter by `glow`. Annotators shift a region by `shift`
    in spread.
    """

    angle: int
    apart: int
    turn: int
    period: float
    stripes: float
    grain: float
    glow: float
    shift: float


@FAMILIES.register("image_regions")
class ImageRegions(FamilyOf[ImageRegionsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_regions"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "segmentation"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("mask",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["mask"]
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "dead_lines", "turned_camera", "skewed_rows", "split_fields",
        "mirrored",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (60, 160)
    n_test: ClassVar[int] = 80
    n_pool: ClassVar[int] = 100
    config_type: ClassVar[type[Record]] = ImageRegionsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the direction inside and the stripes; higher levels have fainter ones."""
        stripes, grain, apart, turn, shift = _LEVELS[level - 1]
        return cls(
            ImageRegionsConfig(
                angle=int(rng.integers(0, 180)),
                apart=apart,
                turn=turn,
                period=round(float(rng.uniform(4.5, 7)), 2),
                stripes=round(float(stripes * rng.uniform(0.9, 1.1)), 1),
                grain=round(float(grain * rng.uniform(0.9, 1.1)), 1),
                glow=round(float(rng.uniform(10, 15) * rng.choice((-1, 1))), 1),
                shift=shift,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        return (
            Variable(name="feat_0", kind="image", abstract="grey picture of a striped surface"),
        )

    def outcome(self) -> Outcome:
        """Return a mask."""
        return Outcome("mask", shape=(_SIZE, _SIZE))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a region for each row, and where an annotator saw it."""
        pictures = np.empty(n, dtype=object)
        clean = np.empty((n, _SIZE, _SIZE), dtype=bool)
        observed = np.empty_like(clean)
        for i in range(n):
            field = clouds(rng, _SIZE, 7)
            share = rng.uniform(0.16, 0.32)
            clean[i] = field > np.quantile(field, 1 - share)
            pictures[i] = self._picture(rng, clean[i])
            seen = field > np.quantile(field, 1 - share * rng.uniform(0.8, 1.2))
            observed[i] = shifted(seen, np.rint(rng.normal(size=2) * self.config.shift))
        return Sample({"feat_0": pictures}, observed, clean)

    def _picture(self, rng: np.random.Generator, inside: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Draw stripes of either direction that wind a little, under a lamp from one side."""
        config = self.config
        down, right = grid(_SIZE)
        first = config.angle + config.turn * rng.normal()
        second = first + config.apart * rng.choice((-1, 1)) + config.turn * rng.normal()
        winding = 1.3 * clouds(rng, _SIZE, 5)
        pace = 2 * np.pi / (config.period * rng.uniform(0.9, 1.1))
        stripes = []
        for angle in np.radians((first, second)):
            across = down * np.cos(angle) - right * np.sin(angle)
            stripes.append(np.sin(pace * across + winding + rng.uniform(0, 2 * np.pi)))
        lamp = rng.normal(size=2) * 20 / _SIZE
        light = rng.uniform(118, 138) + lamp[0] * (down - _SIZE / 2) + lamp[1] * (right - _SIZE / 2)
        surface = light + config.glow * inside + config.stripes * np.where(inside, *stripes)
        return to_bytes(surface + config.grain * rng.normal(size=inside.shape))

    def rule(self) -> str:
        """Return the direction of the stripes inside."""
        config = self.config
        return (
            f"a pixel of feat_0 is inside iff the stripes around it run at {config.angle} degrees "
            "(0 is from left to right, 90 downwards); outside they run "
            f"{config.apart} degrees apart from that, to either side; period {config.period:g} "
            f"pixels; in train the region is shifted by {config.shift:g} pixels in spread, and up "
            "to a fifth larger or smaller"
        )

    def solution(self, names: Names) -> Solution:
        """Return the direction of the steepest change around each pixel, on two scales."""
        return Solution(_FEATURES.format(**names), "linear")


def shifted(mask: NDArray[np.bool_], by: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a square mask moved by whole pixels down and right; its rim is continued."""
    down, right = (np.clip(np.arange(len(mask)) - int(k), 0, len(mask) - 1) for k in by)
    return mask[np.ix_(down, right)]


_FEATURES = '''
def features(frame):
    """The double angle and the strength of the steepest change around each pixel."""
    x = np.stack(frame["{feat_0}"]).astype(np.float32)
    down, right = (ndimage.gaussian_filter(x, (0, 1, 1), (0, *k)) for k in ((1, 0), (0, 1)))
    columns = []
    for k in (2.5, 5):
        a, b, c = (ndimage.gaussian_filter(p, (0, k, k)) for p in (down**2, right**2, down * right))
        strength = a + b + 1
        columns += [(a - b) / strength, 2 * c / strength, np.log(strength)]
    return np.stack(columns, axis=3)
'''
