"""Watching a program from the harness: its output, bounded, and the clock."""

import os
import re
import selectors
from contextlib import suppress
from pathlib import Path
from typing import Self

from sandmle.sandbox.output import Capture

FLOOD_BYTES = 64 << 20  # nobody wants to read this; the program is ended
FLOODED = f"\n[ended: it wrote more than {FLOOD_BYTES >> 20} MB]"
_BLOCK = 1 << 18
_PIPE_BLOCKS = 16  # as much as a pipe can hold, and more
# faulthandler names every compiled module that was imported, which helps nobody
_MODULES = re.compile(r"\n+Extension modules: .*")
_OUR_FRAMES = re.compile(
    rf'  File "(?:{re.escape(str(Path(__file__).parent))}/|<string>", line 1 ).*\n'
)


class Streams:
    """The reading ends of a program's standard output and error."""

    def __init__(self, limit: int) -> None:
        self._reading: dict[int, Capture] = {}
        self.writing: list[int] = []
        for _ in range(2):
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            self._reading[reading] = Capture(limit)
            self.writing.append(writing)
        self._selector = selectors.DefaultSelector()
        for descriptor in self._reading:
            self._selector.register(descriptor, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._selector.close()
        for descriptor in self._reading:
            os.close(descriptor)

    def release(self) -> None:
        """Close the writing ends, once somebody else has them."""
        while self.writing:
            os.close(self.writing.pop())

    def also(self, descriptor: int) -> None:
        """Wake up from `wait` for this descriptor too."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def wait(self, seconds: float) -> set[int]:
        """Take what is written within this time; returns the other descriptors that are ready."""
        others = set()
        for key, _ in self._selector.select(max(0.0, seconds)):
            if key.fd not in self._reading:
                others.add(key.fd)
            elif self._take(key.fd) == b"":
                self._selector.unregister(key.fd)
        return others

    def drain(self) -> None:
        """Take what is left when the program is dead; a survivor may write on, so not for ever."""
        for descriptor in self._reading:
            for _ in range(_PIPE_BLOCKS):
                if not self._take(descriptor):
                    break

    def _take(self, descriptor: int) -> bytes | None:
        with suppress(BlockingIOError):
            block = os.read(descriptor, _BLOCK)
            self._reading[descriptor].add(block)
            return block
        return None

    @property
    def flooded(self) -> bool:
        """Return whether so much was written that the program should be ended."""
        return sum(one.total for one in self._reading.values()) > FLOOD_BYTES

    @property
    def truncated(self) -> bool:
        """Return whether anything was left out of the texts."""
        return any(one.truncated for one in self._reading.values())

    def texts(self) -> tuple[str, str]:
        """Return what was kept of output and error."""
        out, err = (one.text() for one in self._reading.values())
        return out, _OUR_FRAMES.sub("", _MODULES.sub("", err))
