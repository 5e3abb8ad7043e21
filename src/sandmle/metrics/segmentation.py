"""Metrics of masks: a mask is its runs (k, 2) of pixels, each from its first to before its end.

Runs rise and do not overlap, as `parse_mask` gives them. Nothing is painted: all pictures are laid
end to end, and what two masks share follows from where their runs begin and end.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import CLASS_MASKS, MASKS, SHAPED_MASKS
from sandmle.metrics.registry import metric

Runs = NDArray[np.int64]
Floats = NDArray[np.float64]
THRESHOLDS = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]


@metric(
    "dice",
    MASKS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{2\,|A_i \cap B_i|}{|A_i| + |B_i|}",
    degenerate="a picture counts 1 if both masks are empty, 0 if only one is",
    title="Dice coefficient",
)
def dice(truth: Sequence[Runs], predicted: Sequence[Runs]) -> float:
    """Return the mean over pictures of the pixels in both, in units of the mean size of the two."""
    shared, first, second = areas(truth, predicted)
    return mean_ratio(2 * shared, first + second)


@metric(
    "mean_iou",
    MASKS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{|A_i \cap B_i|}{|A_i \cup B_i|}",
    degenerate="a picture counts 1 if both masks are empty, 0 if only one is",
    title="mean intersection over union",
)
def mean_iou(truth: Sequence[Runs], predicted: Sequence[Runs]) -> float:
    """Return the mean over pictures of the share of pixels in both among those in either."""
    shared, first, second = areas(truth, predicted)
    return mean_ratio(shared, first + second - shared)


def areas(truth: Sequence[Runs], predicted: Sequence[Runs]) -> tuple[Floats, Floats, Floats]:
    """Return for each picture (n,) the pixels in both masks, in the true and in the predicted."""
    size = max((int(runs[-1, 1]) for runs in (*truth, *predicted) if len(runs)), default=0)
    true, picture = end_to_end(truth, size)
    guess, other = end_to_end(predicted, size)
    few, home, many = true, picture, guess
    if len(true) > len(guess):  # a mask of single pixels has a thousand runs
        few, home, many = guess, other, true
    n = len(truth)
    return (
        total(below(few[:, 1], many) - below(few[:, 0], many), home, n),
        total(true[:, 1] - true[:, 0], picture, n),
        total(guess[:, 1] - guess[:, 0], other, n),
    )


def below(pixels: Runs, runs: Runs) -> Runs:
    """Return how many pixels of `runs` come before each of some pixels."""
    # an empty run before all others, so that every pixel has a run that starts before it
    start = np.append(-1, runs[:, 0])
    length = np.append(0, runs[:, 1] - runs[:, 0])
    run = np.searchsorted(start, pixels, side="right") - 1
    count: Runs = (np.cumsum(length) - length)[run] + np.minimum(pixels - start[run], length[run])
    return count


def end_to_end(masks: Sequence[Runs], size: int) -> tuple[Runs, Runs]:
    """Return the runs of all pictures, laid `size` pixels apart, and the picture of each run."""
    picture = np.repeat(np.arange(len(masks)), [len(runs) for runs in masks])
    return np.concatenate(masks) + size * picture[:, None], picture


def total(pixels: Runs, picture: Runs, n: int) -> Floats:
    """Return the sum of each of `n` pictures."""
    return np.bincount(picture, weights=pixels, minlength=n).astype(np.float64)


def mean_ratio(part: Floats, whole: Floats) -> float:
    """Return the mean quotient, 0 / 0 taken for 1."""
    return float(np.mean(np.divide(part, whole, out=np.ones(len(whole)), where=whole > 0)))


@metric(
    "global_dice",
    MASKS,
    "max",
    0,
    1,
    formula=r"\frac{2\sum_i |A_i \cap B_i|}{\sum_i (|A_i| + |B_i|)}",
    degenerate="no pixel at all scores 0",
    title="global Dice coefficient",
    source="Identify contrails (Kaggle 2023)",
)
def global_dice(truth: Sequence[Runs], predicted: Sequence[Runs]) -> float:
    """Return the Dice coefficient of the pixels of all pictures pooled; one must be true."""
    shared, first, second = (float(np.sum(part)) for part in areas(truth, predicted))
    if not first:
        raise GradingError("no hidden mask has a pixel")
    return 2 * shared / (first + second)


@metric(
    "mask_fbeta",
    MASKS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{(1+\beta^2)\,|A_i \cap B_i|}{|B_i| + \beta^2 |A_i|}",
    degenerate="a picture counts 1 if both masks are empty, 0 if only one is",
    title="mean F-beta of pixels",
    source="Vesuvius challenge ink detection (Kaggle 2023), with beta 0.5",
    beta=0.5,
)
def mask_fbeta(truth: Sequence[Runs], predicted: Sequence[Runs], beta: float = 0.5) -> float:
    """Return the mean over pictures of F-beta of true (A) and found pixels (B); beta above 0."""
    shared, first, second = areas(truth, predicted)
    return mean_ratio((1 + beta**2) * shared, second + beta**2 * first)


@metric(
    "mask_map",
    MASKS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n|T|}\sum_i \sum_{t \in T} "
    r"\left[\frac{|A_i \cap B_i|}{|A_i \cup B_i|} > t\right]",
    degenerate="a picture counts 1 if both masks are empty, 0 if only one is",
    title="mean average precision of single masks over thresholds of overlap",
    source="TGS salt identification (Kaggle 2018): the thresholds are 0.50, 0.55, ..., 0.95",
    thresholds=THRESHOLDS,
)
def mask_map(
    truth: Sequence[Runs], predicted: Sequence[Runs], thresholds: Sequence[float] = THRESHOLDS
) -> float:
    """Return the mean share of thresholds that the intersection over union of a picture exceeds."""
    shared, first, second = areas(truth, predicted)
    union = first + second - shared
    iou = np.divide(shared, union, out=np.ones(len(union)), where=union > 0)
    return float(np.mean(iou[:, None] > np.asarray(thresholds, dtype=float)))


@metric(
    "dice_hausdorff",
    SHAPED_MASKS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \left(0.4\,\mathrm{Dice}_i + 0.6\,(1 - H_i)\right)",
    degenerate="a picture counts 1 if both masks are empty, 0 if only one is",
    title="0.4 Dice coefficient and 0.6 Hausdorff distance",
    source="UW-Madison GI tract (Kaggle 2022), which stacks pictures to a volume for the distance; "
    "here each picture is one of its own",
)
def dice_hausdorff(
    truth: Sequence[Runs], predicted: Sequence[Runs], shape: tuple[int, int]
) -> float:
    """Return the mean over pictures of 0.4 Dice and 0.6 (1 - H).

    H is the Hausdorff distance of the pixels of both masks in a picture whose height and width are
    taken for 1, in units of its diagonal; 1 if only one mask is empty.
    """
    distance = [hausdorff(a, b, shape) for a, b in zip(truth, predicted, strict=True)]
    return 0.4 * dice(truth, predicted) + 0.6 * (1 - float(np.mean(distance)))


def hausdorff(first: Runs, second: Runs, shape: tuple[int, int]) -> float:
    """Return the Hausdorff distance of two masks in units of the picture's diagonal."""
    from scipy.ndimage import distance_transform_edt

    if not len(first) or not len(second):
        return float(len(first) != len(second))
    # all pixels of both lie within this part, and so do the nearest ones
    left = int(min(first[0, 0], second[0, 0])) // shape[0]
    right = (int(max(first[-1, 1], second[-1, 1])) - 1) // shape[0] + 1
    strip = shape[0], right - left
    masks = [painted(runs - left * shape[0], strip) for runs in (first, second)]
    rows = np.flatnonzero((masks[0] | masks[1]).any(axis=1))
    part = [mask[rows[0] : rows[-1] + 1] for mask in masks]
    pixel = (1 / shape[0], 1 / shape[1])
    furthest = 0.0
    for near, far in (part, part[::-1]):
        off = np.flatnonzero(far & ~near)
        if off.size:
            nearest = distance_transform_edt(
                ~near, sampling=pixel, return_distances=False, return_indices=True
            )
            row, column = np.divmod(off, near.shape[1])
            down = (nearest[0].ravel()[off] - row) * pixel[0]
            across = (nearest[1].ravel()[off] - column) * pixel[1]
            furthest = max(furthest, float(np.max(down**2 + across**2)))
    return math.sqrt(furthest / 2)


def painted(runs: Runs, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the mask (height, width) of some runs."""
    edges = np.concatenate([[0], runs.ravel(), [shape[0] * shape[1]]])
    inside = np.arange(len(edges) - 1) % 2 == 1  # from a start to an end; runs may touch
    return np.repeat(inside, edges[1:] - edges[:-1]).reshape(shape, order="F")


@metric(
    "class_iou",
    CLASS_MASKS,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_c "
    r"\frac{\sum_{i \in c} |A_i \cap B_i|}{\sum_{i \in c} |A_i \cup B_i|}",
    degenerate="a class without a predicted pixel counts 0",
    title="mean intersection over union of the classes",
    source="as for PASCAL VOC and Cityscapes; one row for each picture and class",
)
def class_iou(truth: Sequence[Runs], predicted: Sequence[Runs], group: NDArray[Any]) -> float:
    """Return the mean over classes of the intersection over union of all their pixels.

    `group` (n,) names the class of each row; each needs a true pixel.
    """
    shared, first, second = areas(truth, predicted)
    names, number = np.unique(group, return_inverse=True)
    both, true, found = (np.bincount(number, weights=part) for part in (shared, first, second))
    if not true.all():
        raise GradingError(f"no hidden mask of class {names[true == 0][0]!r} has a pixel")
    return float(np.mean(both / (true + found - both)))
