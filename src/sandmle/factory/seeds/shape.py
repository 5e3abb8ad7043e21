"""What a column is like, without saying what is in it: kind and scale-free figures, rounded."""

import re
import wave
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import UsageError
from sandmle.factory.seeds.table import sort_of_file
from sandmle.tasks.cells import parse_number
from sandmle.types import Record

Floats = NDArray[np.float64]
Kind = Literal[
    "constant", "number", "count", "flag", "category", "code", "text", "time", "image", "audio",
    "document",
]  # fmt: skip

_DATE = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|\d{4}/\d{1,2}/\d{1,2}|"
    r"\d{1,2}-[A-Za-z]{3}-\d{2,4})"
    r"([ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_FEW = 20  # different values that a column of words or whole numbers may have as categories
_TEXT = 3.5  # words in the mean cell of a text
_MOST_OPENED = 200  # files that are looked into


class Shape(Record):
    """One column. Shares are of its cells, from 0 to 1.

    `distinct` counts different values. Of numbers, from quantiles: `skew` (-1 to 1), `tails` (how
    much wider the outer range is than a normal's, 0 if not); the share of `zeros`, and whether
    there are `negative` ones and `whole` ones only. Of words: the share of the `largest` category.
    Of texts: the median number of `words`. Of files: the median `size` (width, height and bands,
    or seconds and rate, or words).
    """

    kind: Kind
    distinct: int
    missing: float
    skew: float | None = None
    tails: float | None = None
    zeros: float | None = None
    negative: bool | None = None
    whole: bool | None = None
    largest: float | None = None
    words: float | None = None
    size: tuple[float, ...] | None = None
    varies: bool | None = None


def shape_of(cells: Sequence[str], files: Mapping[str, Path]) -> Shape:
    """Look at the cells of a column."""
    there = [cell for cell in cells if cell]
    counts = Counter(there)
    facts: dict[str, Any] = {
        "distinct": len(counts),
        "missing": round(1 - len(there) / len(cells), 3),
    }
    if len(counts) < 2:
        return Shape(kind="constant", **facts)
    named = [files[cell] for cell in there if cell in files]
    if len(named) > len(there) / 2:
        return Shape(**facts, **_files(named))
    values = np.array([parse_number(cell) for cell in there])
    if np.isfinite(values).all():
        return Shape(**facts, **_numbers(values, len(counts)))
    if all(_DATE.fullmatch(cell) for cell in there):
        return Shape(kind="time", **facts)
    return Shape(**facts, **_words(there, counts))


def told(shape: Shape, tie: float | None) -> str:
    """Say in words what a column is like; `tie` is how strongly it goes along with the target."""
    parts = [_KINDS[shape.kind](shape)]
    if shape.missing:
        parts.append(f"{max(shape.missing, 0.01):.0%} missing")
    if tie is not None:
        parts.append(f"{strength(tie)} tie to the target")
    return ", ".join(parts)


def strength(tie: float) -> str:
    """Return a word for a correlation, whatever its sign."""
    limits = ((0.1, "no"), (0.3, "weak"), (0.6, "moderate"), (1.1, "strong"))
    return next(word for limit, word in limits if abs(tie) < limit)


def _numbers(values: Floats, distinct: int) -> dict[str, Any]:
    whole = bool((values == np.round(values)).all())
    quantiles = np.percentile(values, (2.5, 25, 50, 75, 97.5))
    low, first, middle, third, high = map(float, quantiles)
    width = high - low
    facts: dict[str, Any] = {
        "whole": whole,
        "zeros": round(float((values == 0).mean()), 3),
        "negative": bool((values < 0).any()),
        # by quantiles: a single value, which may be somebody's secret, must not move a figure much
        "skew": round((high + low - 2 * middle) / width, 2) if width > 0 else 0.0,
        "tails": round(min(width / max(third - first, width / 99) / 2.906 - 1, 30), 1)
        if width > 0
        else 0.0,
    }
    if distinct == 2:
        largest = max(Counter(values.tolist()).values()) / len(values)
        return {"kind": "flag", "largest": round(largest, 3), "whole": whole}
    return {"kind": "count" if whole else "number", **facts}


def _words(cells: Sequence[str], counts: Mapping[str, int]) -> dict[str, Any]:
    words = float(np.median([len(cell.split()) for cell in cells]))
    if words >= _TEXT and len(counts) > _FEW:
        return {"kind": "text", "words": _two_digits(words)}
    few = "flag" if len(counts) == 2 else "category"
    return {
        "kind": few if len(counts) <= max(_FEW, len(cells) // 20) else "code",
        "largest": round(max(counts.values()) / len(cells), 3),
    }


def _files(paths: Sequence[Path]) -> dict[str, Any]:
    sorts = Counter(sort_of_file(path) for path in paths)
    sort = sorts.most_common(1)[0][0]
    chosen = paths[:: max(1, len(paths) // _MOST_OPENED)]
    try:
        sizes = np.array([_OPENED[str(sort)](path) for path in chosen], dtype=float)
    except (OSError, wave.Error, EOFError) as error:
        raise UsageError(f"a {sort} file cannot be read ({type(error).__name__})") from None
    middle = np.median(sizes, axis=0)
    return {
        "kind": sort,
        "size": tuple(_two_digits(float(v)) if sort != "image" else float(v) for v in middle),
        "varies": bool((np.ptp(sizes, axis=0) > 0.01 * middle).any()),
    }


def _picture(path: Path) -> tuple[float, ...]:
    from PIL import Image

    with Image.open(path) as picture:
        return (*picture.size, len(picture.getbands()))


def _recording(path: Path) -> tuple[float, ...]:
    with wave.open(str(path)) as file:
        return (file.getnframes() / file.getframerate(), file.getframerate())


def _document(path: Path) -> tuple[float, ...]:
    return (float(len(path.read_bytes().split())),)


_OPENED = {"image": _picture, "audio": _recording, "document": _document}


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _quantity(shape: Shape) -> str:
    sign = "of either sign" if shape.negative else "not negative"
    skew = shape.skew or 0.0
    lean = "about symmetric"
    if abs(skew) > 0.2:
        much = "strongly " if abs(skew) > 0.5 else ""
        lean = f"{much}{'right' if skew > 0 else 'left'}-skewed"
    zeros = f", {shape.zeros:.0%} zeros" if (shape.zeros or 0) > 0.05 else ""
    tails = ", heavy tails" if (shape.tails or 0) > 1 else ""
    what = "whole number" if shape.whole else "continuous value"
    few = f" of {shape.distinct} levels" if shape.distinct <= _FEW else ""
    return f"{what}{few} {sign}, {lean}{tails}{zeros}"


def _pictured(shape: Shape) -> str:
    width, height, bands = shape.size or (0, 0, 0)
    varies = " at the median, of varying size" if shape.varies else ""
    return (
        f"{'grey' if bands < 3 else 'colour'} picture, {width:.0f} by {height:.0f} pixels{varies}"
    )


def _category(shape: Shape) -> str:
    much = "high" if shape.distinct > 50 else "low" if shape.distinct <= 10 else "medium"
    return f"category of {much} cardinality ({shape.distinct})"


_KINDS: dict[Kind, Any] = {
    "constant": lambda s: "constant",
    "number": _quantity,
    "count": _quantity,
    "flag": lambda s: f"one of two values, {s.largest:.0%} the same",
    "category": _category,
    "code": lambda s: f"code, {s.distinct} different",
    "text": lambda s: f"text of about {s.words:.0f} words",
    "time": lambda s: "point in time",
    "image": _pictured,
    "audio": lambda s: f"recording of about {s.size[0]:g} seconds at {s.size[1]:g} Hz",
    "document": lambda s: f"document of about {s.size[0]:.0f} words",
}
