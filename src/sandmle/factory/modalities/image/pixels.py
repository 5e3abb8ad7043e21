"""What families draw pictures with: backgrounds, soft shapes, blur along a line, bytes."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]


def grid(size: int) -> tuple[Floats, Floats]:
    """Return the row and the column of every pixel (size, size)."""
    down, right = np.indices((size, size), dtype=np.float64)
    return down, right


def clouds(rng: np.random.Generator, size: int, scale: float) -> Floats:
    """Return a smooth random field (size, size) with mean 0 and spread 1."""
    field = ndimage.gaussian_filter(rng.normal(size=(size, size)), scale, mode="wrap")
    field = field - field.mean()
    scaled: Floats = field / max(float(field.std()), 1e-9)
    return scaled


def disc(size: int, x: float, y: float, radius: float) -> Floats:
    """Return a disc with a soft edge of one pixel, from 0 outside to 1 inside."""
    down, right = grid(size)
    inside: Floats = np.clip(radius - np.hypot(right - x, down - y) + 0.5, 0, 1)
    return inside


def stroke(size: int, x: float, y: float, angle: float, length: float, width: float) -> Floats:
    """Return a straight line around a middle, with soft edges; `angle` in radians."""
    down, right = grid(size)
    along = (right - x) * np.cos(angle) + (down - y) * np.sin(angle)
    across = (down - y) * np.cos(angle) - (right - x) * np.sin(angle)
    inside: Floats = np.clip(length / 2 - np.abs(along) + 0.5, 0, 1)
    inside *= np.clip(width / 2 - np.abs(across) + 0.5, 0, 1)
    return inside


def blurred_along(picture: Floats, angle: float, length: int) -> Floats:
    """Return a picture (height, width) averaged along a line of `length` pixels."""
    if length <= 1:
        return picture
    steps = np.arange(length) - (length - 1) / 2
    moved = [
        ndimage.shift(picture, (s * np.sin(angle), s * np.cos(angle)), order=1, mode="nearest")
        for s in steps
    ]
    mean: Floats = np.mean(moved, axis=0)
    return mean


def scattered(
    rng: np.random.Generator, size: int, cells: int, reach: Floats
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Scatter things over a picture, one in each of `cells` x `cells` cells, none beyond its cell.

    `reach` is how far each thing extends from its middle. Returns for each pixel (size, size) the
    number of its cell, and how far right of and below the middle of the thing in it the pixel lies.
    """
    cell = np.arange(size) * cells // size
    mine = cell[:, None] * cells + cell
    center = (cell + 0.5) * size / cells
    room = np.maximum(size / cells / 2 - reach - 0.5, 0)
    x, y = room * rng.uniform(-1, 1, (2, len(room)))
    down, right = grid(size)
    return mine, right - center - x[mine], down - center[:, None] - y[mine]


def smeared(picture: Floats, angle: float, length: float) -> Floats:
    """Return a picture (height, width, ...) smeared along a line, as by a camera that moves.

    Done by Fourier transform, with what is near a rim mirrored beyond it.
    """
    margin = int(length) + 1
    more = [(0, 0)] * (picture.ndim - 2)
    wide = np.pad(picture, [(margin, margin)] * 2 + more, mode="reflect")
    down, right = np.fft.fftfreq(wide.shape[0])[:, None], np.fft.rfftfreq(wide.shape[1])
    passed = np.sinc(length * (right * np.cos(angle) + down * np.sin(angle)))
    passed = passed.reshape(passed.shape + (1,) * len(more))
    waves = np.fft.rfft2(wide, axes=(0, 1)) * passed
    back: Floats = np.fft.irfft2(waves, wide.shape[:2], axes=(0, 1))
    return back[margin:-margin, margin:-margin]


def to_bytes(picture: Floats) -> Bytes:
    """Return brightness as bytes, what is beyond 0 to 255 clipped."""
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)


def swell(rng: np.random.Generator, size: int, length: float) -> Floats:
    """Return a smooth random field (size, size), mean 0 and spread about 1: cheap clouds.

    It is a sum of products of waves, none of them shorter than `length` pixels.
    """
    steps = np.arange(size) * (2 * np.pi / length)
    turns, phases = rng.uniform(-1, 1, (2, 8, 1)), rng.uniform(0, 2 * np.pi, (2, 8, 1))
    down, right = np.cos(turns * steps + phases)
    field: Floats = np.einsum("ki,kj->ij", down, right) / np.sqrt(2)
    return field


def fibres(
    rng: np.random.Generator, size: int, angle: float, period: float, spread: float
) -> Floats:
    """Return fine streaks (size, size) along an angle, mean 0 and spread about 1.

    A sum of waves across the angle, give or take `spread` radians, one about `period` pixels long.
    """
    across = angle + np.pi / 2 + spread * rng.normal(size=(24, 1))
    pace = 2 * np.pi / (period * rng.uniform(0.75, 1.3, (24, 1)))
    down = pace * np.sin(across) * np.arange(size)
    right = pace * np.cos(across) * np.arange(size) + rng.uniform(0, 2 * np.pi, (24, 1))
    # the cosine of a sum, so that no wave is computed pixel by pixel
    sides = np.concatenate([np.cos(down), -np.sin(down)])
    field: Floats = np.einsum("ki,kj->ij", sides, np.concatenate([np.cos(right), np.sin(right)]))
    field /= np.sqrt(12)
    return field
