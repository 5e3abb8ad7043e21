"""Image cells: spots of several colours under light whose colour changes from place to place.

All spots are darker than their surroundings, and those of two opposite tints are to be marked. The
light changes the colour of a place as much as a tint does, so only the ratio to the surroundings
tells, and only its square or product: no tint is on one side of all others.
"""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.families.image_regions import shifted
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
from sandmle.factory.modalities.image.pixels import grid, swell, to_bytes
from sandmle.types import Record

_SIZE = 64
# two directions of colour that leave the brightness as it is: red against blue, green against both
_RED, _GREEN = np.array([1, 0, -1]) / np.sqrt(2), np.array([-1, 2, -1]) / np.sqrt(6)
_TRIES = 60  # to find places for spots
# strength of a tint, spread of the light's colour from picture to picture and from place to place
# (all in logarithms), grain in grey levels, chance that a spot is overlooked in train; by level
_LEVELS = (
    (0.26, 0.10, 0.08, 6, 0.04),
    (0.23, 0.12, 0.09, 6.5, 0.05),
    (0.21, 0.14, 0.10, 7, 0.06),
    (0.19, 0.16, 0.11, 7.5, 0.07),
    (0.17, 0.18, 0.12, 8, 0.08),
)


class ImageCellsConfig(Record):
    """The drawn parameters.

    `hue` is the angle of a wanted tint in degrees, from red towards green; the other is opposite,
    those not wanted are at right angles. `tint`, `cast` and `glow` are logarithms: how strong a
    tint is, how much the light's colour differs between pictures and between places. `ground` is
    the colour without tint and cast. In train a wanted spot is overlooked with chance `missed`.
    """

    hue: int
    tint: float
    cast: float
    glow: float
    ground: tuple[int, int, int]
    grain: float
    missed: float


class _Spot(NamedTuple):
    """An ellipse: its middle, the reach of its axes, and how far it is turned."""

    x: float
    y: float
    long: float
    short: float
    turn: float


@FAMILIES.register("image_cells")
class ImageCells(FamilyOf[ImageCellsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_cells"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "segmentation"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("mask",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["mask"]
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "dead_lines", "corner_stamp", "turned_camera", "swapped_channels",
        "stored_negative", "poor_exposure", "skewed_rows", "split_fields", "mirrored",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (60, 160)
    n_test: ClassVar[int] = 100
    n_pool: ClassVar[int] = 100
    config_type: ClassVar[type[Record]] = ImageCellsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the wanted tints; higher levels have fainter tints under more colourful light."""
        tint, cast, glow, grain, missed = _LEVELS[level - 1]
        # if red and blue are swapped, tints at 45 degrees become those at right angles to them
        hue = rng.integers(30, 61) + rng.choice((0, 90))
        return cls(
            ImageCellsConfig(
                hue=int(hue),
                tint=round(float(tint * rng.uniform(0.95, 1.05)), 3),
                cast=cast,
                glow=glow,
                ground=tuple(int(c) for c in rng.integers(135, 190, 3)),
                grain=round(float(grain * rng.uniform(0.9, 1.1)), 1),
                missed=missed,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        text = "colour picture with spots of several tints"
        return (Variable(name="feat_0", kind="image", abstract=text),)

    def outcome(self) -> Outcome:
        """Return a mask."""
        return Outcome("mask", shape=(_SIZE, _SIZE))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw spots for each row, and which of them someone marked, and how exactly."""
        pictures = np.empty(n, dtype=object)
        clean = np.zeros((n, _SIZE, _SIZE), dtype=bool)
        observed = np.zeros_like(clean)
        for i in range(n):
            depths = [_depth(spot) for spot in _spots(rng)]
            # by quarters of a turn from `hue`: one in three spots is of a wanted tint
            tints = rng.permutation(np.resize([0, 1, 3, 2, 1, 3], len(depths)))
            wanted = tints % 2 == 0
            pictures[i] = self._picture(rng, depths, tints)
            wrong = rng.random(len(depths)) < self.config.missed * np.where(wanted, 1, 0.3)
            edge = rng.uniform(-0.15, 0.15)  # outside or inside of the true one
            for depth, true, seen in zip(depths, wanted, wanted != wrong, strict=True):
                clean[i] |= (depth > 0) & true
                observed[i] |= (depth > edge) & seen
            observed[i] = shifted(observed[i], np.rint(rng.normal(size=2)))
        return Sample({"feat_0": pictures}, observed, clean)

    def _picture(
        self, rng: np.random.Generator, depths: list[NDArray[np.float64]], tints: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        config = self.config
        light = np.zeros((_SIZE, _SIZE, 3))
        for direction in (_RED, _GREEN):
            cast = config.cast * rng.normal() + config.glow * swell(rng, _SIZE, 90)
            light += cast[..., None] * direction
        light += 0.1 * swell(rng, _SIZE, 90)[..., None]
        for depth, tint in zip(depths, tints, strict=True):
            angle = np.radians(config.hue + 90 * tint)
            colour = config.tint * (np.cos(angle) * _RED + np.sin(angle) * _GREEN)
            spot = colour * rng.uniform(0.85, 1.15) - rng.uniform(0.1, 0.2)
            # a soft rim of about a pixel, and darker towards the middle
            light += np.clip(5 * depth + 0.5, 0, 1)[..., None] * spot
            light -= 0.15 * np.clip(depth, 0, 1)[..., None]
        grain = config.grain * rng.normal(size=light.shape)
        return to_bytes(np.array(config.ground) * np.exp(light) + grain)

    def rule(self) -> str:
        """Return the wanted tints."""
        config = self.config
        angle = np.radians(config.hue)
        red, green, blue = np.cos(angle) * _RED + np.sin(angle) * _GREEN
        return (
            "inside are the spots of feat_0 whose colour, as the logarithm of its ratio to the "
            f"ground around, is off by about {config.tint:g} along (red {red:+.2f}, green "
            f"{green:+.2f}, blue {blue:+.2f}) to either side, beside the darkening that all spots "
            "have; those off at right angles to that are outside; in train marks are off by about "
            f"a pixel and {config.missed:.0%} of the spots are overlooked"
        )

    def solution(self, names: Names) -> Solution:
        """Return the logarithms of the ratios to the ground around, and products of them."""
        return Solution(_FEATURES.format(**names), "linear")


def _spots(rng: np.random.Generator) -> list[_Spot]:
    """Return a dozen spots at most, none over another."""
    spots: list[_Spot] = []
    for _ in range(_TRIES):
        x, y = rng.uniform(4, _SIZE - 5, 2)
        long = rng.uniform(6, 9)
        spot = _Spot(x, y, long, long * rng.uniform(0.65, 1), rng.uniform(0, np.pi))
        if all(np.hypot(x - s.x, y - s.y) > 0.9 * (long + s.long) for s in spots):
            spots.append(spot)
        if len(spots) == 12:
            break
    return spots


def _depth(spot: _Spot) -> NDArray[Any]:
    """Return how deep each pixel lies in a spot: 1 in the middle, 0 at the rim, below 0 outside."""
    down, right = grid(_SIZE)
    down, right = down - spot.y, right - spot.x
    along = right * np.cos(spot.turn) + down * np.sin(spot.turn)
    across = down * np.cos(spot.turn) - right * np.sin(spot.turn)
    depth: NDArray[Any] = 1 - np.hypot(along / spot.long, across / spot.short)
    return depth


_FEATURES = '''
def features(frame):
    """How brightness and colour differ from the ground around, in logarithms, and products."""
    x = np.log(np.stack(frame["{feat_0}"]).astype(np.float32) + 1)
    ratio = x - ndimage.gaussian_filter(x, (0, 9, 9, 0))
    columns = []
    for k in (1, 2):
        red, green, blue = np.moveaxis(ndimage.gaussian_filter(ratio, (0, k, k, 0)), 3, 0)
        facts = [red + green + blue, red - blue, 2 * green - red - blue]
        columns += [*facts, *(facts[i] * facts[j] for i in range(3) for j in range(i, 3))]
    return np.stack(columns, axis=3)
'''
