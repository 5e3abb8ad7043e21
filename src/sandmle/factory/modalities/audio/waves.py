"""What families compose sounds of: tones that glide, hiss, ringing knocks, soft starts and ends."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import signal

Floats = NDArray[np.float64]

RATE = 8000  # samples a second


def count(seconds: float) -> int:
    """Return how many samples so many seconds are."""
    return round(seconds * RATE)


def times(n: int) -> Floats:
    """Return the second of each of `n` samples."""
    return np.arange(n) / RATE


def tone(frequency: Floats, phase: float) -> Floats:
    """Return a sine whose frequency in Hz is given sample by sample; `phase` in radians."""
    wave: Floats = np.sin(2 * np.pi / RATE * np.cumsum(frequency) + phase)
    return wave


def hum(rng: np.random.Generator, n: int, pitch: float, strengths: Sequence[float]) -> Floats:
    """Return a tone of `pitch` Hz with its overtones, each of some strength and random phase."""
    turn = np.exp(2j * np.pi * pitch * times(n))
    phases = rng.uniform(0, 2 * np.pi, len(strengths))
    wave, overtone = np.zeros(n), np.ones(n, dtype=complex)
    for strength, phase in zip(strengths, phases, strict=True):
        overtone = overtone * turn
        wave += strength * (overtone.real * np.cos(phase) - overtone.imag * np.sin(phase))
    return wave


def hiss(rng: np.random.Generator, n: int, warmth: float = 0.0) -> Floats:
    """Return noise of spread 1; the nearer `warmth` is to 1, the more of it is low."""
    kept = np.sqrt(1 - warmth**2)
    noise: Floats = signal.lfilter([kept], [1, -warmth], rng.normal(size=n))
    return noise


@cache
def swell(n: int, edge: int) -> Floats:
    """Return a loudness (n,) that rises from 0 to 1, stays there and falls again."""
    rise = np.sin(np.pi / 2 * (np.arange(edge) + 0.5) / edge) ** 2
    loudness = np.ones(n)
    loudness[:edge] *= rise
    loudness[n - edge :] *= rise[::-1]
    loudness.flags.writeable = False
    return loudness


def knock(pitch: float, ring: float) -> Floats:
    """Return a short sound of `pitch` Hz that starts at once and fades with a time of `ring` s."""
    t = times(count(5 * ring))
    wave: Floats = np.exp(-t / ring) * np.sin(2 * np.pi * pitch * t)
    return wave


def add(sound: Floats, start: int, piece: Floats) -> None:
    """Add a piece to a sound from sample `start` on; what reaches beyond the end is lost."""
    end = min(start + len(piece), len(sound))
    sound[start:end] += piece[: end - start]
