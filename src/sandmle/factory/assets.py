"""Files of single rows: a picture, some pictures, a recording, a document.

Nothing but the content may differ from file to file, its size least of all: pictures are stored
uncompressed, sounds are plain PCM, and neither has any metadata. The writers are our own, a few
lines each, so that no version of a library changes a byte.
"""

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Sound, VariableKind

_BLOCK = 65535  # bytes of a stored block of a deflate stream


def write_assets(kind: VariableKind, name: str, value: Any) -> dict[str, bytes]:
    """Return the files of one cell by their paths below `public/`; `name` is that of the row."""
    if kind == "image":
        return {f"images/{name}.png": png(value)}
    if kind == "frames":
        return {f"images/{name}_{i + 1}.png": png(picture) for i, picture in enumerate(value)}
    if kind == "audio":
        return {f"audio/{name}.wav": wav(value)}
    return {f"docs/{name}.txt": str(value).encode()}


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG of pixels (height, width) or (height, width, 3), uncompressed."""
    height, width = pixels.shape[:2]
    flat = pixels.reshape(height, -1)
    raw = np.hstack([np.zeros((height, 1), np.uint8), flat]).tobytes()  # no filter on any line
    blocks = [raw[i : i + _BLOCK] for i in range(0, len(raw), _BLOCK)]
    stored = b"".join(
        struct.pack("<BHH", i == len(blocks) - 1, len(b), len(b) ^ 0xFFFF) + b
        for i, b in enumerate(blocks)
    )
    data = b"\x78\x01" + stored + struct.pack(">I", zlib.adler32(raw))
    colour = 2 if pixels.ndim == 3 else 0
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def wav(sound: Sound) -> bytes:
    """Return a WAV of one channel with 16 bits a sample; what is beyond -1 to 1 is clipped."""
    samples = np.round(np.clip(sound.samples, -1, 1) * 32767).astype("<i2").tobytes()
    layout = struct.pack("<HHIIHH", 1, 1, sound.rate, 2 * sound.rate, 2, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", len(layout)) + layout
    chunks += b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks
