"""Motion sequence: pictures of a damage, taken one after the other from a vehicle in motion.

The form of the damage is its class; cracks and pits have as much ink in all classes, lie anywhere
and in any direction, and are lighter or darker than the surface. From picture to picture the damage
moves along the way of travel, and is more smeared. Whoever lays the pictures on top of each other
and measures the form without regard to its direction sees the class.
"""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

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
from sandmle.factory.modalities.image.pixels import Floats, swell, to_bytes
from sandmle.types import Record

_SIZE = 64
_INK = 34.0  # pixels of line that every damage has
_MOST = 5  # pictures of a row
_FORMS = (
    "one crack", "a crack with three arms", "a closed ring", "two cracks side by side", "pits",
)  # fmt: skip
_SHARES = (0.38, 0.25, 0.17, 0.11, 0.09)  # of the classes: the rarest is seen a dozen times
# contrast, grain, pixels of smear in the first picture and more in each that follows, share of
# labels that are random; by level
_LEVELS = (
    (60.0, 9.0, 2.0, 2.0, 0.03),
    (59.0, 9.5, 2.0, 2.5, 0.04),
    (58.0, 10.0, 2.5, 2.5, 0.05),
    (57.0, 10.5, 2.5, 3.0, 0.05),
    (56.0, 11.0, 3.0, 3.0, 0.06),
)


class MotionSequenceConfig(Record):
    """The drawn parameters.

    `forms[i]` is the form of class i; the vehicle moves along `travel`, in radians down from the
    rows; picture k, from 0, is smeared over `smear + k * growth` pixels.
    """

    forms: tuple[int, ...]
    travel: float
    contrast: float
    grain: float
    smear: float
    growth: float
    wrong: float


@FAMILIES.register("motion_sequence")
class MotionSequence(FamilyOf[MotionSequenceConfig]):
    """See the module's text."""

    name: ClassVar[str] = "motion_sequence"
    modality: ClassVar[str] = "image"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = ("macro_f1", "balanced_accuracy", "mcc", "accuracy")
    mutations: ClassVar[tuple[str, ...]] = (
        "salt_and_pepper", "corner_stamp", "skewed_rows", "split_fields", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type = MotionSequenceConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which form is which class, and how the vehicle moves."""
        contrast, grain, smear, growth, wrong = _LEVELS[level - 1]
        return cls(
            MotionSequenceConfig(
                forms=tuple(int(i) for i in rng.permutation(len(_FORMS))),
                travel=round(float(rng.uniform(0, np.pi)), 2),
                contrast=round(contrast * float(rng.uniform(0.95, 1.05)), 1),
                grain=grain,
                smear=smear,
                growth=growth,
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the pictures."""
        text = "one to five grey pictures of the same damage, ever more smeared"
        return (Variable(name="feat_0", kind="frames", abstract=text),)

    def outcome(self) -> Outcome:
        """Return a class for each form, some of them rare."""
        return Outcome("classes", len(self.config.forms))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a damage and its pictures for each row."""
        clean = rng.choice(len(_SHARES), n, p=_SHARES)
        clips = np.empty(n, dtype=object)
        for i, label in enumerate(clean):
            clips[i] = self._clip(rng, _form(rng, _FORMS[self.config.forms[label]]))
        wrong = rng.random(n) < self.config.wrong
        observed = np.where(wrong, rng.integers(0, len(_SHARES), n), clean)
        return Sample({"feat_0": clips}, observed, clean)

    def _clip(self, rng: np.random.Generator, points: Floats) -> list[NDArray[np.uint8]]:
        """Return the pictures of a damage, given by points around its middle."""
        config = self.config
        n = int(rng.integers(1, _MOST + 1))
        way = np.array([np.cos(config.travel), np.sin(config.travel)])
        middle = _SIZE / 2 + rng.uniform(-6, 6, 2)
        step = rng.uniform(2, 5) * rng.choice((-1, 1))
        strength = config.contrast * rng.choice((-1, 1)) * rng.uniform(0.9, 1.1)
        light = rng.uniform(100, 155) + 10 * swell(rng, _SIZE, 40)
        clip = []
        for k in range(n):
            at = middle + way * step * (k - (n - 1) / 2)
            smear = np.linspace(-0.5, 0.5, 7) * (config.smear + config.growth * k)
            ink = _inked((points + at)[:, None] + smear[:, None] * way)
            grain = config.grain * rng.normal(size=ink.shape)
            clip.append(to_bytes(light + strength * ink + grain))
        return clip

    def rule(self) -> str:
        """Return which form is which class."""
        config = self.config
        forms = "; ".join(f"class {i}: {_FORMS[k]}" for i, k in enumerate(config.forms))
        return (
            "the form of what is lighter or darker than its surroundings in the pictures of feat_0 "
            f"is {forms}; picture k from 0 is smeared over {config.smear:g} + {config.growth:g} k "
            f"pixels, {np.degrees(config.travel):.0f} degrees down from the rows; in train "
            f"{config.wrong:.0%} of the labels are random"
        )

    def solution(self, names: Names) -> Solution:
        """Return the form of the damage in pictures that are laid on top of each other."""
        return Solution(_FEATURES.format(**names), "trees")


def _form(rng: np.random.Generator, name: str) -> Floats:
    """Return points (m, 2), a quarter of a pixel apart, along the lines of a damage."""
    turn = rng.uniform(0, 2 * np.pi)
    if name == "a closed ring":
        around = np.arange(0, 2 * np.pi, 0.25 * 2 * np.pi / _INK)
        radius = _INK / (2 * np.pi) * (1 + 0.12 * np.cos(2 * around + turn))
        return _turned(radius, np.zeros_like(radius), around)
    if name == "pits":
        places = rng.permutation(16)[:10]
        x, y = 6 * np.stack([places // 4, places % 4]) - 9 + rng.uniform(-1, 1, (2, 10))
        middles = _turned(x, y, turn)
        return np.concatenate([_line(rng, m, rng.uniform(0, 6.3), _INK / 10) for m in middles])
    across = np.array([-np.sin(turn), np.cos(turn)])
    if name == "two cracks side by side":
        sides = [rng.uniform(4, 5) * across * side for side in (-1, 1)]
        return np.concatenate([_line(rng, side, turn, _INK / 2) for side in sides])
    if name == "one crack":
        return _line(rng, np.zeros(2), turn, _INK)
    arms = [turn + k * 2 * np.pi / 3 + rng.uniform(-0.2, 0.2) for k in range(3)]
    reach = _INK / 6
    return np.concatenate(
        [_line(rng, reach * np.array([np.cos(a), np.sin(a)]), a, 2 * reach) for a in arms]
    )


def _line(rng: np.random.Generator, middle: Floats, angle: float, length: float) -> Floats:
    """Return points along a line that wavers a little."""
    along = np.arange(0, length, 0.25) - length / 2
    phase, pace = rng.uniform(0, 2 * np.pi), rng.uniform(0.25, 0.5)
    off = 0.8 * np.sin(pace * along + phase)
    points: Floats = middle + _turned(along, off, angle)
    return points


def _turned(x: Floats, y: Floats, angle: float | Floats) -> Floats:
    """Return points (m, 2) turned around the origin."""
    turned = [x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)]
    return np.stack(turned, axis=1)


def _inked(points: Floats) -> Floats:
    """Return how much ink is at each pixel: points (..., 2) as x and y, drawn with a soft pen."""
    x, y = np.round(points).astype(int).reshape(-1, 2).T
    inside = (x >= 0) & (x < _SIZE) & (y >= 0) & (y < _SIZE)
    counts = np.bincount(_SIZE * y[inside] + x[inside], minlength=_SIZE**2)
    per_pixel = 4 * points.shape[1]  # on the middle of a line that is not smeared
    ink: Floats = ndimage.gaussian_filter(counts.reshape(_SIZE, _SIZE) * (2.5 / per_pixel), 1.0)
    return ink


_FEATURES = '''
# rings around the middle of a damage, and waves around these
down, right = np.mgrid[-20:21, -20:21]
radius, angle = np.hypot(down, right), np.arctan2(down, right)
rings = [np.exp(-((radius - r) ** 2) / 4.5) for r in range(0, 20, 3)]
rings = [ring / ring.sum() for ring in rings]
waves = [ring * np.exp(1j * k * angle) for ring in rings[1:] for k in (1, 2, 3, 4, 6)]
parts = np.stack([*rings, *waves]).reshape(len(rings) + len(waves), -1).T


def overlaid(clip):
    """The mean of the pictures of a row, each moved to where it fits the first."""
    clip = [picture - ndimage.gaussian_filter(picture, 8) for picture in np.asarray(clip, float)]
    total = clip[0].copy()
    first = np.conj(np.fft.rfft2(ndimage.gaussian_filter(clip[0], 1.5)))
    for k, picture in enumerate(clip[1:], 1):
        fit = np.fft.irfft2(np.fft.rfft2(picture) * first)
        y, x = np.unravel_index(fit.argmax(), fit.shape)
        total += np.roll(picture, (-y, -x), (0, 1)) / (1 + k)
    return total / sum(1 / (1 + k) for k in range(len(clip)))


def features(frame):
    """Rings, waves, and main directions of edges, none of which changes when a damage is turned."""
    x = np.stack([overlaid(clip) for clip in frame["{feat_0}"]])
    strength = ndimage.gaussian_filter(x, (0, 1.2, 1.2)) ** 2
    strength = ndimage.gaussian_filter(strength, (0, 7, 7))
    y, z = np.unravel_index(strength.reshape(len(x), -1).argmax(axis=1), x.shape[1:])
    wide = np.pad(x, ((0, 0), (20, 20), (20, 20)))
    windows = np.stack([one[i:i + 41, j:j + 41] for one, i, j in zip(wide, y, z)])
    found = windows.reshape(len(x), -1) @ parts
    form = np.hstack([found[:, :len(rings)].real, np.abs(found[:, len(rings):])])
    form *= np.sign(form[:, :4].sum(axis=1, keepdims=True))
    form /= np.sqrt(strength.max(axis=(1, 2)))[:, None]
    edges = []
    for scale in (1.0, 2.0):
        slope = ndimage.gaussian_filter(windows, (0, scale, scale))
        slope = np.gradient(slope, axis=2) + 1j * np.gradient(slope, axis=1)
        total = (np.abs(slope) ** 2).sum(axis=(1, 2))
        for k in (2, 4, 6):
            turned = np.abs(slope) ** 2 * np.exp(1j * k * np.angle(slope))
            edges.append(np.abs(turned.sum(axis=(1, 2))) / total)
    return np.column_stack([form, *edges])
'''
