"""Image boxes: marks of several makes, lighter or darker than an uneven ground.

Which make counts depends on whether a mark is lighter or darker. The ground varies as much as the
marks stand out, so what is light or dark in the whole picture is mostly ground; whoever takes the
ground off finds the marks, and sees their make.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

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
from sandmle.factory.modalities.image.pixels import swell, to_bytes
from sandmle.types import Record

_SIZE = 96
_MAKES = ("filled", "hollow", "hollow with a bar across", "hollow with a bar upright")
_MOST = 7
_APART = 3  # pixels between two marks, at least
_TRIES = 12  # to find a place for a mark
# contrast of the marks, grain, spread of the ground in grey levels, chance that a true box is
# missing in train; by level
_LEVELS = (
    (44, 5, 12, 0.04),
    (42, 5.5, 14, 0.05),
    (39, 6, 16, 0.06),
    (37, 6.5, 18, 0.07),
    (35, 7, 20, 0.08),
)

Box = tuple[int, int, int, int]


class ImageBoxesConfig(Record):
    """The drawn parameters, in grey levels.

    `light` and `dark` are the makes (numbers in `_MAKES`) that count among the lighter and the
    darker marks. In train a true box is missing with chance `missed`, and any other mark is framed
    with half of that.
    """

    light: int
    dark: int
    contrast: float
    grain: float
    ground: float
    missed: float


@FAMILIES.register("image_boxes")
class ImageBoxes(FamilyOf[ImageBoxesConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_boxes"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "object_detection"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("boxes",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["boxes"]
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "dead_lines", "corner_stamp", "turned_camera", "stored_negative",
        "motion_blur", "skewed_rows", "split_fields", "mirrored",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (80, 160)
    n_test: ClassVar[int] = 100
    n_pool: ClassVar[int] = 100
    config_type: ClassVar[type[Record]] = ImageBoxesConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which makes count; higher levels have fainter marks on a ground less even."""
        contrast, grain, ground, missed = _LEVELS[level - 1]
        light, dark = rng.permutation(len(_MAKES))[:2]
        return cls(
            ImageBoxesConfig(
                light=int(light),
                dark=int(dark),
                contrast=round(float(contrast * rng.uniform(0.95, 1.05)), 1),
                grain=round(float(grain * rng.uniform(0.9, 1.1)), 1),
                ground=round(float(ground * rng.uniform(0.9, 1.1)), 1),
                missed=missed,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        return (Variable(name="feat_0", kind="image", abstract="grey picture with several marks"),)

    def outcome(self) -> Outcome:
        """Return boxes."""
        return Outcome("boxes", _MOST, (_SIZE, _SIZE))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw some marks for each row, and which of them someone framed, and how exactly."""
        pictures, clean, observed = (np.empty(n, dtype=object) for _ in range(3))
        for i in range(n):
            boxes = self._places(rng)
            lighter = rng.random(len(boxes)) < 0.5
            wanted = np.where(lighter, self.config.light, self.config.dark)
            others = (wanted + rng.integers(1, len(_MAKES), len(boxes))) % len(_MAKES)
            true = rng.random(len(boxes)) < 0.45
            pictures[i] = self._picture(rng, boxes, np.where(true, wanted, others), lighter)
            wrong = rng.random(len(boxes)) < self.config.missed * np.where(true, 1, 0.5)
            places = np.array(boxes, dtype=np.float64)
            clean[i] = places[true]
            shaken = places + rng.integers(-1, 2, places.shape)
            shaken[:, :2] = np.maximum(shaken[:, :2], 0)
            observed[i] = shaken[true != wrong]
        return Sample({"feat_0": pictures}, observed, clean)

    def _places(self, rng: np.random.Generator) -> list[Box]:
        """Return three boxes or more, none near another."""
        boxes: list[Box] = []
        for _ in range(int(rng.integers(4, _MOST + 1)) * _TRIES):
            width, height = (int(k) for k in rng.integers(12, 25, 2))
            x, y = (int(rng.integers(2, _SIZE - 1 - k)) for k in (width, height))
            if all(_apart((x, y, width, height), other) for other in boxes):
                boxes.append((x, y, width, height))
            if len(boxes) == _MOST:
                break
        return boxes

    def _picture(
        self,
        rng: np.random.Generator,
        boxes: list[Box],
        makes: NDArray[np.int64],
        lighter: NDArray[np.bool_],
    ) -> NDArray[np.uint8]:
        config = self.config
        marks = np.zeros((_SIZE, _SIZE))
        for (x, y, width, height), make, light in zip(boxes, makes, lighter, strict=True):
            strength = (1 if light else -1) * rng.uniform(0.8, 1.2)
            marks[y : y + height, x : x + width] = strength * _mark(width, height, int(make))
        marks = ndimage.gaussian_filter(marks * (1 + 0.3 * rng.normal(size=marks.shape)), 0.7)
        ground = 128 + rng.normal() * 8 + config.ground * swell(rng, _SIZE, 100)
        grain = config.grain * rng.normal(size=marks.shape)
        return to_bytes(ground + config.contrast * marks + grain)

    def rule(self) -> str:
        """Return which makes count."""
        light, dark = _MAKES[self.config.light], _MAKES[self.config.dark]
        return (
            "boxes are those of the rectangular marks in feat_0 that are lighter than the ground "
            f"around them and {light}, or darker and {dark}; other makes do not count; in train "
            f"boxes are off by up to a pixel, {self.config.missed:.0%} are missing, and half as "
            "many others are framed"
        )

    def solution(self, names: Names) -> Solution:
        """Return what stands out from its surroundings, and how each part looks inside."""
        return Solution(_FEATURES.format(**names), "trees")


def _apart(first: Box, second: Box) -> bool:
    """Return whether some pixels lie between two boxes."""
    return any(
        first[k] + first[k + 2] + _APART <= second[k]
        or second[k] + second[k + 2] + _APART <= first[k]
        for k in (0, 1)
    )


def _mark(width: int, height: int, make: int) -> NDArray[Any]:
    """Return a mark of one make, 1 where it is and 0 elsewhere; lines are two pixels wide."""
    mark = np.ones((height, width))
    if make:
        mark[2:-2, 2:-2] = 0
    if make == 2:
        mark[height // 2 - 1 : height // 2 + 1] = 1
    if make == 3:
        mark[:, width // 2 - 1 : width // 2 + 1] = 1
    return mark


_FEATURES = '''
def look(picture):
    """Boxes around what stands out to either side, and seven by seven pixels of each."""
    x, found = picture.astype(float), []
    rest = ndimage.gaussian_filter(x, 0.7) - ndimage.gaussian_filter(x, 8)
    for sign in (1, -1):
        parts, _ = ndimage.label(sign * rest > 0.9 * rest.std(), np.ones((3, 3)))
        for down, right in ndimage.find_objects(parts):
            height, width = down.stop - down.start, right.stop - right.start
            if min(height, width) >= 8:
                i, k = np.arange(7)[:, None] * (height - 1) // 6, np.arange(7) * (width - 1) // 6
                inside = sign * rest[down.start + i, right.start + k]
                found.append([right.start, down.start, width, height, sign, *inside.ravel()])
    return np.array(found, dtype=float).reshape(-1, 54)


def features(frame):
    found = [look(picture) for picture in frame["{feat_0}"]]
    return [(parts[:, :4], parts[:, 2:]) for parts in found]
'''
