"""Shapes: the outline of a defect says its class.

Where it lies, how large it is, how it is turned and whether it is lighter or darker than what it
lies on are random, so that neither a mean picture nor the directions of edges tell much. Whoever
takes the background off and measures the outline sees nearly all.
"""

from typing import ClassVar, Self

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
from sandmle.factory.modalities.image.pixels import Floats, clouds, disc, grid, stroke, to_bytes
from sandmle.types import Record

_SIZE = 64
_SHAPES = (
    "a filled disc", "a ring", "a straight stroke", "three small discs", "a cross", "a half ring",
)  # fmt: skip
# contrast in grey levels, spread of the noise of single pixels and of clouds, how far from the
# middle a defect lies; by level
_LEVELS = ((40, 7, 8, 3), (38, 9, 9, 4), (36, 11, 10, 5), (34, 13, 11, 7), (32, 14, 12, 8))


class ImageShapesConfig(Record):
    """`shapes[i]` is the shape of class i, which has a share `shares[i]` of the rows.

    `contrast`, `grain` and `clouds` are grey levels, `reach` is how many pixels from the middle a
    defect may lie, `wrong` the share of wrong labels.
    """

    shapes: tuple[int, ...]
    shares: tuple[float, ...]
    contrast: float
    grain: float
    clouds: float
    reach: int
    wrong: float


@FAMILIES.register("image_shapes")
class ImageShapes(FamilyOf[ImageShapesConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_shapes"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "classification"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = ("macro_f1", "accuracy", "balanced_accuracy", "mcc")
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "dead_lines", "corner_stamp", "skewed_rows", "split_fields",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = ImageShapesConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which shapes there are; higher levels have less contrast and more noise."""
        contrast, grain, cloudy, reach = _LEVELS[level - 1]
        shares = np.linspace(1.4, 0.6, 4) / 4
        return cls(
            ImageShapesConfig(
                shapes=tuple(rng.permutation(len(_SHAPES))[:4].tolist()),
                shares=tuple(shares.round(3).tolist()),
                contrast=round(float(contrast + rng.uniform(-3, 3)), 1),
                grain=round(float(grain * rng.uniform(0.9, 1.1)), 1),
                clouds=round(float(cloudy * rng.uniform(0.9, 1.1)), 1),
                reach=reach,
                wrong=round(float(rng.uniform(0.03, 0.07)), 3),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        return (Variable(name="feat_0", kind="image", abstract="grey picture with one defect"),)

    def outcome(self) -> Outcome:
        """Return four classes."""
        return Outcome("classes", len(self.config.shapes))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a defect on a background for each row; some labels are wrong."""
        classes = len(self.config.shapes)
        clean = rng.choice(classes, n, p=self.config.shares)
        pictures = np.empty(n, dtype=object)
        for i, label in enumerate(clean):
            pictures[i] = self._picture(rng, self.config.shapes[label])
        another = (clean + rng.integers(1, classes, n)) % classes
        observed = np.where(rng.random(n) < self.config.wrong, another, clean)
        return Sample({"feat_0": pictures}, observed, clean)

    def _picture(self, rng: np.random.Generator, shape: int) -> NDArray[np.uint8]:
        config = self.config
        x, y = _SIZE / 2 + rng.uniform(-config.reach, config.reach, 2)
        defect = _drawn(rng, shape, x, y, rng.uniform(5, 8))
        polarity = 1 if rng.random() < 0.5 else -1
        background = rng.uniform(105, 150) + config.clouds * clouds(rng, _SIZE, 10)
        grain = config.grain * rng.standard_normal((_SIZE, _SIZE), dtype=np.float32)
        return to_bytes(background + polarity * config.contrast * defect + grain)

    def rule(self) -> str:
        """Return which shape is which class."""
        told = "; ".join(f"class {i}: {_SHAPES[s]}" for i, s in enumerate(self.config.shapes))
        return (
            f"the defect in feat_0, lighter or darker than its surroundings, is {told}; in train a "
            f"share {self.config.wrong:g} of the labels is another class"
        )

    def solution(self, names: Names) -> Solution:
        """Return the outline of what differs from the background."""
        return Solution(_FEATURES.format(**names), "trees")


def _drawn(rng: np.random.Generator, shape: int, x: float, y: float, size: float) -> Floats:
    """Return one shape, 1 inside and 0 outside, of an area that is about the same for all."""
    turn = float(rng.uniform(0, 2 * np.pi))
    if shape == 0:
        return disc(_SIZE, x, y, 0.8 * size)
    if shape == 1:
        return disc(_SIZE, x, y, 1.05 * size) - disc(_SIZE, x, y, 0.62 * size)
    if shape == 2:
        return stroke(_SIZE, x, y, turn, 3 * size, 0.65 * size)
    if shape == 3:
        around = turn + np.array([0, 2.1, 4.2]) + rng.normal(size=3) * 0.15
        middles = [(x + size * np.cos(a), y + size * np.sin(a)) for a in around]
        return _together([disc(_SIZE, *middle, 0.47 * size) for middle in middles])
    if shape == 4:
        turns = (turn, turn + np.pi / 2)
        return _together([stroke(_SIZE, x, y, a, 2.4 * size, 0.45 * size) for a in turns])
    down, right = grid(_SIZE)
    beyond = np.clip((right - x) * np.cos(turn) + (down - y) * np.sin(turn) + 0.5, 0, 1)
    half: Floats = beyond * (disc(_SIZE, x, y, 1.35 * size) - disc(_SIZE, x, y, 0.75 * size))
    return half


def _together(parts: list[Floats]) -> Floats:
    whole: Floats = np.max(parts, axis=0)
    return whole


_FEATURES = '''
def slow(x):
    """What changes slowly over each picture (n, 64, 64): its first six waves in both directions."""
    size = x.shape[1]
    waves = np.cos(np.pi * np.outer(np.arange(size) + 0.5, np.arange(6)) / size)
    waves /= np.linalg.norm(waves, axis=0)
    return waves @ (waves.T @ x @ waves) @ waves.T


def outstanding(pictures):
    """Each picture less its background, from which what stands out is left out."""
    x = ndimage.gaussian_filter(np.stack(pictures).astype(np.float32), (0, 1, 1))
    rest = x - slow(x)
    for _ in range(3):
        high = 2 * rest.std(axis=(1, 2), keepdims=True)
        rest = x - slow(np.where(np.abs(rest) > high, x - rest, x))
    return rest


def outline(rest):
    """Size, number of parts, and how the defect lies around its middle."""
    low, high = np.quantile(rest, (0.01, 0.99))
    strength = rest if high > -low else -rest
    parts, _ = ndimage.label(strength > 0.5 * max(high, -low))
    sizes = np.bincount(parts.ravel())[1:]
    large = np.flatnonzero(sizes > 0.3 * sizes.max()) + 1
    y, x = np.nonzero(np.isin(parts, large))
    around = (x - x.mean()) + 1j * (y - y.mean())
    radius, angle = np.abs(around), np.angle(around)
    width = np.sqrt((radius**2).mean())
    rings = np.histogram(radius / width, (0, 0.3, 0.6, 0.8, 1, 1.2, 1.5, 9))[0] / len(x)
    turns = [np.abs(np.exp(1j * k * angle).mean()) for k in (1, 2, 3, 4)]
    return [len(x), width, len(x) / width**2, len(large), *rings, *turns]


def features(frame):
    return np.array([outline(rest) for rest in outstanding(frame["{feat_0}"])])
'''
