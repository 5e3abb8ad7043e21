"""The journal of an episode: every event as it happens, one JSON object a line."""

import threading
import time
from pathlib import Path
from typing import Any

from sandmle.files import to_json


class Journal:
    """Appends events to a file, or drops them if there is none; threads may share it."""

    def __init__(self, path: Path | None = None) -> None:
        self._stream = path.open("w", encoding="utf-8") if path is not None else None
        self._started = time.monotonic()
        self._writing = threading.Lock()

    def event(self, kind: str, **data: Any) -> None:
        """Write one event with the seconds since the start of the episode."""
        if self._stream is not None:
            seconds = round(time.monotonic() - self._started, 4)
            line = to_json({"event": kind, "t": seconds, **data}) + "\n"
            with self._writing:
                self._stream.write(line)
                self._stream.flush()

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
