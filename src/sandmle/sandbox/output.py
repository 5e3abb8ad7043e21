"""Bounded capture of what a program prints: the beginning and the end, with a note between."""


class Capture:
    """Keeps at most `limit` bytes of a stream, however long it is: its first and its last half."""

    def __init__(self, limit: int) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._half = max(1, limit // 2)
        self.total = 0

    def add(self, block: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(block)
        room = self._half - len(self._head)
        if room > 0:
            self._head += block[:room]
            block = block[room:]
        self._tail += block
        if len(self._tail) > 2 * self._half:  # cut now and then, not at every block
            del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        """Return whether anything was left out."""
        return self.total > 2 * self._half

    def text(self) -> str:
        """Decode what was kept, cut between characters; undecodable bytes become U+FFFD."""
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = _whole_end(bytes(self._head)), _whole_start(bytes(self._tail[-self._half :]))
        left_out = self.total - len(head) - len(tail)
        note = f"\n[... {left_out:,} bytes left out ...]\n"
        return head.decode("utf-8", "replace") + note + tail.decode("utf-8", "replace")


def _whole_end(data: bytes) -> bytes:
    """Drop the beginning of a character that is cut off at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:  # the first byte of a character
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
    return data


def _whole_start(data: bytes) -> bytes:
    """Drop the rest of a character that is cut off at the start."""
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return data[skip:]
