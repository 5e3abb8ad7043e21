"""Faults that can be heard: hum, rumble, crackle, echo.

A remedy works on the loaded sounds in the frames `train` and `test`: pairs of the rate and the
samples from -1 to 1. Families leave room: their sounds stay below 0.5, most of them far below.
"""

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import Sound, Split
from sandmle.factory.modalities.audio.waves import RATE, hum
from sandmle.factory.mutation import MUTATIONS, Draft, Setting, TaskMutation
from sandmle.factory.story import StoryColumn

SOUNDS = ("audio",)


class SoundMutation(TaskMutation):
    """A fault of the recordings of one column; several may be on one recording."""

    column: str

    @property
    def touched(self) -> tuple[str, ...]:
        """Return nothing: faults of a recording lie one above the other."""
        return ()

    @classmethod
    def column_of(cls, rng: np.random.Generator, setting: Setting) -> str | None:
        """Return the name of the column of recordings, if there is one."""
        column = setting.choose(rng, SOUNDS)
        return None if column is None else column.name


class SharedFault(SoundMutation):
    """A fault of a share of the recordings."""

    share: float

    @abstractmethod
    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Return a recording with the fault."""
        ...

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Spoil a share of the rows."""
        cells = draft.cells[self.column]
        for row in draft.some(rng, self.share):
            cells[row] = self.spoil(cells[row], rng)

    def mending(self, function: str, source: str) -> str:
        """Return a remedy: `function(rate, x)` of `source` is for every recording."""
        return (
            f"{source.strip()}\n\n\n"
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [{function}(*sound) for sound in frame["{self.column}"]]'
        )


class ToldFault(SharedFault):
    """A fault of the recordings for which a column that it adds has the second of two values."""

    told: StoryColumn

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the column that tells."""
        return (self.told,)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Spoil a share of the rows and tell which."""
        words = [self.told.values[0]] * draft.n
        cells = draft.cells[self.column]
        for row in draft.some(rng, self.share):
            cells[row] = self.spoil(cells[row], rng)
            words[row] = self.told.values[1]
        draft.cells[self.told.name] = words

    def mending(self, function: str, source: str) -> str:
        """Return a remedy: `function(rate, x)` of `source` is for the recordings with the fault."""
        return (
            f"{source.strip()}\n\n\n"
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [\n'
            f'        {function}(*sound) if word == "{self.told.values[1]}" else sound\n'
            f'        for sound, word in zip(frame["{self.column}"], frame["{self.told.name}"])\n'
            "    ]"
        )


def flag(name: str, description: str, values: tuple[str, ...], unit: str = "") -> StoryColumn:
    """Return a column that a mutation adds, with one of some words in each row."""
    return StoryColumn(
        name=name,
        description=description,
        kind="category",
        variable=None,
        relevant=False,
        unit=unit,
        values=values,
    )


@MUTATIONS.register("mains_hum")
class MainsHum(SharedFault):
    """The mains can be heard, with some odd overtones."""

    name: ClassVar[str] = "mains_hum"
    pitches: tuple[float, ...]
    loudness: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose between the two frequencies that there are, and which overtones are loud."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        pitch = float(rng.choice([50.0, 60.0]))
        overtones = 2 * np.sort(rng.permutation(np.arange(4, 15))[:2]) + 1
        pitches = (pitch, *(pitch * overtones).tolist())
        return cls(column=column, share=setting.share(0.6, 0.8), pitches=pitches, loudness=0.08)

    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Add the hum, more or less loud."""
        loudness = rng.uniform(0.7, 1) * self.loudness
        samples = sound.samples.copy()
        for pitch in self.pitches:
            samples += loudness * hum(rng, len(samples), pitch * RATE / sound.rate, [1.0])
        return sound._replace(samples=samples)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        pitches = ", ".join(f"{pitch:g}" for pitch in self.pitches)
        return f"the spectrum of {self.column} is emptied at {pitches} Hz"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_hum",
            f"""
def without_hum(rate, x):
    spectrum, pitch = np.fft.rfft(x), np.fft.rfftfreq(len(x), 1 / rate)
    for hum in {list(self.pitches)}:
        spectrum[np.abs(pitch - hum) < 2.5] = 0
    return rate, np.fft.irfft(spectrum, len(x))
""",
        )


@MUTATIONS.register("wind_rumble")
class WindRumble(SharedFault):
    """Wind or handling: loud and slow, below all that matters."""

    name: ClassVar[str] = "wind_rumble"
    limit: float
    loudness: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose below which frequency it is, in Hz."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        limit = round(float(rng.uniform(60, 90)), 1)
        return cls(column=column, share=setting.share(0.6, 0.8), limit=limit, loudness=0.12)

    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Add tones below the limit, of random frequency."""
        samples = sound.samples.copy()
        for _ in range(2):
            pitch = rng.uniform(8, self.limit) * RATE / sound.rate
            samples += rng.uniform(0.7, 1) * self.loudness * hum(rng, len(samples), pitch, [1.0])
        return sound._replace(samples=samples)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"what is below {1.2 * self.limit:.0f} Hz in {self.column} is filtered out"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_rumble",
            f"""
def without_rumble(rate, x):
    high = signal.butter(4, {1.2 * self.limit:.0f}, "high", fs=rate, output="sos")
    return rate, signal.sosfiltfilt(high, x)
""",
        )


@MUTATIONS.register("loose_contact")
class LooseContact(SharedFault):
    """Some samples are as loud as can be: a loose contact."""

    name: ClassVar[str] = "loose_contact"
    amount: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how many samples."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        return cls(column=column, share=1.0, amount=setting.share(0.015, 0.025))

    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Set some samples to an extreme."""
        samples = sound.samples.copy()
        n = len(samples)
        bad = rng.integers(0, n, round(self.amount * n))
        samples[bad] = rng.choice([-1.0, 1.0], len(bad))
        return sound._replace(samples=samples)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"samples of {self.column} far beyond the others are drawn through their neighbours"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_crackle",
            """
def without_crackle(rate, x):
    good, at = np.abs(x - ndimage.median_filter(x, 5)) < 0.4, np.arange(len(x))
    return rate, np.interp(at, at[good], x[good])
""",
        )


@MUTATIONS.register("hall_echo")
class HallEcho(ToldFault):
    """A second microphone hangs in the hall: everything that it hears comes back once."""

    name: ClassVar[str] = "hall_echo"
    delay_ms: int
    strength: float

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how late and how loud the echo is."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        return cls(
            column=column,
            share=setting.share(0.45, 0.6),
            delay_ms=int(rng.integers(45, 90)),
            strength=round(float(rng.uniform(0.75, 0.85)), 2),
            told=flag("microphone", "which microphone was used", ("close", "hall")),
        )

    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Let the sound come back."""
        late = round(self.delay_ms * sound.rate / 1000)
        samples = sound.samples.copy()
        samples[late:] += self.strength * sound.samples[:-late]
        return sound._replace(samples=samples)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return (
            f"in {self.column} of {self.told.name} 'hall' an echo after {self.delay_ms} ms "
            f"with {self.strength:g} of the loudness is taken out"
        )

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "without_echo",
            f"""
def without_echo(rate, x):
    late, x = round({self.delay_ms / 1000} * rate), x.copy()
    for start in range(late, len(x), late):
        piece = x[start : start + late]
        piece -= {self.strength:g} * x[start - late : start][: len(piece)]
    return rate, x
""",
        )
