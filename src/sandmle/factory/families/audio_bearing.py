"""Bearing: how often a damaged part clicks under the hum of the shaft, and how fast that turns.

Each click rings in one band, and so does another part, in a band of its own, that has nothing to do
with the damage. The clicks are as loud in sum however often they come. Whoever takes the envelope
of the right band, and looks for the lag at which it repeats itself, has the rate.
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
    Sound,
    Split,
    Variable,
    quantity,
    spell,
)
from sandmle.factory.modalities.audio.waves import RATE, add, count, hiss, hum, knock
from sandmle.types import Record

_LENGTH = count(0.6)
_SPREAD = 0.4  # of the logarithm of the rate of clicks, and of that of the shaft
_RING = 0.003  # seconds in which a click fades
_WIDEST = 1.7  # spreads from the middle beyond which no rate lies

Floats = NDArray[np.float64]


class AudioBearingConfig(Record):
    """The drawn parameters: rates and pitches in Hz, of which `click` and `shaft` are the middle.

    `bands` are where the damaged part and the other one ring, `weights` those of the logarithms of
    the two rates, in spreads.
    """

    click: float
    shaft: float
    bands: tuple[float, float]
    other: float
    weights: tuple[float, float]
    slip: float
    hiss: float
    noise: float


@FAMILIES.register("audio_bearing")
class AudioBearing(FamilyOf[AudioBearingConfig]):
    """See the module's text."""

    name: ClassVar[str] = "audio_bearing"
    modality: ClassVar[str] = "audio"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("number",)
    metrics: ClassVar[tuple[str, ...]] = ("rmse", "mae", "spearman")
    mutations: ClassVar[tuple[str, ...]] = (
        "mains_hum", "loose_contact", "hall_echo", "other_rate", "biased_recorder",
        "double_entry",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (80, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type: ClassVar[type[Record]] = AudioBearingConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the bands and what counts; higher levels hiss more and the other part is louder."""
        hard = (level - 1) / 4
        bands = rng.permutation((rng.uniform(1500, 2000), rng.uniform(2700, 3300)))
        signs = rng.choice([-1.0, 1.0], 2)
        share = 0.3 * hard + rng.uniform(0.3, 0.5)  # of the shaft in what counts
        weights = signs * np.sqrt((1 - share**2, share**2))
        return cls(
            AudioBearingConfig(
                click=round(float(rng.uniform(22, 30)), 2),
                shaft=round(float(rng.uniform(200, 260)), 1),
                bands=(round(float(bands[0]), 1), round(float(bands[1]), 1)),
                other=round(0.4 + 0.5 * hard, 3),
                weights=(round(float(weights[0]), 3), round(float(weights[1]), 3)),
                slip=round(0.01 + 0.02 * hard, 4),
                hiss=round(float(rng.uniform(0.01, 0.014) + 0.008 * hard), 4),
                noise=round(0.15 + 0.15 * hard, 3),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the recording."""
        return (Variable(name="feat_0", kind="audio", abstract="faint clicks under a hum"),)

    def outcome(self) -> Outcome:
        """Return a quantity."""
        return Outcome("number")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw how fast the shaft turns and how often the part clicks; the target has noise."""
        config = self.config
        click, shaft, other = _WIDEST * rng.uniform(-1, 1, (3, n))
        latent = config.weights[0] * click + config.weights[1] * shaft
        observed, clean = quantity(rng, latent, config.noise)
        sounds = np.empty(n, dtype=object)
        for i in range(n):
            rates = np.exp(_SPREAD * np.array((click[i], other[i]))) * config.click
            pitch = config.shaft * np.exp(_SPREAD * shaft[i])
            sounds[i] = Sound(RATE, _recording(rng, config, rates, pitch))
        return Sample({"feat_0": sounds}, observed, clean)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = (
            spell(config.weights[0], f"log(clicks / {config.click:g})"),
            spell(config.weights[1], f"log(hum / {config.shaft:g})"),
        )
        return (
            f"({' '.join(terms)}) / {_SPREAD:g} in spreads of the target from its center; clicks "
            f"is how many clicks a second ring near {config.bands[0]:g} Hz in feat_0 (those near "
            f"{config.bands[1]:g} Hz mean nothing), hum the lowest pitch of the hum in Hz; in "
            f"train plus normal noise of {config.noise:g} spreads"
        )

    def solution(self, names: Names) -> Solution:
        """Return how often each band repeats itself, and the pitch of the hum."""
        return Solution(_FEATURES.format(**names), "linear")


def _recording(
    rng: np.random.Generator, config: AudioBearingConfig, rates: Floats, pitch: float
) -> Floats:
    """Return hum, hiss and the clicks of the damaged part and of the other one."""
    strengths = (rng.uniform(0.5, 1, 4) * (0.05, 0.025, 0.02, 0.01)).tolist()
    sound = hum(rng, _LENGTH, pitch, strengths) + config.hiss * hiss(rng, _LENGTH)
    for band, rate, loudness in zip(config.bands, rates, (1.0, config.other), strict=True):
        loud = loudness * rng.uniform(0.14, 0.2) * np.sqrt(config.click / rate / 2)
        piece = knock(band * np.exp(0.02 * rng.normal()), _RING)
        start = rng.uniform(0, 1 / rate)
        while start < _LENGTH / RATE:
            add(sound, count(start), loud * np.exp(0.25 * rng.normal()) * piece)
            start += (1 + config.slip * rng.normal()) / rate
    return sound


_FEATURES = '''
RATE = 8000  # samples a second
# low and high ends of the bands that are listened to, in Hz
BANDS = [(1200, 1700), (1600, 2200), (2200, 2800), (2600, 3200), (3000, 3700)]

def rate_of(envelope):
    """The logarithm of how often an envelope with 1000 values a second repeats itself."""
    spectrum = np.fft.rfft(envelope - envelope.mean(), 2 * len(envelope))
    alike = np.fft.irfft(np.abs(spectrum) ** 2)[: len(envelope) // 2]
    alike /= len(envelope) - np.arange(len(alike))
    alike[:15] = 0
    first = np.flatnonzero(alike > 0.75 * alike.max())[0]
    return np.log(1000 / (first + alike[first : first + 4].argmax()))

def features(frame):
    """How often each band repeats itself, and the pitch of the hum."""
    rows = []
    for _, x in frame["{feat_0}"]:
        spectrum, pitch = np.fft.rfft(x), np.fft.rfftfreq(len(x), 1 / RATE)
        found = []
        for low, high in BANDS:
            band = np.where((pitch > low) & (pitch < high), spectrum, 0)
            envelope = np.abs(np.fft.irfft(band, len(x)))
            found.append(rate_of(ndimage.uniform_filter1d(envelope, RATE // 250)[:: RATE // 1000]))
        strong = np.abs(spectrum) * ((pitch > 40) & (pitch < 600))
        rows.append([*found, np.log(pitch[strong.argmax()])])
    return np.array(rows)
'''
