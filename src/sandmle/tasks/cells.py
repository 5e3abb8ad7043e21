"""What one cell of a submission may hold: a number, labels, a mask, boxes, a text.

Like `submission`, this is copied into every `evaluator.py`: standard library and numpy only.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RANGE_SLACK = 1e-6  # a float32 probability of 1 prints as 1.0000001
MAX_CELL = 131_072  # characters; the csv module refuses longer ones in any case
MAX_TEXT = 2000
MAX_PIXEL = 1e6  # a coordinate of a box; far larger ones would swallow its width
_BOX_CHARACTERS = 5 * 32  # five numbers with seventeen digits, sign, exponent and blanks
# nothing matched is given back ("++"), so the time is linear in the length of a hostile cell
_NUMBER = re.compile(r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+", re.ASCII)
_WHOLE = re.compile(r"\d{1,9}+", re.ASCII)
_NUMBERS = re.compile(rf" *+(?:{_NUMBER.pattern}(?: ++|\Z))*+", re.ASCII)
_WHOLES = re.compile(rf" *+(?:{_WHOLE.pattern}(?: ++|\Z))*+", re.ASCII)


class Invalid(ValueError):
    """The submission breaks its schema; the message says where, and what was expected."""


def parse_number(cell: str) -> float:
    """Read a decimal number; NaN for anything else, also for what only Python calls a number."""
    return float(cell) if _NUMBER.fullmatch(cell) else math.nan


def split_labels(cell: str) -> tuple[str, ...]:
    """Return the labels of a cell, which blanks separate; no other white space does."""
    return tuple(part for part in cell.split(" ") if part)


def parse_cell(cell: str, column: Mapping[str, Any]) -> Any:
    """Read a cell of a mask, boxes or text column; the message of `Invalid` is a verb phrase."""
    if column["kind"] == "mask":
        return parse_mask(cell, column["shape"])
    if column["kind"] == "boxes":
        return parse_boxes(cell, column["max_items"])
    _require_short(cell, MAX_TEXT)
    return cell


def parse_mask(cell: str, shape: Sequence[int]) -> NDArray[np.int64]:
    """Read a run-length encoded mask: the runs (k, 2), each from its first pixel to before its end.

    A cell has pairs of start and length, separated by blanks. Pixels are counted down the columns,
    the left column first, in the cell from 1 and in the result from 0. Runs rise and may touch.
    """
    pixels = shape[0] * shape[1]
    _require_short(cell, (pixels + 1) * (len(str(pixels)) + 1))  # every second pixel is a run
    parts = split_labels(cell)
    if not _WHOLES.fullmatch(cell):
        odd = next(part for part in parts if not _WHOLE.fullmatch(part))
        raise Invalid(f"holds {quoted(odd)}, not a whole number of at most 9 digits")
    if len(parts) % 2:
        raise Invalid(f"holds {counted(len(parts), 'number')}; a run is two, start and length")
    runs: list[tuple[int, int]] = []
    last = 0  # pixel of the runs before
    for start, length in zip(map(int, parts[::2]), map(int, parts[1::2]), strict=True):
        end = start + length - 1
        if not last < start <= end <= pixels:
            fault = f"leaves the picture: its pixels are 1 to {pixels}"
            if length == 0:
                fault = "has no pixel"
            elif 1 <= start <= last:
                fault = "starts before the run before it ends"
            raise Invalid(f"holds the run '{start} {length}', which {fault}")
        runs.append((start - 1, end))
        last = end
    return np.array(runs, dtype=np.int64).reshape(-1, 2)


def encode_mask(mask: NDArray[np.bool_]) -> str:
    """Write a mask (height, width) in the form that `parse_mask` reads."""
    flat = np.concatenate([[False], np.asarray(mask, dtype=bool).ravel(order="F"), [False]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    starts, ends = edges[::2], edges[1::2]
    pairs = zip((starts + 1).tolist(), (ends - starts).tolist(), strict=True)
    return " ".join(f"{start} {length}" for start, length in pairs)


def decode_mask(cell: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Read a cell as a mask of `shape` (height, width); `Invalid` if it is none."""
    try:
        runs = parse_mask(cell, shape)
    except Invalid as error:
        raise Invalid(f"the mask {error}") from None
    flat = np.zeros(shape[0] * shape[1], dtype=bool)
    for start, end in runs.tolist():
        flat[start:end] = True
    return flat.reshape(shape, order="F")


def parse_boxes(cell: str, most: int) -> NDArray[np.float64]:
    """Read at most `most` boxes (k, 5): confidence, x and y of a corner, width and height.

    A cell has the five numbers of each box, separated by blanks; all but the first are pixels, and
    the corner is the upper left one.
    """
    _require_short(cell, most * _BOX_CHARACTERS)
    parts = split_labels(cell)
    values = [parse_number(part) for part in parts]
    # NaN is not within anything
    odd = [p for p, v in zip(parts, values, strict=True) if not abs(v) <= MAX_PIXEL]
    if odd:
        raise Invalid(f"holds {quoted(odd[0])}, not a number of at most {MAX_PIXEL:,.0f} in size")
    if len(parts) % 5:
        raise Invalid(
            f"holds {counted(len(parts), 'number')}; a box is five, confidence x y width height"
        )
    if len(parts) > 5 * most:
        raise Invalid(f"has more than {counted(most, 'box', 'boxes')}")
    for i in range(0, len(parts), 5):
        confidence, width, height = values[i], values[i + 3], values[i + 4]
        sure = -RANGE_SLACK <= confidence <= 1 + RANGE_SLACK
        if not sure or min(width, height) <= 0:
            fault = "size is not above 0" if sure else "confidence is outside [0, 1]"
            raise Invalid(f"holds the box {quoted(' '.join(parts[i : i + 5]))}, whose {fault}")
        values[i] = min(max(confidence, 0.0), 1.0)
    return np.array(values, dtype=np.float64).reshape(-1, 5)


def sound_boxes(cells: Sequence[str], most: int) -> list[NDArray[np.float64]] | None:
    """Read all cells as `parse_boxes` does, but at once and faster; None if one is at fault."""
    longest = min(most * _BOX_CHARACTERS, MAX_CELL)
    if max(map(len, cells), default=0) > longest or not _NUMBERS.fullmatch(" ".join(cells)):
        return None
    parts = [cell.split() for cell in cells]
    counts = np.array([len(own) for own in parts], dtype=np.int64)
    if (counts % 5).any() or (counts > 5 * most).any():
        return None
    boxes = np.array([float(part) for own in parts for part in own]).reshape(-1, 5)
    sure = (boxes[:, 0] >= -RANGE_SLACK) & (boxes[:, 0] <= 1 + RANGE_SLACK)
    if not (sure.all() and (np.abs(boxes) <= MAX_PIXEL).all() and (boxes[:, 3:] > 0).all()):
        return None
    boxes[:, 0] = boxes[:, 0].clip(0, 1)
    ends = np.cumsum(counts // 5).tolist()
    return [boxes[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _require_short(cell: str, most: int) -> None:
    most = min(most, MAX_CELL)
    if len(cell) > most:
        raise Invalid(f"has {len(cell):,} characters, the limit is {most:,}")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def quoted(text: str) -> str:
    """Return the beginning of a text as a literal: control characters are escaped."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
