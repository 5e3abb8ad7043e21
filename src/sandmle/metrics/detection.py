"""Metrics of boxes: those of a picture are (k, 5), confidence, x, y, width and height."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import BOXES, CLASS_BOXES
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
THRESHOLDS = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
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


@metric(
    "coco_map",
    CLASS_BOXES,
    "max",
    0,
    1,
    formula=r"\frac{1}{|T|k}\sum_{t \in T} \sum_c \frac{1}{101}\sum_{r \in \{0, 0.01, \ldots, 1\}} "
    r"\max_{R_i \ge r} P_i",
    degenerate="no box at all scores 0; boxes of one class and confidence count all together",
    title="mean average precision over thresholds of overlap and classes",
    source="COCO, all areas, all boxes; one row for each picture and class",
    thresholds=THRESHOLDS,
)
def coco_map(
    truth: Sequence[Floats],
    predicted: Sequence[Floats],
    group: NDArray[Any],
    thresholds: Sequence[float] = THRESHOLDS,
) -> float:
    """Return the mean of COCO's average precision over classes and overlaps `thresholds`.

    `group` (n,) names the class of each row; each needs a true box. By falling confidence each box
    takes the true one of its row that it overlaps most among those not yet taken, if it does so by
    the threshold. Boxes that tie go from left to right, as for `ap50`.
    """
    boxes, true, picture, home, kind, size = by_confidence(truth, predicted, group)
    pairs = candidates(boxes, picture, true, home)
    hits = np.array([taken_by(pairs, least, len(boxes), len(true)) for least in thresholds])
    levels, total = np.linspace(0, 1, 101), 0.0
    for c, many in enumerate(size.tolist()):
        own = np.flatnonzero(kind == c)
        for found, precision in zip(*curve(boxes[own, 0], hits[:, own]), strict=True):
            at = np.searchsorted(found / many, levels)
            total += float(np.sum(np.append(precision, 0.0)[at])) / 101
    return total / (len(thresholds) * len(size))


@metric(
    "voc_map",
    CLASS_BOXES,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_c \sum_j (R_j - R_{j-1}) \max_{i \ge j} P_i",
    degenerate="no box at all scores 0; boxes of one class and confidence count all together",
    title="mean average precision of the classes",
    source="PASCAL VOC 2010, without its extra pixel in widths; one row for each picture and class",
    iou=0.5,
)
def voc_map(
    truth: Sequence[Floats], predicted: Sequence[Floats], group: NDArray[Any], iou: float = 0.5
) -> float:
    """Return the mean over classes of the area under the envelope of precision over recall.

    `group` (n,) names the class of each row; each needs a true box. A box is right if it
    overlaps the true one of its row that it overlaps most by at least `iou`, and no surer box has
    taken that one: unlike `ap50` it does not turn to the next one then.
    """
    boxes, true, picture, home, kind, size = by_confidence(truth, predicted, group)
    box, mate, overlaps = candidates(boxes, picture, true, home)
    first = np.append(True, box[1:] != box[:-1])[: len(box)]
    hit = taken_by((box[first], mate[first], overlaps[first]), iou, len(boxes), len(true))
    areas = []
    for c, many in enumerate(size.tolist()):
        found, precision = curve(boxes[kind == c, 0], hit[kind == c])
        areas.append(float(np.sum(np.diff(found, prepend=0) * precision)) / many)
    return float(np.mean(areas))


@metric(
    "point_f1",
    BOXES,
    "max",
    0,
    1,
    formula=r"\frac{2\,tp}{2\,tp + fp + fn}",
    degenerate="no box at all scores 0",
    title="F1 of points in boxes",
    source="Kuzushiji recognition (Kaggle 2019); one row for each picture and character",
)
def point_f1(truth: Sequence[Floats], predicted: Sequence[Floats]) -> float:
    """Return the F1 of predicted points, the middles of predicted boxes, all rows pooled.

    True boxes take, from left to right, the first point of their row that lies within them (not on
    the edge) and is not yet taken. Confidences mean nothing. There must be a true box.
    """
    true, home = gather(truth)
    boxes, picture = gather(predicted)
    if not len(true):
        raise GradingError("F1 needs a true box among the hidden answers")
    middle = boxes[:, 1:3] + boxes[:, 3:] / 2
    point, mate = same_picture(picture, home)
    low, high = true[mate, 1:3], true[mate, 1:3] + true[mate, 3:]
    inside = np.all((low < middle[point]) & (middle[point] < high), axis=1)
    point, mate = point[inside], mate[inside]
    order = np.lexsort((point, mate))
    hit = taken_by((mate[order], point[order], np.ones(len(order))), 0, len(true), len(boxes))
    return float(2 * np.sum(hit) / (len(true) + len(boxes)))


def by_confidence(
    truth: Sequence[Floats], predicted: Sequence[Floats], group: NDArray[Any]
) -> tuple[Floats, Floats, Places, Places, Places, Places]:
    """Return predicted boxes, surest first, true ones, the row of each, and more about classes.

    That is the class of each predicted box, as a number, and how many true boxes each class has.
    """
    true, home = gather(truth)
    boxes, picture = gather(predicted)
    names, number = np.unique(group, return_inverse=True)
    size = np.bincount(number[home], minlength=len(names))
    if not size.all():
        raise GradingError(f"no hidden box is of class {names[size == 0][0]!r}")
    order = np.argsort(-boxes[:, 0], kind="stable")
    return boxes[order], true, picture[order], home, number[picture[order]], size


def same_picture(picture: Places, home: Places) -> tuple[Places, Places]:
    """Return all pairs of predicted and true boxes of one picture; `home` rises."""
    first = np.searchsorted(home, picture)
    count = np.searchsorted(home, picture, side="right") - first
    box = np.repeat(np.arange(len(picture)), count)
    return box, np.arange(len(box)) + np.repeat(first - (np.cumsum(count) - count), count)


def candidates(
    boxes: Floats, picture: Places, true: Floats, home: Places
) -> tuple[Places, Places, Floats]:
    """Return predicted boxes with the true ones that they touch, most overlapped first."""
    box, mate = same_picture(picture, home)
    iou = overlap(boxes[box], true[mate])
    near = np.flatnonzero(iou > 0)
    near = near[np.lexsort((mate[near], -iou[near], box[near]))]
    return box[near], mate[near], iou[near]


def taken_by(
    pairs: tuple[Places, Places, Floats], least: float, n: int, m: int
) -> NDArray[np.bool_]:
    """Say which of `n` takers get one of `m` others, in the order of pairs of at least `least`."""
    got, gone = np.zeros(n, dtype=bool), np.zeros(m, dtype=bool)
    enough = pairs[2] >= least
    taker, other = pairs[0][enough], pairs[1][enough]
    alone = (np.bincount(taker, minlength=n)[taker] == 1) & (np.bincount(other)[other] == 1)
    got[taker[alone]] = True
    for i, j in zip(taker[~alone].tolist(), other[~alone].tolist(), strict=True):
        if not (got[i] or gone[j]):
            got[i] = gone[j] = True
    return got


def curve(confidence: Floats, hit: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return hits and the envelope of precision at each distinct confidence, surest first.

    `hit` is (k,) or (t, k), and so are the results, of as many as there are confidences.
    """
    last = np.flatnonzero(np.append(confidence[1:] != confidence[:-1], len(confidence) > 0))
    found = np.cumsum(hit, axis=-1)[..., last]
    precision = found / (last + 1)
    envelope: Floats = np.maximum.accumulate(precision[..., ::-1], axis=-1)[..., ::-1]
    return found.astype(np.float64), envelope
