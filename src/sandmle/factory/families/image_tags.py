"""Tags: some marks lie on a surface, and each tag stands for marks of one shape and polarity.

All marks have about the same size, wherever they lie and however they are turned, and every picture
has about as many of them: others fill the places of those that are not there. Whoever finds the
marks and sorts them by their form sees which tags hold.
"""

from typing import ClassVar, NamedTuple, Self

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
from sandmle.factory.modalities.image.pixels import Floats, disc, stroke, swell, to_bytes
from sandmle.types import Record

_CELL = 16  # pixels along a side of the square that a mark lies in
_SIDE = 4  # squares along a side of a picture
_SHAPES = ("disc", "ring", "bar", "cross")
# tags, contrast, grain, share of tags in train that are wrong; by level
_LEVELS = (
    (4, 37.0, 9.0, 0.03),
    (4, 36.0, 9.5, 0.04),
    (5, 35.0, 10.0, 0.04),
    (5, 34.0, 10.5, 0.05),
    (5, 33.0, 11.0, 0.06),
)


class Mark(NamedTuple):
    """A sort of mark: its shape, and 1 where it is lighter than the surface, -1 where darker."""

    shape: str
    polarity: int

    def __str__(self) -> str:
        return f"a {'light' if self.polarity > 0 else 'dark'} {self.shape}"


_MARKS = tuple(Mark(shape, polarity) for shape in _SHAPES for polarity in (1, -1))


class ImageTagsConfig(Record):
    """The drawn parameters.

    `tags[i]` is the number of tag i's mark in the list of all, `shares[i]` how often it is there;
    marks differ by `contrast` grey levels from a surface with `grain`.
    """

    tags: tuple[int, ...]
    shares: tuple[float, ...]
    contrast: float
    grain: float
    wrong: float


@FAMILIES.register("image_tags")
class ImageTags(FamilyOf[ImageTagsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "image_tags"
    modality: ClassVar[str] = "image"
    task_type: ClassVar[str] = "multilabel"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("tags",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["tags"]
    mutations: ClassVar[tuple[str, ...]] = (
        "stored_negative", "skewed_rows", "split_fields", "salt_and_pepper", "dead_lines",
        "poor_exposure",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = ImageTagsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which marks have tags; higher levels have more of them and less contrast."""
        n_tags, contrast, grain, wrong = _LEVELS[level - 1]
        return cls(
            ImageTagsConfig(
                tags=tuple(int(i) for i in rng.permutation(len(_MARKS))[:n_tags]),
                shares=tuple(float(s) for s in rng.uniform(0.3, 0.5, n_tags).round(2)),
                contrast=round(contrast * float(rng.uniform(0.95, 1.05)), 1),
                grain=grain,
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the picture."""
        text = "grey picture of a surface with some marks"
        return (Variable(name="feat_0", kind="image", abstract=text),)

    def outcome(self) -> Outcome:
        """Return the tags."""
        return Outcome("tags", len(self.config.tags))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw the tags and a picture with their marks for each row."""
        config = self.config
        clean = (rng.random((n, len(config.tags))) < config.shares).astype(np.int64)
        pictures = np.empty(n, dtype=object)
        for i, tags in enumerate(clean):
            there = [config.tags[k] for k in np.flatnonzero(tags)]
            pictures[i] = self._picture(rng, there)
        wrong = rng.random(clean.shape) < config.wrong
        return Sample({"feat_0": pictures}, np.where(wrong, 1 - clean, clean), clean)

    def _picture(self, rng: np.random.Generator, there: list[int]) -> NDArray[np.uint8]:
        """Return a picture with the tagged marks that are there, and others."""
        config = self.config
        others = [i for i in range(len(_MARKS)) if i not in config.tags] + there
        n_others = max(0, int(rng.integers(5, 8)) - len(there))
        marks = there + [others[i] for i in rng.integers(0, len(others), n_others)]
        size = _CELL * _SIDE
        light = rng.uniform(105, 150) + 12 * swell(rng, size, 40)
        picture = light + config.grain * rng.normal(size=(size, size))
        for i, place in zip(marks, rng.permutation(_SIDE**2), strict=False):
            down, right = _CELL * (place // _SIDE), _CELL * (place % _SIDE)
            contrast = config.contrast * rng.uniform(0.85, 1.15) * _MARKS[i].polarity
            square = picture[down : down + _CELL, right : right + _CELL]
            square += contrast * _drawn(rng, _MARKS[i].shape)
        return to_bytes(picture)

    def rule(self) -> str:
        """Return the mark of each tag."""
        marks = "; ".join(f"tag {i}: {_MARKS[k]}" for i, k in enumerate(self.config.tags))
        return (
            f"a tag holds iff its mark is in feat_0 ({marks}), whatever its place, direction and "
            f"size; in train {self.config.wrong:.0%} of the tags are wrong"
        )

    def solution(self, names: Names) -> Solution:
        """Return how near the marks of a picture come to each form of mark that there is."""
        return Solution(_FEATURES.format(**names), "linear")


def _drawn(rng: np.random.Generator, shape: str) -> Floats:
    """Return a mark in its square, 1 inside and 0 outside, about equally large for all shapes."""
    size, turn = rng.uniform(4.6, 5.6), rng.uniform(0, np.pi)
    x, y = (_CELL - 1) / 2 + rng.uniform(-1.5, 1.5, 2)
    if shape == "disc":
        return disc(_CELL, x, y, 0.78 * size)
    if shape == "ring":
        return disc(_CELL, x, y, size) - disc(_CELL, x, y, 0.62 * size)
    if shape == "bar":
        return stroke(_CELL, x, y, turn, 2.5 * size, 0.75 * size)
    beams = [stroke(_CELL, x, y, turn + a, 2.1 * size, 0.5 * size) for a in (0, np.pi / 2)]
    return np.maximum(*beams)


_FEATURES = '''
# parts of a mark of 15 x 15 pixels: rings around its middle, and waves around these
down, right = np.mgrid[-7:8, -7:8]
radius, angle = np.hypot(down, right), np.arctan2(down, right)
rings = [np.exp(-((radius - r) ** 2) / 2) for r in (0, 2, 4, 6)]
rings = [ring / ring.sum() for ring in rings]
waves = [ring * np.exp(1j * k * angle) for ring in rings[1:] for k in (2, 4)]
parts = np.stack([*rings, *waves]).reshape(len(rings) + len(waves), -1).T


def contrasts(pictures):
    """Pictures without their slow changes, and how strong they are around each pixel."""
    x = np.stack(pictures).astype(float)
    x -= ndimage.gaussian_filter(x, (0, 9, 9))
    return x, ndimage.gaussian_filter(x**2, (0, 2.5, 2.5))


weakest = np.quantile(contrasts(train["{feat_0}"])[1], 0.85)


def marks(pictures):
    """What does not change when a mark is turned, for each mark, and which picture it is in."""
    x, strength = contrasts(pictures)
    highest = strength == ndimage.maximum_filter(strength, (1, 9, 9))
    where, y, z = np.nonzero(highest & (strength > weakest))
    wide = np.pad(x, ((0, 0), (7, 7), (7, 7)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(wide, (15, 15), axis=(1, 2))
    found = windows[where, y, z].reshape(len(where), -1) @ parts
    form = np.hstack([found[:, :4].real, np.abs(found[:, 4:])])
    return form / (np.sqrt(strength[where, y, z]) + 8)[:, None], where


known = marks(train["{feat_0}"])[0]
scale = StandardScaler().fit(known)
forms = KMeans(60, n_init=2, random_state=0).fit(scale.transform(known))


def features(frame):
    """How near the nearest mark of a picture is to each of the usual forms."""
    form, where = marks(frame["{feat_0}"])
    near = np.exp(-(forms.transform(scale.transform(form)) ** 2) / 8)
    result = np.zeros((len(frame), near.shape[1]))
    np.maximum.at(result, where, near)
    return result
'''
