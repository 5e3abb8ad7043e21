"""Metrics of boxes: those of a picture are (k, 5), confidence, x, y, width and height."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import BOXES
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
ENOUGH = 0.5  # share of the union that two boxes have in common if they match


@metric(
    "ap50",
    BOXES,
    "max",
    0,
    1,
    formula=r"\sum_j (R_j - R_{j-1}) \max_{i \ge j} P_i",
    degenerate="no box at all scores 0; boxes of one confidence count all together",
    title="average precision at an intersection over union of 0.5",
)
def ap50(truth: Sequence[Floats], predicted: Sequence[Floats]) -> float:
    """Return the area under the envelope of precision over recall.

    By falling confidence each predicted box takes the true box of its picture that it overlaps most
    among those not yet taken, if their intersection is at least half of their union. The confidence
    of true boxes means nothing. No order matters: within a picture equal confidences, and true
    boxes equally overlapped, go from left to right (by x, y, width, height), and the curve has a
    point for each distinct confidence only, so boxes with the same one count together.
    """
    true, home = gather(truth)
    boxes, picture = gather(predicted)
    if not len(true):
        raise GradingError("average precision needs a true box among the hidden answers")
    order = np.argsort(-boxes[:, 0], kind="stable")
    boxes, picture = boxes[order], picture[order]
    found = np.cumsum(matches(boxes, picture, true, home))
    last = np.flatnonzero(np.append(boxes[1:, 0] != boxes[:-1, 0], len(boxes) > 0))
    precision = found[last] / (last + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(found[last], prepend=0) * envelope) / len(true))


def gather(boxes: Sequence[Floats]) -> tuple[Floats, Places]:
    """Return the boxes of all pictures, from left to right in each, and the picture of each."""
    picture = np.repeat(np.arange(len(boxes)), [len(own) for own in boxes])
    together = np.concatenate(boxes)
    order = np.lexsort((*together.T[:0:-1], picture))
    return together[order], picture[order]


def matches(boxes: Floats, picture: Places, true: Floats, home: Places) -> NDArray[np.bool_]:
    """Say which predicted boxes, best first, find a true one; `home` rises."""
    first = np.searchsorted(home, picture)
    count = np.searchsorted(home, picture, side="right") - first
    box = np.repeat(np.arange(len(boxes)), count)
    mate = np.arange(len(box)) + np.repeat(first - (np.cumsum(count) - count), count)
    iou = overlap(boxes[box], true[mate])
    near = np.flatnonzero(iou >= ENOUGH)
    near = near[np.lexsort((mate[near], -iou[near], box[near]))]
    hit, taken = np.zeros(len(boxes), dtype=bool), np.zeros(len(true), dtype=bool)
    for i, j in zip(box[near].tolist(), mate[near].tolist(), strict=True):
        if not (hit[i] or taken[j]):
            hit[i] = taken[j] = True
    return hit


def overlap(first: Floats, second: Floats) -> Floats:
    """Return the intersection over the union of boxes with boxes, row by row."""
    low, high = first[:, 1:3], first[:, 1:3] + first[:, 3:]
    low_2, high_2 = second[:, 1:3], second[:, 1:3] + second[:, 3:]
    # all areas from corners: a box then has exactly itself in common with itself
    area, area_2 = np.prod(high - low, axis=1), np.prod(high_2 - low_2, axis=1)
    shared = np.prod(np.clip(np.minimum(high, high_2) - np.maximum(low, low_2), 0, None), axis=1)
    result: Floats = shared / np.maximum(area + area_2 - shared, np.finfo(float).tiny)
    return result
