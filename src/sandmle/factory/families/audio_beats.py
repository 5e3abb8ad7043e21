"""Beats: a row of dull and bright knocks, and what changes from the first to the last of them.

As many knocks are dull as bright, and becoming faster or slower, louder or softer, duller or
brighter leaves the mean spectrum as it is. Whoever finds the single knocks can take the trend of
each of these, and a linear rule says the grade.
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
    Scale,
    Solution,
    Sound,
    Split,
    Variable,
    cuts_of,
    graded,
    spell,
)
from sandmle.factory.modalities.audio.waves import RATE, add, count, hiss, knock
from sandmle.types import Record

_LENGTH = count(0.7)
# what can count, and how many of the first three do; by level
_TRENDS = ("brightness", "interval", "loudness")
_COUNTING = (1, 2, 2, 2, 3)
# shares of the rows below each cut, by the number of grades
_BELOW: dict[int, tuple[float, ...]] = {3: (0.36, 0.7), 4: (0.3, 0.57, 0.8)}

Floats = NDArray[np.float64]


class AudioBeatsConfig(Record):
    """The drawn parameters.

    `weights` are those of the trends of brightness, interval and loudness, and of how high all
    knocks of a recording are. `pitches` are those of dull and bright knocks in Hz, and `ring` is
    how long they ring in seconds.
    """

    knocks: int
    pitches: tuple[float, float]
    ring: float
    weights: tuple[float, float, float, float]
    jitter: float
    hiss: float
    noise: float
    scale: Scale = Scale(center=0, spread=1)
    cuts: tuple[float, ...] = ()


class Pattern(NamedTuple):
    """Knocks of `n` recordings: (n, knocks), `log_interval` one less, `log_height` (n,)."""

    bright: NDArray[np.bool_]
    log_interval: Floats
    log_loudness: Floats
    log_height: Floats


@FAMILIES.register("audio_beats")
class AudioBeats(FamilyOf[AudioBeatsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "audio_beats"
    modality: ClassVar[str] = "audio"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("ordinal",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["ordinal"]
    mutations: ClassVar[tuple[str, ...]] = (
        "mains_hum", "loose_contact", "turned_samples", "ring_buffer", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 300
    n_pool: ClassVar[int] = 300
    config_type: ClassVar[type[Record]] = AudioBeatsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which trends count how much; at higher levels there are more, and more noise."""
        hard = (level - 1) / 4
        weights = rng.uniform(0.7, 1.2, 4) * rng.choice([-1.0, 1.0], 4)
        weights[rng.permutation(3)[_COUNTING[level - 1] :]] = 0
        weights[3] *= 1 - 0.3 * hard
        dull = rng.uniform(350, 550)
        config = AudioBeatsConfig(
            knocks=2 * int(rng.integers(4, 6)),
            pitches=(round(float(dull), 1), round(float(dull * rng.uniform(2.2, 3.2)), 1)),
            ring=round(float(rng.uniform(0.006, 0.011)), 4),
            weights=tuple(weights.round(3).tolist()),
            jitter=round(float(rng.uniform(0.08, 0.14) + 0.06 * hard), 3),
            hiss=round(float(rng.uniform(0.012, 0.018) + 0.008 * hard), 4),
            noise=round(0.15 + 0.15 * hard, 3),
        )
        latent = _latent(config, _patterns(rng, config, 4000))
        scale = Scale.of(latent)
        below = _BELOW[4 if level > 2 else 3]
        if rng.random() < 0.5:
            below = tuple(1 - share for share in reversed(below))
        cuts = cuts_of(scale(latent), below)
        return cls(config.model_copy(update={"scale": scale, "cuts": cuts}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the recording."""
        return (Variable(name="feat_0", kind="audio", abstract="a row of knocks in hiss"),)

    def outcome(self) -> Outcome:
        """Return three or four grades."""
        return Outcome("ordinal", len(self.config.cuts) + 1)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a row of knocks for each recording; the observed grade has normal noise."""
        config = self.config
        patterns = _patterns(rng, config, n)
        z = config.scale(_latent(config, patterns))
        observed, clean = graded(rng, z, config.noise, config.cuts)
        sounds = np.empty(n, dtype=object)
        for i in range(n):
            one = Pattern(*(values[i] for values in patterns))
            sounds[i] = Sound(RATE, _recording(rng, config, one))
        return Sample({"feat_0": sounds}, observed, clean)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        names = [f"trend of {name}" for name in _TRENDS] + ["log height"]
        terms = [spell(w, t) for w, t in zip(config.weights, names, strict=True) if w]
        cuts = ", ".join(f"{cut:g}" for cut in config.cuts)
        return (
            f"feat_0 has {config.knocks} knocks, half of them of about {config.pitches[0]:g} Hz "
            f"(brightness 0), half of {config.pitches[1]:g} Hz (brightness 1), times the height of "
            f"the recording; the grade is that of z = ({' '.join(terms)} - "
            f"{config.scale.center:g}) / {config.scale.spread:g} between the cuts {cuts}; a trend "
            "is the slope of a line through the values of the knocks in their order (interval and "
            f"loudness in logarithms) times their number; log height is in units of {_HEIGHT:g}; "
            f"in train z has normal noise of {config.noise:g}"
        )

    def solution(self, names: Names) -> Solution:
        """Return the trends of the knocks that are found."""
        return Solution(_FEATURES.format(**names), "linear")


_HEIGHT = 0.2  # spread of the logarithm of how high the knocks of a recording are
_TREND = 0.9  # spread of the trends of log interval and log loudness


def _patterns(rng: np.random.Generator, config: AudioBeatsConfig, n: int) -> Pattern:
    """Draw patterns with trends of their own."""
    knocks = config.knocks
    at = np.linspace(-0.5, 0.5, knocks)
    # the later half of this order are the bright ones
    late = rng.normal(size=(n, 1)) * 3 * at + rng.normal(size=(n, knocks))
    bright = late.argsort(axis=1).argsort(axis=1) >= knocks // 2
    faster, louder = np.clip(rng.normal(size=(2, n, 1)) * _TREND, -1.6, 1.6)
    jitters = config.jitter * rng.normal(size=(2, n, knocks))
    return Pattern(
        bright=bright,
        log_interval=faster * np.linspace(-0.5, 0.5, knocks - 1) + jitters[0][:, 1:],
        log_loudness=louder * at + jitters[1],
        log_height=_HEIGHT * np.clip(rng.normal(size=n), -2.5, 2.5),
    )


def _latent(config: AudioBeatsConfig, patterns: Pattern) -> Floats:
    """Return the weighted sum of the trends and the height."""
    found = (
        2 * _trend(patterns.bright.astype(float)),
        _trend(patterns.log_interval) / _TREND,
        _trend(patterns.log_loudness) / _TREND,
        patterns.log_height / _HEIGHT,
    )
    latent = np.zeros(len(patterns.log_height))
    for weight, values in zip(config.weights, found, strict=True):
        latent += weight * values
    return latent


def _trend(values: Floats) -> Floats:
    """Return by how much a line through each row (n, k) rises from end to end, and a bit more."""
    k = values.shape[1]
    at = (np.arange(k) - (k - 1) / 2) / k
    slope: Floats = (values * at).sum(axis=1) / (at**2).sum()
    return slope


def _recording(rng: np.random.Generator, config: AudioBeatsConfig, one: Pattern) -> Floats:
    """Play one pattern."""
    gaps = np.exp(one.log_interval)
    length = rng.uniform(0.52, 0.58)
    starts = rng.uniform(0.02, 0.06) + length * np.r_[0, np.cumsum(gaps) / gaps.sum()]
    loudness = rng.uniform(0.1, 0.16) * np.exp(one.log_loudness)
    sound = config.hiss * hiss(rng, _LENGTH)
    for start, loud, bright in zip(starts, loudness, one.bright, strict=True):
        pitch = config.pitches[int(bright)] * float(np.exp(one.log_height + 0.03 * rng.normal()))
        add(sound, count(start), loud * knock(pitch, config.ring))
    return sound


_FEATURES = '''
def knocks(rate, x):
    """When each knock starts, its loudness and its pitch, in logarithms but for the first."""
    step = rate // 500
    power = np.square(x[: len(x) // step * step]).reshape(-1, step).mean(axis=1)
    power = np.log(ndimage.uniform_filter1d(power, 3) + 1e-6)
    rise = power[4:] - np.minimum(power[:-4], power[2:-2])
    starts, _ = signal.find_peaks(rise, height=0.35 * np.quantile(rise, 0.98), distance=9)
    rows = []
    for start in starts:
        piece = x[(start + 1) * step :][: rate // 50]
        spectrum = np.abs(np.fft.rfft(piece * np.hanning(len(piece)), 512))
        pitch = (spectrum.argmax() + 1) * rate / 512
        rows.append([start * step / rate, power[start : start + 10].max() / 2, np.log(pitch)])
    return np.array(rows).T

def trend(values):
    at = np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(1)
    return values @ at / max(at @ at, 1e-9)

def features(frame):
    """Trends of pitch, interval and loudness from knock to knock, and the mean pitch."""
    rows = []
    for rate, x in frame["{feat_0}"]:
        start, loudness, pitch = knocks(rate, x)
        gaps = np.log(np.diff(start))
        rows.append([trend(pitch), trend(gaps), trend(loudness), pitch.mean(), len(start)])
    return np.array(rows)
'''
