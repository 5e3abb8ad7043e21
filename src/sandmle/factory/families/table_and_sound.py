"""Table and sound: a column says how fast the machine runs, and so where its tones are.

All tones of a recording go up and down with the speed, so far that they change places in the
spectrum. Whoever brings every spectrum to the same speed sees the same few tones in all recordings;
how loud two of them are decides, together with a number of the table.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    FamilyOf,
    Names,
    Outcome,
    Sample,
    Scale,
    Solution,
    Sound,
    Split,
    Variable,
    binary,
    spell,
)
from sandmle.factory.modalities.audio.waves import RATE, count, hiss, hum
from sandmle.types import Record

_LENGTH = count(0.6)
_SPEED = 0.4  # spread of the logarithm of the speed
_LOUDEST = 2.0  # spreads from the middle beyond which no speed and no loudness lies

Floats = NDArray[np.float64]


class TableAndSoundConfig(Record):
    """The drawn parameters.

    `tones` are pitches in Hz at the usual speed, `weights` those of their loudness in spreads of
    `spread` (a logarithm), `number` that of the number in the table. Pitches go with the speed to
    the power of `power`.
    """

    power: float
    tones: tuple[float, ...]
    weights: tuple[float, ...]
    number: float
    spread: float
    hiss: float
    steepness: float
    scale: Scale = Scale(center=0, spread=1)


@FAMILIES.register("table_and_sound")
class TableAndSound(FamilyOf[TableAndSoundConfig]):
    """See the module's text."""

    name: ClassVar[str] = "table_and_sound"
    modality: ClassVar[str] = "multimodal"
    metrics: ClassVar[tuple[str, ...]] = ("roc_auc", "accuracy", "mcc")
    mutations: ClassVar[tuple[str, ...]] = (
        "gain_setting", "other_rate", "hall_echo", "decimal_comma", "unit_text", "unit_mixup",
        "recalibrated", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type: ClassVar[type[Record]] = TableAndSoundConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the tones and which two of them count; higher levels hiss more."""
        hard = (level - 1) / 4
        apart = np.cumsum(np.r_[rng.uniform(480, 600), rng.uniform(150, 300, 3)])
        weights = np.array((rng.uniform(0.8, 1.2), rng.uniform(0.4, 0.7), 0, 0))
        weights *= rng.choice([-1.0, 1.0])
        config = TableAndSoundConfig(
            power=float(rng.choice([-1.0, 1.0])),
            tones=tuple(np.round(apart, 1).tolist()),
            weights=tuple((rng.permutation(weights) + 0.0).round(3).tolist()),
            number=round(float(rng.uniform(0.9, 1.1) * rng.choice([-1.0, 1.0])), 3),
            spread=round(float(rng.uniform(0.5, 0.7)), 3),
            hiss=round(float(rng.uniform(0.02, 0.03) + 0.03 * hard), 4),
            steepness=round(10 - 3 * hard, 2),
        )
        number, _, loudness = _table(rng, 4000)
        scale = Scale.of(_latent(config, number, loudness))
        return cls(config.model_copy(update={"scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the speed, a number that counts, one that does not, and the recording."""
        text = "continuous, bell-shaped"
        return (
            Variable(name="feat_0", kind="amount", abstract=f"{text}, in logarithms"),
            Variable(name="feat_1", kind="number", abstract=text),
            Variable(name="feat_2", kind="number", abstract=text, relevant=False),
            Variable(name="feat_3", kind="audio", abstract="a few steady tones in hiss"),
        )

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw speed, numbers and loudness of the tones; the observed class has logistic noise."""
        config = self.config
        number, speed, loudness = _table(rng, n)
        z = config.scale(_latent(config, number, loudness))
        observed, clean = binary(rng, z, config.steepness)
        sounds = np.empty(n, dtype=object)
        for i in range(n):
            samples = config.hiss * hiss(rng, _LENGTH)
            for tone, loud in zip(config.tones, loudness[:, i], strict=True):
                pitch = tone * np.exp(config.power * speed[i])
                samples += 0.035 * np.exp(config.spread * loud) * hum(rng, _LENGTH, pitch, [1.0])
            sounds[i] = Sound(RATE, samples)
        features: dict[str, NDArray[Any]] = {
            "feat_0": speed, "feat_1": number, "feat_2": rng.normal(size=n), "feat_3": sounds,
        }  # fmt: skip
        return Sample(features, observed, clean)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [spell(config.number, "z(feat_1)")]
        terms += [
            spell(weight, f"L({tone:g})")
            for tone, weight in zip(config.tones, config.weights, strict=True)
            if weight
        ]
        return (
            f"class 1 iff {' '.join(terms)} > {config.scale.center:g}; L(p) is the logarithm of "
            "the amplitude, in spreads from its middle, of that tone of feat_3 whose pitch is p Hz "
            "times feat_0 over its typical value to the power of "
            f"{config.power:g}, z() a feature standardised; in train the class is drawn with "
            f"probability logistic({config.steepness:g} * z), z being the excess of that sum in "
            f"units of {config.scale.spread:g}"
        )

    def solution(self, names: Names) -> Solution:
        """Return how loud the common tones are once all recordings have the same speed."""
        return Solution(_FEATURES.format(**names), "linear")


def _table(rng: np.random.Generator, n: int) -> tuple[Floats, Floats, Floats]:
    """Draw the number (n,), the logarithm of the speed (n,), and of each tone's loudness (4, n)."""
    speed, *loudness = np.clip(rng.normal(size=(5, n)), -_LOUDEST, _LOUDEST)
    return rng.normal(size=n), _SPEED * speed, np.array(loudness)


def _latent(config: TableAndSoundConfig, number: Floats, loudness: Floats) -> Floats:
    latent = config.number * number
    for weight, loud in zip(config.weights, loudness, strict=True):
        latent += weight * loud
    return latent


_FEATURES = '''
RATE = 8000  # samples a second
PITCHES = np.geomspace(300, 1700, 76)

def aligned(frame, power):
    """The loudness around each of PITCHES that would be heard at the usual speed (n, 75)."""
    speed, usual = frame["{feat_0}"].clip(lower=1e-6), train["{feat_0}"].median()
    rows = []
    for (_, x), factor in zip(frame["{feat_3}"], (speed / usual) ** power):
        total = np.cumsum(np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2)
        at = np.clip(PITCHES * factor, 1, 0.49 * RATE) * len(x) / RATE
        rows.append(np.diff(np.interp(at, np.arange(len(total)), total)) / np.diff(at).clip(1))
    return np.log(ndimage.uniform_filter1d(rows, 3, axis=1) + 1e-9)

# the speed goes into the pitch with that power which makes the tones of all recordings agree
power = max((-1, -0.5, 0.5, 1), key=lambda p: aligned(train, p).mean(axis=0).std())
tones, found = signal.find_peaks(aligned(train, power).mean(axis=0), prominence=0.15, distance=4)
tones = tones[np.argsort(-found["prominences"])[:6]]

def features(frame):
    """The loudness of each common tone, and the numbers."""
    return np.hstack([aligned(frame, power)[:, tones], frame[["{feat_1}", "{feat_2}"]]])
'''
