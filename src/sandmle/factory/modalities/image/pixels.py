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


def to_bytes(picture: Floats) -> Bytes:
    """Return brightness as bytes, what is beyond 0 to 255 clipped."""
    return np.clip(np.round(picture), 0, 255).astype(np.uint8)
