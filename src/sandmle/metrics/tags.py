"""More metrics of tags: `y_true` (n, k) of 0 and 1, `y_pred` (n, k) of probabilities.

Those that need decisions take a tag to hold from `threshold` on.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import COLUMNS
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]


@metric(
    "lwlrap",
    COLUMNS,
    "max",
    0,
    1,
    formula=r"\frac{1}{\sum_{ij} y_{ij}} \sum_{ij : y_{ij} = 1} "
    r"\frac{|\{l : y_{il} = 1, p_{il} \ge p_{ij}\}|}{|\{l : p_{il} \ge p_{ij}\}|}",
    degenerate="the same probability for all tags scores, for each tag that holds, "
    "the share of tags of its row that hold",
    title="label-weighted label-ranking average precision",
    source="Freesound audio tagging 2019 (Kaggle)",
)
def lwlrap(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over all tags that hold of the precision at their place in their row."""
    if not y_true.any():
        raise GradingError("no tag holds for any hidden row")
    return float(np.sum(precision_at_hits(y_true, y_pred)) / np.sum(y_true))


@metric(
    "tag_map",
    COLUMNS,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_j \sum_t (R_{jt} - R_{j,t-1}) P_{jt}",
    degenerate="a column with a constant prediction counts the share of rows for which it holds",
    title="mean average precision of the tags",
)
def tag_map(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over the tags of their average precision; each must hold somewhere."""
    require_tags(y_true)
    total = np.sum(precision_at_hits(y_true.T, y_pred.T), axis=1)
    return float(np.mean(total / np.sum(y_true, axis=0)))


def precision_at_hits(y_true: Floats, y_pred: Floats) -> Floats:
    """Return, row by row and best first, the precision at each 1 of `y_true`, 0 elsewhere.

    Tied scores are taken together: the precision is that at the last of them.
    """
    order = np.argsort(-y_pred, axis=1, kind="stable")
    score, hit = (np.take_along_axis(table, order, axis=1) for table in (y_pred, y_true))
    k = score.shape[1]
    ends = np.full(score.shape, k - 1)
    ends[:, :-1] = np.where(score[:, 1:] != score[:, :-1], np.arange(k - 1), k - 1)
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    found = np.take_along_axis(np.cumsum(hit, axis=1), last, axis=1)
    precision: Floats = hit * found / (last + 1)
    return precision


@metric(
    "weighted_log_loss",
    COLUMNS,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i \frac{\sum_j w_{ij} \ell_{ij}}{\sum_j w_{ij}},\quad "
    r"w_{ij} = w_j \text{ or, if } y_{ij} = 1,\ \mathrm{positive} \cdot w_j",
    degenerate="probabilities are clipped to [1e-15, 1 - 1e-15], so a sure mistake costs 34.5",
    title="weighted log loss of the tags",
    source="RSNA cervical spine fracture detection (Kaggle 2022): weights 7, 1, ..., 1, positive 2",
    weights=None,
    positive=1.0,
)
def weighted_log_loss(
    y_true: Floats,
    y_pred: Floats,
    weights: Sequence[float] | None = None,
    positive: float = 1.0,
) -> float:
    """Return the mean over rows of the weighted mean log loss of their tags.

    `weights`: above 0, one for each tag, or None for equal ones; where a tag holds it counts
    `positive` times as much.
    """
    k = y_true.shape[1]
    weight = np.ones(k) if weights is None else np.asarray(weights, dtype=float)
    if weight.shape != (k,) or not (weight > 0).all() or positive <= 0:
        raise GradingError(f"there must be {k} weights, one for each tag, all above 0")
    p = np.clip(y_pred, 1e-15, 1 - 1e-15)
    loss = -(y_true * np.log(p) + (1 - y_true) * np.log1p(-p))
    table = weight * np.where(y_true == 1, positive, 1.0)
    return float(np.mean(np.sum(table * loss, axis=1) / np.sum(table, axis=1)))


@metric(
    "tag_f1_micro",
    COLUMNS,
    "max",
    0,
    1,
    formula=r"\frac{2\,tp}{2\,tp + fp + fn}",
    degenerate="no tag at all scores 0",
    title="micro-averaged F1 of the tags",
    threshold=0.5,
)
def tag_f1_micro(y_true: Floats, y_pred: Floats, threshold: float = 0.5) -> float:
    """Return the F1 of all cells pooled; a tag must hold somewhere."""
    if not y_true.any():
        raise GradingError("no tag holds for any hidden row")
    found = y_pred >= threshold
    return float(2 * np.sum(y_true * found) / (np.sum(y_true) + np.sum(found)))


@metric(
    "tag_f1_macro",
    COLUMNS,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_j \frac{2\,tp_j}{2\,tp_j + fp_j + fn_j}",
    degenerate="a tag that is never predicted contributes 0",
    title="macro-averaged F1 of the tags",
    threshold=0.5,
)
def tag_f1_macro(y_true: Floats, y_pred: Floats, threshold: float = 0.5) -> float:
    """Return the mean over the tags of their F1; each must hold somewhere."""
    require_tags(y_true)
    found = y_pred >= threshold
    both = np.sum(y_true * found, axis=0)
    return float(np.mean(2 * both / (np.sum(y_true, axis=0) + np.sum(found, axis=0))))


@metric(
    "hamming",
    COLUMNS,
    "min",
    0,
    1,
    formula=r"\frac{1}{nk}\sum_{i,j} \left[[p_{ij} \ge t] \ne y_{ij}\right]",
    degenerate="no tag at all scores the share of cells that hold",
    title="Hamming loss of the tags",
    threshold=0.5,
)
def hamming(y_true: Floats, y_pred: Floats, threshold: float = 0.5) -> float:
    """Return the share of cells that are decided wrong."""
    return float(np.mean((y_pred >= threshold) != y_true))


@metric(
    "tag_jaccard",
    COLUMNS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{|A_i \cap B_i|}{|A_i \cup B_i|}",
    degenerate="a row counts 1 if no tag holds and none is predicted, 0 if only one is so",
    title="mean Jaccard score of the tags",
    threshold=0.5,
)
def tag_jaccard(y_true: Floats, y_pred: Floats, threshold: float = 0.5) -> float:
    """Return the mean over rows of the tags in both in units of those in either."""
    true, found = y_true == 1, y_pred >= threshold
    both, either = np.sum(true & found, axis=1), np.sum(true | found, axis=1)
    return float(np.mean(np.where(either == 0, 1.0, both / np.maximum(either, 1))))


def require_tags(y_true: Floats) -> None:
    """Raise `GradingError` unless each tag holds for some hidden row."""
    empty = np.flatnonzero(~y_true.any(axis=0))
    if len(empty):
        raise GradingError(f"tag {int(empty[0]) + 1} holds for no hidden row")
