"""Four shapes of defects, lighter or darker than what they lie on: the shape says the class."""

from typing import Any, ClassVar, Self

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
from sandmle.factory.modalities.image.pixels import clouds, disc, stroke, to_bytes
from sandmle.types import Record

_SIZE = 64
_SHAPES = ("a filled disc", "a ring", "a straight stroke", "three small discs")


class Config(Record):
    """`order[i]` is the shape of class i; `contrast` in grey levels, `grain` of noise as well."""

    order: tuple[int, ...]
    contrast: float
    grain: float
    clouds: float
    wrong: float


@FAMILIES.register("image_shapes")
class ImageShapes(FamilyOf[Config]):
    """Only the shape counts: place, size, polarity and background are random."""

    name: ClassVar[str] = "image_shapes"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "classification"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = ("macro_f1", "accuracy")
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "biased_recorder", "double_entry",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type: ClassVar[type[Record]] = Config

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which shape is which class; higher levels have less contrast and more noise."""
        hard = (level - 1) / 4
        return cls(
            Config(
                order=tuple(int(i) for i in rng.permutation(4)),
                contrast=round(float(rng.uniform(48, 56) - 10 * hard), 1),
                grain=round(float(rng.uniform(5, 7) + 3 * hard), 1),
                clouds=round(float(rng.uniform(10, 14) + 4 * hard), 1),
                wrong=round(0.04 + 0.04 * hard, 3),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        return (Variable(name="feat_0", kind="image", abstract="grey picture with one defect"),)

    def outcome(self) -> Outcome:
        """Return four classes."""
        return Outcome("classes", len(_SHAPES))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a defect on a background for each row."""
        clean = rng.choice(4, n, p=(0.4, 0.27, 0.2, 0.13))
        pictures = np.empty(n, dtype=object)
        for i, label in enumerate(clean):
            pictures[i] = self._picture(rng, self.config.order[label])
        wrong = rng.random(n) < self.config.wrong
        observed = np.where(wrong, rng.integers(0, 4, n), clean)
        return Sample({"feat_0": pictures}, observed, clean)

    def _picture(self, rng: np.random.Generator, shape: int) -> NDArray[np.uint8]:
        config = self.config
        x, y = rng.uniform(16, _SIZE - 16, 2)
        size = rng.uniform(5, 9)
        defect = _drawn(rng, shape, x, y, size)
        polarity = rng.choice((-1, 1))
        background = 128 + config.clouds * clouds(rng, _SIZE, 8) + rng.normal() * 12
        grain = config.grain * rng.normal(size=(_SIZE, _SIZE))
        return to_bytes(background + polarity * config.contrast * defect + grain)

    def rule(self) -> str:
        """Return which shape is which class."""
        classes = "; ".join(f"class {i}: {_SHAPES[s]}" for i, s in enumerate(self.config.order))
        return f"the defect in feat_0, lighter or darker than its surroundings, is {classes}"

    def solution(self, names: Names) -> Solution:
        """Return the geometry of what differs from the background."""
        return Solution(_FEATURES.format(**names), "trees")


def _drawn(rng: np.random.Generator, shape: int, x: float, y: float, size: float) -> Any:
    """Return one shape, 1 inside and 0 outside, about equally large for all shapes."""
    if shape == 0:
        return disc(_SIZE, x, y, 0.75 * size)
    if shape == 1:
        return disc(_SIZE, x, y, size) - disc(_SIZE, x, y, 0.66 * size)
    if shape == 2:
        return stroke(_SIZE, x, y, rng.uniform(0, np.pi), 2.6 * size, 0.7 * size)
    turn = rng.uniform(0, 2 * np.pi)
    around = turn + np.array([0, 2.1, 4.2]) + rng.normal(size=3) * 0.2
    discs = [disc(_SIZE, x + size * np.cos(a), y + size * np.sin(a), 0.43 * size) for a in around]
    return np.max(discs, axis=0)


_FEATURES = '''
def features(frame):
    """Size, roundness, holes and number of parts of what is not background."""
    rows = []
    for picture in frame["{feat_0}"]:
        smooth = ndimage.gaussian_filter(picture.astype(float), 1)
        rest = smooth - np.median(smooth)
        rest -= ndimage.median_filter(rest[::4, ::4], 9).repeat(4, 0).repeat(4, 1)
        strength = np.abs(ndimage.gaussian_filter(rest, 1))
        inside = np.abs(rest) > 0.45 * np.quantile(strength, 0.995)
        parts, count = ndimage.label(inside)
        sizes = np.bincount(parts.ravel(), minlength=2)[1:]
        large = np.flatnonzero(sizes > 0.25 * sizes.max()) + 1
        inside = np.isin(parts, large)
        y, x = np.nonzero(inside)
        spread = np.linalg.eigvalsh(np.cov(np.stack([x, y])) + 1e-6 * np.eye(2))
        full = ndimage.binary_fill_holes(ndimage.binary_closing(inside, iterations=1))
        middle = strength[int(y.mean()), int(x.mean())] / strength.max()
        solid = len(x) / (4 * np.pi * np.sqrt(spread.prod()))
        rows.append([len(x), len(large), count, full.sum() / len(x), middle, solid,
                     np.sqrt(spread[0] / spread[1]), np.ptp(x) * np.ptp(y) / len(x)])
    return np.array(rows)
'''
