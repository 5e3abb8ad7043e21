"""Faults of how recordings were stored: rate, order of the samples, amplifier.

Each of them is told by the header of the file or by a column that it adds.
"""

from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import Sound, Split
from sandmle.factory.modalities.audio.mutations import (
    SharedFault,
    SoundMutation,
    ToldFault,
    flag,
)
from sandmle.factory.modalities.audio.waves import RATE
from sandmle.factory.mutation import MUTATIONS, Draft, Setting
from sandmle.factory.story import StoryColumn


@MUTATIONS.register("other_rate")
class OtherRate(SharedFault):
    """Some recordings have more samples a second: so their header says."""

    name: ClassVar[str] = "other_rate"
    rate: int

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose the other rate."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        rate = int(rng.choice([10000, 11025]))
        return cls(column=column, share=setting.share(0.45, 0.55), rate=rate)

    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Draw the samples along straight lines between those that there are."""
        n = len(sound.samples)
        at = np.arange(round(n * self.rate / sound.rate)) * sound.rate / self.rate
        return Sound(self.rate, np.interp(at, np.arange(n), sound.samples))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"every recording in {self.column} is brought to {RATE} samples a second"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return self.mending(
            "at_one_rate",
            f"""
def at_one_rate(rate, x):
    at = np.arange(round(len(x) * {RATE} / rate)) * rate / {RATE}
    return {RATE}, np.interp(at, np.arange(len(x)), x)
""",
        )


@MUTATIONS.register("turned_samples")
class TurnedSamples(ToldFault):
    """Some recordings run backwards."""

    name: ClassVar[str] = "turned_samples"

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how many recordings."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        order = flag(
            "sample_order", "how the recorder wrote its samples", ("oldest first", "newest first")
        )
        return cls(column=column, share=setting.share(0.4, 0.5), told=order)

    def spoil(self, sound: Sound, rng: np.random.Generator) -> Sound:
        """Turn the samples around."""
        return sound._replace(samples=sound.samples[::-1])

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"recordings in {self.column} with the newest sample first are turned around"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        source = """
def turned(rate, x):
    return rate, x[::-1]
"""
        return self.mending("turned", source)


@MUTATIONS.register("ring_buffer")
class RingBuffer(SoundMutation):
    """A recorder that never stops: the oldest sample stands in the middle of the file."""

    name: ClassVar[str] = "ring_buffer"
    share: float
    start: StoryColumn

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how many recordings."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        start = StoryColumn(
            name="buffer_start",
            description="how far into the ring buffer the recording starts",
            kind="number",
            variable=None,
            relevant=False,
            unit="ms",
        )
        return cls(column=column, share=setting.share(0.9, 1.0), start=start)

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return where the recordings start."""
        return (self.start,)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Rotate a share of the rows and write down how far."""
        starts, cells = ["0"] * draft.n, draft.cells[self.column]
        for row in draft.some(rng, self.share):
            rate, samples = cells[row]
            length = 1000 * len(samples) // rate
            start = int(rng.integers(length // 5, length - length // 5))
            cells[row] = Sound(rate, np.roll(samples, round(start * rate / 1000)))
            starts[row] = str(start)
        draft.cells[self.start.name] = starts

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"recordings in {self.column} are rotated to begin at {self.start.name}"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [\n'
            "        (rate, np.roll(x, -round(start * rate / 1000)))\n"
            f'        for (rate, x), start in zip(frame["{self.column}"], '
            f'frame["{self.start.name}"])\n'
            "    ]"
        )


@MUTATIONS.register("gain_setting")
class GainSetting(SoundMutation):
    """The amplifier was set anew for each recording."""

    name: ClassVar[str] = "gain_setting"
    gain: StoryColumn

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose the settings that there are."""
        column = cls.column_of(rng, setting)
        if column is None:
            return None
        steps = ("-36", "-24", "-12", "0")
        gain = flag("amplifier_db", "setting of the amplifier", steps, "dB")
        return cls(column=column, gain=gain)

    @property
    def added(self) -> tuple[StoryColumn, ...]:
        """Return the setting."""
        return (self.gain,)

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Choose a setting for each row."""
        settings = [self.gain.values[i] for i in rng.integers(0, len(self.gain.values), draft.n)]
        cells = draft.cells[self.column]
        for row, setting in enumerate(settings):
            louder = 10 ** (float(setting) / 20)
            cells[row] = cells[row]._replace(samples=cells[row].samples * louder)
        draft.cells[self.gain.name] = settings

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"recordings in {self.column} are divided by the gain in {self.gain.name}"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            "for frame in (train, test):\n"
            f'    frame["{self.column}"] = [\n'
            "        (rate, x / 10 ** (gain / 20))\n"
            f'        for (rate, x), gain in zip(frame["{self.column}"], '
            f'frame["{self.gain.name}"])\n'
            "    ]"
        )
