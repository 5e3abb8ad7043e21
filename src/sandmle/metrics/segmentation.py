"""Metrics of masks: a mask is its runs (k, 2) of pixels, each from its first to before its end.

Runs rise and do not overlap, as `parse_mask` gives them. Nothing is painted: all pictures are laid
end to end, and what two masks share follows from where their runs begin and end.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sandmle.metrics.kinds import MASKS
from sandmle.metrics.registry import metric

Runs = NDArray[np.int64]
Floats = NDArray[np.float64]


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
