"""Counting: how many things of one colour, or of one form, lie among others.

Things are larger in some pictures than in others, and other things lie between them, so that
neither the mean colour nor the amount of edges says how many there are. Whoever cuts the things
out, sorts them into kinds and counts each kind needs a linear model only.
"""

from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    FamilyOf,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    Variable,
)
from sandmle.factory.modalities.image.pixels import Floats, scattered, swell, to_bytes
from sandmle.types import Record

_SIZE = 64
_CELLS = 4  # each thing lies in a cell of its own, of which there are 4 x 4
_ANGLES = {"red": 0, "yellow": 60, "cyan": 180, "blue": 240}  # on the circle of colours
# what counts, and what lies about: also the colours it has in a negative, or with channels swapped
_HUES: tuple[tuple[str, ...], ...] = (
    ("red", "cyan", "blue"), ("yellow", "blue", "cyan"),
    ("cyan", "red", "yellow"), ("blue", "yellow", "red"),
)  # fmt: skip
# saturation, spread of hues in degrees, spread of the noise of single pixels, most things; by level
_LEVELS = ((0.42, 8, 8, 12), (0.4, 8, 9, 13), (0.38, 9, 9, 14), (0.36, 9, 10, 15),
           (0.34, 10, 10, 16))  # fmt: skip

Form = Literal["disc", "ring", "thing"]


class ImageCountConfig(Record):
    """The drawn parameters.

    Things have the `hues`, and are discs or rings. Those of the first hue count, if they are of the
    `form`. A share `miscounted` of the labels is one too high or too low.
    """

    hues: tuple[str, ...]
    form: Form
    saturation: float
    hue_spread: float
    grain: float
    most: int
    miscounted: float


@FAMILIES.register("image_count")
class ImageCount(FamilyOf[ImageCountConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_count"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("count",)
    metrics: ClassVar[tuple[str, ...]] = ("mae", "rmse")
    mutations: ClassVar[tuple[str, ...]] = (
        "colour_cast", "stored_negative", "swapped_channels", "skewed_rows", "split_fields",
        "biased_recorder", "double_entry",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (80, 180)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = ImageCountConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what counts; at higher levels colours are paler and more things are about."""
        saturation, hue_spread, grain, most = _LEVELS[level - 1]
        forms: tuple[Form, ...] = ("disc", "ring", "thing")
        return cls(
            ImageCountConfig(
                hues=_HUES[int(rng.integers(len(_HUES)))],
                form=forms[int(rng.integers(3))],
                saturation=round(saturation * rng.uniform(0.95, 1.05), 3),
                hue_spread=hue_spread,
                grain=round(grain * rng.uniform(0.9, 1.1), 1),
                most=most,
                miscounted=round(rng.uniform(0.25, 0.4), 3),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        return (Variable(name="feat_0", kind="image", abstract="colour picture of small things"),)

    def outcome(self) -> Outcome:
        """Return a number of things."""
        return Outcome("count")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw things for each row, and count those that count; some counts are wrong by one."""
        pictures, clean = np.empty(n, dtype=object), np.zeros(n, dtype=np.int64)
        for row in range(n):
            pictures[row], clean[row] = self._picture(rng)
        off = np.where(rng.random(n) < self.config.miscounted, rng.choice((-1, 1), n), 0)
        return Sample({"feat_0": pictures}, np.abs(clean + off), clean)

    def _picture(self, rng: np.random.Generator) -> tuple[NDArray[np.uint8], int]:
        """Return a picture and how many things in it count."""
        config, cells = self.config, _CELLS**2
        there = rng.permutation(cells) < rng.integers(3, config.most + 1)
        # what counts is common in some pictures and rare in others
        often = rng.uniform(0.15, 0.85) if config.form == "thing" else rng.uniform(0.25, 1)
        first, ring = rng.random(cells) < often, rng.random(cells) < 0.5
        counts = {"thing": first, "ring": first & ring, "disc": first & ~ring}[config.form]
        hue = np.where(first, 0, rng.integers(1, len(config.hues), cells))
        angle = np.array([_ANGLES[name] for name in config.hues])[hue]
        angle = angle + config.hue_spread * rng.normal(size=cells)
        return self._drawn(rng, there, ring, angle), int((counts & there).sum())

    def _drawn(
        self,
        rng: np.random.Generator,
        there: NDArray[np.bool_],
        ring: NDArray[np.bool_],
        angle: Floats,
    ) -> NDArray[np.uint8]:
        """Paint one thing in each cell where one is `there`."""
        config, cells = self.config, _CELLS**2
        radius = rng.uniform(3.2, 5.4) * rng.uniform(0.9, 1.1, cells)
        light = rng.uniform(85, 140) + rng.uniform(-15, 15, cells)
        mine, x, y = scattered(rng, _SIZE, _CELLS, radius)
        away = np.hypot(x, y)
        inside = np.clip(radius[mine] - away + 0.5, 0, 1)
        inside *= np.where(ring[mine], np.clip(away - 0.5 * radius[mine] + 0.5, 0, 1), 1)
        inside *= there[mine]
        ground = rng.uniform(80, 150) + 12 * swell(rng, _SIZE, 28)
        channels = []
        for turn in (0, 120, 240):
            paint = light * (1 + config.saturation * np.cos(np.radians(angle - turn)))
            channels.append(ground + inside * (paint[mine] - ground))
        grain = config.grain * rng.standard_normal((_SIZE, _SIZE, 3), dtype=np.float32)
        return to_bytes(np.stack(channels, axis=2) + grain)

    def rule(self) -> str:
        """Return what counts."""
        config = self.config
        return (
            f"the number of {config.hues[0]} {config.form}s in feat_0; in train a share "
            f"{config.miscounted:g} of the numbers is one too high or too low"
        )

    def solution(self, names: Names) -> Solution:
        """Return how many things of each kind there are, and a linear model."""
        return Solution(_FEATURES.format(**names), "linear")


_FEATURES = '''
def colours(pictures):
    """How colourful each pixel is, as the length of an arrow that points to its hue."""
    x = np.stack(pictures).astype(np.float32)
    arrows = x @ np.exp(2j * np.pi * np.arange(3) / 3).astype(np.complex64)
    return ndimage.gaussian_filter(arrows, (0, 0.8, 0.8))


def things(pictures):
    """Everything colourful: the picture it is in, its hue, and how much there is in its middle."""
    colour = colours(pictures)
    beside = np.zeros((3, 3, 3))
    beside[1] = 1  # pixels touch within a picture only
    parts, n = ndimage.label(np.abs(colour) > limit, beside)
    picture, y, x = np.nonzero(parts)
    part, hue = parts[parts > 0] - 1, colour[parts > 0]
    size = np.bincount(part)
    strength = np.bincount(part, np.abs(hue)) / size

    def mean(values):
        return np.bincount(part, values) / size

    away = (x - mean(x)[part]) ** 2 + (y - mean(y)[part]) ** 2
    reach = 0.3 * mean(away)
    core = np.bincount(part, np.abs(hue) * (away < reach[part])) / (np.pi * reach + 1e-9)
    facts = np.column_stack([mean(hue.real), mean(hue.imag), core]) / strength[:, None]
    large = size > 12
    return mean(picture)[large].round().astype(int), facts[large]


limit = 0.2 * np.quantile(np.abs(colours(train["{feat_0}"])), 0.99)
kinds = KMeans(8, n_init=3, random_state=0).fit(things(train["{feat_0}"])[1])


def features(frame):
    """How many things of each kind there are."""
    picture, facts = things(frame["{feat_0}"])
    counts = np.zeros((len(frame), 8))
    np.add.at(counts, (picture, kinds.predict(facts)), 1)
    return counts
'''
