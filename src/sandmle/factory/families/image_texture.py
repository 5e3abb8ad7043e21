"""Texture: two sets of lines cross, and classes differ in one statistic of them.

It is their period, the angle between them, or how much they wander. Everything else is random in
every picture, how the lines lie first of all, so that brightness, small copies and directions of
edges say little. Whoever looks at the spectrum, and turns it to where it is strongest, sees all.
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
from sandmle.factory.modalities.image.pixels import Floats, grid, swell, to_bytes
from sandmle.types import Record

Statistic = Literal["period", "angle", "wander"]

_SIZE = 64
_STATISTICS: tuple[Statistic, ...] = ("period", "angle", "wander")
_UNITS = {"period": "pixels", "angle": "degrees", "wander": "radians of phase"}
_MEANING = {
    "period": "the distance from line to line",
    "angle": "the angle between the two sets of lines",
    "wander": "how far the lines stray from being straight and even",
}
# what a statistic is where it does not count: between these, in every picture anew
_FREE: dict[Statistic, tuple[float, float]] = {
    "period": (5.0, 8.5),
    "angle": (35.0, 85.0),
    "wander": (0.2, 0.8),
}
# how faint the lines can be where it counts
_FAINT: dict[Statistic, float] = {"period": 0.55, "angle": 1.0, "wander": 1.0}
_SHARES = (0.4, 0.27, 0.2, 0.13)  # of the classes, divided by their sum


class ImageTextureConfig(Record):
    """The drawn parameters.

    `values[i]` is the statistic of class i, give or take `scatter`; lines differ by `contrast` grey
    levels from their surroundings, on `clouds` and `grain`; a share `wrong` of labels is random.
    """

    statistic: Statistic
    values: tuple[float, ...]
    scatter: float
    contrast: float
    clouds: float
    grain: float
    wrong: float


@FAMILIES.register("image_texture")
class ImageTexture(FamilyOf[ImageTextureConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_texture"
    modality: ClassVar[str] = "image"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = (
        "accuracy", "macro_f1", "balanced_accuracy", "log_loss_multiclass", "mcc",
    )  # fmt: skip
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "motion_blur", "dead_lines", "skewed_rows", "split_fields",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = ImageTextureConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which statistic counts and its values; higher levels have them closer together."""
        hard = (level - 1) / 4
        statistic = _STATISTICS[int(rng.integers(3))]
        n_classes = int(rng.integers(3, 5))
        values, scatter = _ladder(rng, statistic, n_classes, hard)
        return cls(
            ImageTextureConfig(
                statistic=statistic,
                values=tuple(float(round(v, 2)) for v in rng.permutation(values)),
                scatter=round(scatter, 3),
                contrast=round(float(rng.uniform(13, 16) - 3 * hard) * _FAINT[statistic], 1),
                clouds=round(float(rng.uniform(8, 12) + 4 * hard), 1),
                grain=round(float(rng.uniform(9, 12) + 4 * hard), 1),
                wrong=round(0.03 + 0.04 * hard, 3),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        text = "grey picture of a surface with two sets of lines"
        return (Variable(name="feat_0", kind="image", abstract=text),)

    def outcome(self) -> Outcome:
        """Return a class for each value."""
        return Outcome("classes", len(self.config.values))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a surface for each row."""
        values = np.array(self.config.values)
        shares = np.array(_SHARES[: len(values)])
        clean = rng.choice(len(values), n, p=shares / shares.sum())
        scatter = self.config.scatter * rng.uniform(-1, 1, n)
        pictures = np.empty(n, dtype=object)
        for i, value in enumerate(values[clean] + scatter):
            pictures[i] = self._picture(rng, value)
        wrong = rng.random(n) < self.config.wrong
        observed = np.where(wrong, rng.integers(0, len(values), n), clean)
        return Sample({"feat_0": pictures}, observed, clean)

    def _picture(self, rng: np.random.Generator, value: float) -> NDArray[np.uint8]:
        config = self.config
        facts = {name: rng.uniform(*_FREE[name]) for name in _STATISTICS}
        facts[config.statistic] = value
        turn = rng.uniform(0, np.pi)
        both = [
            _lines(rng, angle, facts["period"], facts["wander"])
            for angle in (turn, turn + np.radians(facts["angle"]))
        ]
        share = rng.uniform(0.4, 0.6)
        lines = config.contrast * rng.uniform(0.8, 1.2) * (share * both[0] + (1 - share) * both[1])
        background = rng.uniform(95, 160) + config.clouds * swell(rng, _SIZE, 40)
        return to_bytes(background + 2 * lines + config.grain * rng.normal(size=(_SIZE, _SIZE)))

    def rule(self) -> str:
        """Return the value of each class."""
        config, unit = self.config, _UNITS[self.config.statistic]
        classes = "; ".join(f"class {i}: {v:g} {unit}" for i, v in enumerate(config.values))
        return (
            f"the class is told by {_MEANING[config.statistic]} in feat_0, give or take "
            f"{config.scatter:g}: {classes}; in train {config.wrong:.1%} of the labels are random"
        )

    def solution(self, names: Names) -> Solution:
        """Return the spectrum by radius, and by angle in a way that no turn changes."""
        return Solution(_FEATURES.format(**names), "kernel")


def _ladder(
    rng: np.random.Generator, statistic: Statistic, n: int, hard: float
) -> tuple[Floats, float]:
    """Return the values of a statistic for `n` classes, and how much pictures of a class differ."""
    steps: Floats = np.arange(n).astype(np.float64)
    values: Floats
    if statistic == "period":
        step = 1.18 - 0.05 * hard
        values = rng.uniform(4.6, 5.2) * step**steps
        return values, 0.12 * (step - 1) * 5
    if statistic == "angle":
        gap = (60 - 10 * hard) / (n - 1)
        values = 88 - rng.uniform(0, 4) - gap * steps
        return values, 0.12 * gap
    values = rng.uniform(0.0, 0.15) + (2.4 - 0.4 * hard) / (n - 1) * steps
    return values, 0.05


def _lines(rng: np.random.Generator, angle: float, period: float, wander: float) -> Floats:
    """Return waves from -1 to 1 across a direction, that stray by `wander` radians of phase."""
    down, right = grid(_SIZE)
    phase = (right * np.cos(angle) + down * np.sin(angle)) * (2 * np.pi / period)
    waves: Floats = np.cos(phase + rng.uniform(0, 2 * np.pi) + wander * swell(rng, _SIZE, 25))
    return waves


_FEATURES = '''
def features(frame):
    """The spectrum by radius, by angle from where it is strongest, and how peaked it is."""
    x = np.stack(frame["{feat_0}"]).astype(float)
    x -= ndimage.gaussian_filter(x, (0, 6, 6))
    size = x.shape[1]
    window = np.hanning(size)[:, None] * np.hanning(size)
    power = np.abs(np.fft.fft2(x * window)) ** 2
    down, right = np.meshgrid(*2 * [np.fft.fftfreq(size) * size], indexing="ij")
    radius, angle = np.hypot(down, right), np.arctan2(down, right) % np.pi
    inside = (radius > 5) & (radius < 20)
    power, radius, angle = power[:, inside], radius[inside], angle[inside]
    ring = ((radius - 5) / 15 * 30).astype(int)
    sector = (angle / np.pi * 36).astype(int) % 36
    by_ring = np.stack([power[:, ring == k].mean(axis=1) for k in range(30)], axis=1)
    by_sector = np.stack([power[:, sector == k].mean(axis=1) for k in range(36)], axis=1)
    spectrum = np.fft.rfft(np.sqrt(by_sector), axis=1)
    turned = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :19]
    highest = np.sort(power, axis=1)[:, :-60:-1].cumsum(axis=1)[:, [1, 3, 7, 15, 30, 58]]
    total = power.sum(axis=1, keepdims=True)
    return np.hstack([
        ndimage.gaussian_filter1d(np.log(by_ring / total), 0.7, axis=1),
        turned / turned[:, :1], np.log(highest / total),
    ])
'''
