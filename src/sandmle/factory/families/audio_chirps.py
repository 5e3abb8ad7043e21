"""Chirps: what the pitch of a call does in time says the class, not which pitches it has.

All calls of a task sweep the same band, each pitch of it for the same time, so that mean spectra
say little. Whoever follows the loudest pitch through the spectrogram sees rising and falling
calls, and slow and fast trills.
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
    Sound,
    Split,
    Variable,
)
from sandmle.factory.modalities.audio.waves import RATE, add, count, hiss, swell, tone
from sandmle.types import Record

_LENGTH = count(0.6)
_EDGE = count(0.01)
# how often the pitch sweeps the band, which way, and where it begins; None: anywhere
_CALLS: dict[str, tuple[float, Literal["up", "down", "both"], float | None]] = {
    "rising": (1, "up", 0.0),
    "falling": (1, "down", 0.0),
    "rising thrice, each time from the bottom": (3, "up", 0.0),
    "falling thrice, each time from the top": (3, "down", 0.0),
    "rising, then falling": (1, "both", 0.0),
    "falling, then rising": (1, "both", 0.5),
    "a slow trill": (2.5, "both", None),
    "a fast trill": (5.5, "both", None),
}
_PAIRS = tuple(zip(list(_CALLS)[::2], list(_CALLS)[1::2], strict=True))
_OFFSET = 0.12  # octaves by which the bands of classes differ
_SHARES = (0.36, 0.28, 0.2, 0.16)


class AudioChirpsConfig(Record):
    """The drawn parameters: `calls[i]` is the call of class i.

    The middle of the band is `pitch` Hz, moved by `offsets[i]` octaves for class i and by up to
    `wander` octaves for each call; the band is `span` octaves wide. A share `wrong` of the labels
    is drawn anew.
    """

    calls: tuple[str, ...]
    pitch: float
    offsets: tuple[float, ...]
    wander: float
    span: float
    loudness: tuple[float, float]
    noise: float
    warmth: float
    wrong: float


@FAMILIES.register("audio_chirps")
class AudioChirps(FamilyOf[AudioChirpsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "audio_chirps"
    modality: ClassVar[str] = "audio"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = ("macro_f1", "accuracy", "balanced_accuracy", "mcc")
    mutations: ClassVar[tuple[str, ...]] = (
        "mains_hum", "wind_rumble", "loose_contact", "hall_echo", "turned_samples",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type: ClassVar[type[Record]] = AudioChirpsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw two pairs of calls that mean spectra do not tell apart; higher levels hiss more."""
        hard = (level - 1) / 4
        first = int(rng.integers(2))  # a pair that is exchanged where time runs backwards
        second = int(rng.choice([i for i in range(len(_PAIRS)) if i != first]))
        calls = [*_PAIRS[first], *_PAIRS[second]]
        return cls(
            AudioChirpsConfig(
                calls=tuple(calls[i] for i in rng.permutation(len(calls))),
                pitch=round(float(rng.uniform(900, 1500)), 1),
                offsets=tuple(_OFFSET * float(k) for k in rng.permutation((-1.5, -0.5, 0.5, 1.5))),
                wander=round(0.15 + 0.2 * hard, 3),
                span=round(float(rng.uniform(0.6, 1.0) - 0.1 * hard), 3),
                loudness=(0.05, 0.1),
                noise=round(float(rng.uniform(0.08, 0.09) + 0.02 * hard), 4),
                warmth=round(float(rng.uniform(0.0, 0.8)), 2),
                wrong=round(0.04 + 0.04 * hard, 3),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the recording."""
        return (Variable(name="feat_0", kind="audio", abstract="a call in hiss"),)

    def outcome(self) -> Outcome:
        """Return a class for each call."""
        return Outcome("classes", len(self.config.calls))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a call somewhere in the hiss for each row."""
        clean = rng.choice(len(_SHARES), n, p=_SHARES)
        sounds = np.empty(n, dtype=object)
        for i, label in enumerate(clean):
            sounds[i] = Sound(RATE, self._recording(rng, int(label)))
        wrong = rng.random(n) < self.config.wrong
        observed = np.where(wrong, rng.integers(0, len(_SHARES), n), clean)
        return Sample({"feat_0": sounds}, observed, clean)

    def _recording(self, rng: np.random.Generator, label: int) -> NDArray[np.float64]:
        config = self.config
        length = count(rng.uniform(0.38, 0.48))
        start = int(rng.integers(_EDGE, _LENGTH - length - _EDGE))
        middle = np.log2(config.pitch) + config.offsets[label]
        middle += rng.uniform(-config.wander, config.wander)
        height = middle + config.span * (_height(rng, config.calls[label], length) - 0.5)
        voice = tone(2**height, rng.uniform(0, 2 * np.pi))
        sound = config.noise * hiss(rng, _LENGTH, config.warmth)
        add(sound, start, rng.uniform(*config.loudness) * swell(length, _EDGE) * voice)
        return sound

    def rule(self) -> str:
        """Return which call is which class."""
        classes = "; ".join(f"class {i}: {call}" for i, call in enumerate(self.config.calls))
        offsets = ", ".join(f"{offset:+g}" for offset in self.config.offsets)
        return (
            f"the pitch of the call in feat_0 is {classes}; as a hint the bands of the classes lie "
            f"{offsets} octaves apart from the middle, and each call within "
            f"{self.config.wander:g} octaves of that; loudness and place mean nothing"
        )

    def solution(self, names: Names) -> Solution:
        """Return the shape of the loudest pitch as a function of time."""
        return Solution(_FEATURES.format(**names), "trees")


def _height(rng: np.random.Generator, call: str, n: int) -> NDArray[np.float64]:
    """Return where in its band a pitch is, from 0 to 1, for `n` samples."""
    sweeps, way, begin = _CALLS[call]
    phase = (rng.random() if begin is None else begin) + sweeps * np.arange(n) / n
    phase %= 1
    if way == "both":
        return 1 - np.abs(2 * phase - 1)
    return phase if way == "up" else 1 - phase


_FEATURES = '''
def track(rate, x):
    """The loudest pitch every 8 ms, and how much louder than the rest it is."""
    pieces = np.lib.stride_tricks.sliding_window_view(x, rate // 32)[:: rate // 125]
    power = np.abs(np.fft.rfft(pieces * np.hanning(rate // 32), axis=1))[:, 1:90]
    power = ndimage.gaussian_filter(power, (1, 0.7))
    return power.argmax(axis=1), power.max(axis=1) / np.median(power, axis=1)

def features(frame):
    """Trend and bends of the pitch, its steps, and how often it goes up and down."""
    rows = []
    for rate, x in frame["{feat_0}"]:
        pitch, clear = track(rate, x)
        inside = np.flatnonzero(clear > 0.45 * np.quantile(clear, 0.9))
        pitch = ndimage.median_filter(pitch[inside[0] : inside[-1] + 1].astype(float), 3)
        z = (pitch - pitch.mean()) / (pitch.std() + 0.5)
        t = np.linspace(0, np.pi, len(z))
        bends = [np.mean(z * np.cos(k * t)) for k in (1, 2, 3, 4)]
        waves = np.abs(np.fft.rfft(z, 128))[2:16:2] / len(z)
        steps = np.diff(pitch)
        rows.append([*bends, *waves, *np.quantile(steps, (0.1, 0.3, 0.5, 0.7, 0.9)),
                     steps.std(), pitch.mean()])
    return np.array(rows)
'''
