"""Severity: how large single pits are, and how drawn out, at about the same pitted area.

A surface with few large pits is as dark as one with many small ones, the contrast differs from
picture to picture, and light specks lie between the pits, so that brightness says little. Whoever
cuts the dark pits out and takes the moments of each sees what the grade depends on.
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
    Scale,
    Solution,
    Split,
    Variable,
    cuts_of,
    graded,
    spell,
)
from sandmle.factory.modalities.image.pixels import Floats, scattered, swell, to_bytes
from sandmle.types import Record

_SIZE = 64
_CELLS = 4  # each pit or speck lies in a cell of its own, of which there are 4 x 4
_RADII = (2.2, 4.4)  # pixels, least and most of a picture's mean
_MIDDLE = 3.0  # radius of pits whose area is
_AREA = (100.0, 170.0)  # pixels, of all pits of a picture
_LONGEST = 2.2  # length of a pit, in widths
# contrast in grey levels, spread of the noise of single pixels and of clouds, noise of the grades,
# power of the radius that the pitted area grows with; by level
_LEVELS = ((60, 6, 5, 0.2, 1.5), (56, 8, 7, 0.22, 1.2), (52, 10, 9, 0.24, 0.9),
           (48, 12, 10, 0.27, 0.6), (44, 13, 11, 0.3, 0.3))  # fmt: skip


class ImageSeverityConfig(Record):
    """The drawn parameters.

    The grade is where the latent score, `size` times the logarithm of the radius plus `length`
    times that of length over width, lies among the `cuts`. The pitted area grows with a power
    `growth` of the radius. `contrast`, `grain` and `clouds` are grey levels.
    """

    size: float
    length: float
    cuts: tuple[float, ...]
    contrast: float
    grain: float
    clouds: float
    noise: float
    growth: float
    scale: Scale


@FAMILIES.register("image_severity")
class ImageSeverity(FamilyOf[ImageSeverityConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_severity"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "classification"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("ordinal",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["ordinal"]
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "dead_lines", "stored_negative", "skewed_rows", "split_fields",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = ImageSeverityConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what counts how much, and where the grades end."""
        contrast, grain, cloudy, noise, growth = _LEVELS[level - 1]
        grades = int(rng.integers(3, 5))
        signs = rng.choice((-1, 1), 2)
        config = ImageSeverityConfig(
            size=float(signs[0]),
            length=round(float(signs[1] * rng.uniform(0.3, 0.8)), 2),
            cuts=(),
            contrast=round(contrast * rng.uniform(0.95, 1.05), 1),
            grain=round(grain * rng.uniform(0.95, 1.05), 1),
            clouds=cloudy,
            noise=noise,
            growth=growth,
            scale=Scale(center=0, spread=1),
        )
        latent = cls(config)._latent(*_looks(rng, 4000))
        scale = Scale.of(latent)
        cuts = cuts_of(scale(latent), tuple((np.arange(1, grades) / grades).tolist()))
        return cls(config.model_copy(update={"cuts": cuts, "scale": scale}))

    def _latent(self, radius: Floats, longer: Floats) -> Floats:
        return self.config.size * np.log(radius) + self.config.length * np.log(longer)

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        return (Variable(name="feat_0", kind="image", abstract="grey picture of a pitted surface"),)

    def outcome(self) -> Outcome:
        """Return ordered grades of about the same size."""
        return Outcome("ordinal", len(self.config.cuts) + 1)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw how the pits of each row look, and paint them; grades in train have noise."""
        config = self.config
        radius, longer = _looks(rng, n)
        latent = config.scale(self._latent(radius, longer))
        observed, clean = graded(rng, latent, config.noise, config.cuts)
        pictures = np.empty(n, dtype=object)
        for row in range(n):
            pictures[row] = self._picture(rng, float(radius[row]), float(longer[row]))
        return Sample({"feat_0": pictures}, observed, clean)

    def _picture(self, rng: np.random.Generator, radius: float, longer: float) -> NDArray[np.uint8]:
        config, cells = self.config, _CELLS**2
        area = rng.uniform(*_AREA) * (radius / _MIDDLE) ** config.growth
        pits = int(np.clip(round(area / (np.pi * radius**2)), 2, 11))
        order = rng.permutation(cells)
        specks = rng.integers(1, 6)
        # darker in the pits, lighter in the specks, nothing in the other cells
        change = np.where(order < pits, -1.0, np.where(order < pits + specks, 0.9, 0.0))
        change *= config.contrast * rng.uniform(0.75, 1.25)
        sizes = np.where(order < pits, radius, rng.uniform(1.8, 3.5)) * rng.uniform(0.9, 1.1, cells)
        lengths = np.where(order < pits, longer, rng.uniform(1, _LONGEST, cells))
        ground = rng.uniform(105, 150) + config.clouds * swell(rng, _SIZE, 32)
        grain = config.grain * rng.standard_normal((_SIZE, _SIZE), dtype=np.float32)
        return to_bytes(ground + _ellipses(rng, sizes, lengths, change) + grain)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        total = f"{spell(config.size, 'log(r)')} {spell(config.length, 'log(q)')}"
        return (
            f"s = ({total} {-config.scale.center:+g}) / {config.scale.spread:g}, r being the mean "
            "radius in pixels of the dark pits in feat_0, and q their length over their width; "
            "the class, counted from 0, is the number of cuts "
            f"{', '.join(f'{cut:g}' for cut in config.cuts)} that s reaches; in train, normal "
            f"noise of {config.noise:g} is added to s"
        )

    def solution(self, names: Names) -> Solution:
        """Return the moments of the pits."""
        return Solution(_FEATURES.format(**names), "kernel")


def _looks(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Return the mean radius of the pits, and their length over their width, of `n` pictures."""
    least, most = np.log(_RADII)
    return np.exp(rng.uniform(least, most, n)), np.exp(rng.uniform(0, np.log(_LONGEST), n))


def _ellipses(rng: np.random.Generator, sizes: Floats, lengths: Floats, change: Floats) -> Floats:
    """Return the change of grey that an ellipse in each cell makes."""
    turn = rng.uniform(0, np.pi, len(sizes))
    long, short = sizes * np.sqrt(lengths), sizes / np.sqrt(lengths)
    mine, x, y = scattered(rng, _SIZE, _CELLS, long)
    along = x * np.cos(turn)[mine] + y * np.sin(turn)[mine]
    across = y * np.cos(turn)[mine] - x * np.sin(turn)[mine]
    away = np.hypot(along / long[mine], across / short[mine])
    inside: Floats = np.clip((1 - away) * short[mine] + 0.5, 0, 1)
    return inside * change[mine]


_FEATURES = '''
def slow(x):
    """What changes slowly over each picture (n, 64, 64): its first six waves in both directions."""
    size = x.shape[1]
    waves = np.cos(np.pi * np.outer(np.arange(size) + 0.5, np.arange(6)) / size)
    waves /= np.linalg.norm(waves, axis=0)
    return waves @ (waves.T @ x @ waves) @ waves.T


def dark(pictures):
    """How much darker than its surroundings each pixel is, from 0 to about 1."""
    x = ndimage.gaussian_filter(np.stack(pictures).astype(np.float32), (0, 0.8, 0.8))
    rest = x - slow(x)
    for _ in range(2):
        high = 2 * rest.std(axis=(1, 2), keepdims=True)
        rest = x - slow(np.where(np.abs(rest) > high, x - rest, x))
    return -rest / np.quantile(-rest, 0.985, axis=(1, 2), keepdims=True)


def features(frame):
    """How large and how drawn out the pits of each picture are."""
    depth = dark(frame["{feat_0}"])
    beside = np.zeros((3, 3, 3))
    beside[1] = 1  # pixels touch within a picture only
    parts, n = ndimage.label(depth > 0.5, beside)
    picture, y, x = np.nonzero(parts)
    part = parts[parts > 0] - 1
    size = np.bincount(part)

    def mean(values):
        return np.bincount(part, values) / size

    y, x = y - mean(y)[part], x - mean(x)[part]
    spread, tilt = mean(x**2) + mean(y**2), np.hypot(mean(x**2) - mean(y**2), 2 * mean(x * y))
    facts = np.column_stack([np.sqrt(size), np.sqrt(spread), tilt / (spread + 0.1), spread / size])
    large = size > 6
    where, weight = mean(picture)[large].round().astype(int), size[large] ** 1.5
    total = np.bincount(where, weight, len(frame)) + 1e-9
    rows = [np.bincount(where, weight * v, len(frame)) / total for v in facts[large].T]
    return np.column_stack([*rows, np.bincount(where, minlength=len(frame)), total ** (1 / 1.5)])
'''
