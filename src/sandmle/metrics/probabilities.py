"""More metrics of probabilities and scores: of one class, of one of several, fair ones.

Those of one class take `y_true` (n,) of 0 and 1 and scores (n,); those of one of several one-hot
`y_true` (n, k) and probabilities (n, k), whose rows they scale to add up to 1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.classification import mean_roc_auc
from sandmle.metrics.kinds import IDENTITIES, PROBABILITIES, PROBABILITY, SCORE
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]


@metric(
    "brier",
    PROBABILITY,
    "min",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i (p_i - y_i)^2",
    degenerate="0.5 everywhere scores 0.25",
    title="Brier score",
)
def brier(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean squared error of the probabilities."""
    return float(np.mean((y_pred - y_true) ** 2))


@metric(
    "pf1",
    PROBABILITY,
    "max",
    0,
    1,
    formula=r"\frac{2\sum_i y_i p_i}{\sum_i y_i + \sum_i p_i}",
    degenerate="0 everywhere scores 0",
    title="probabilistic F1",
    source="RSNA breast cancer detection (Kaggle 2023)",
)
def pf1(y_true: Floats, y_pred: Floats) -> float:
    """Return F1 with p true and 1 - p false positives for a row that is predicted p."""
    if not y_true.any():
        raise GradingError("probabilistic F1 needs a positive among the hidden answers")
    return float(2 * np.sum(y_true * y_pred) / (np.sum(y_true) + np.sum(y_pred)))


@metric(
    "weighted_roc_auc",
    SCORE,
    "max",
    0,
    1,
    formula=r"\frac{\sum_b w_b \int_{t_b}^{t_{b+1}} (1 - \mathrm{fpr}(t))\,dt}"
    r"{\sum_b w_b (t_{b+1} - t_b)}",
    degenerate="a constant prediction scores 0.59 with the default weights",
    title="weighted area under the ROC curve",
    source="ALASKA2 (Kaggle 2020)",
    thresholds=[0.0, 0.4, 1.0],
    weights=[2.0, 1.0],
)
def weighted_roc_auc(
    y_true: Floats,
    y_pred: Floats,
    thresholds: Sequence[float] = (0.0, 0.4, 1.0),
    weights: Sequence[float] = (2.0, 1.0),
) -> float:
    """Return the area beside the ROC curve, bands of true positive rate weighted apart.

    Bands lie between neighbouring `thresholds`, which rise from 0 to 1. The curve is a straight
    line between its points, also where a threshold falls between two.
    """
    edges, weight = np.asarray(thresholds, dtype=float), np.asarray(weights, dtype=float)
    if len(weight) != len(edges) - 1 or edges[0] != 0 or edges[-1] != 1 or (weight <= 0).any():
        raise GradingError("thresholds must lead from 0 to 1, with a weight for each band between")
    if (np.diff(edges) <= 0).any():
        raise GradingError("thresholds must rise")
    order = np.argsort(-y_pred, kind="stable")
    last = np.flatnonzero(np.append(np.diff(y_pred[order]) != 0, True))
    hits = np.append(0, np.cumsum(y_true[order])[last])
    misses = np.append(0, last + 1) - hits
    if not hits[-1] or not misses[-1]:
        raise GradingError("all hidden answers are the same")
    tpr, fpr = hits / hits[-1], misses / misses[-1]
    # in one band the curve has the thresholds as further points; flat parts have no height
    level = np.unique(np.concatenate([tpr, edges]))
    rises = np.flatnonzero(np.diff(tpr) > 0)
    piece = rises[np.searchsorted(tpr[rises + 1], level[1:])]
    slope = (fpr[piece + 1] - fpr[piece]) / (tpr[piece + 1] - tpr[piece])
    middle = fpr[piece] + slope * ((level[1:] + level[:-1]) / 2 - tpr[piece])
    height = np.diff(level) * weight[np.searchsorted(edges, level[1:]) - 1]
    return float(np.sum(height * (1 - middle)) / np.sum(height))


@metric(
    "gini",
    SCORE,
    "max",
    -1,
    1,
    formula=r"2\,\mathrm{AUC} - 1",
    degenerate="a constant prediction scores 0",
    title="normalised Gini coefficient",
    source="Porto Seguro (Kaggle 2017), where the order of tied rows counted; here they share it",
)
def gini(y_true: Floats, y_pred: Floats) -> float:
    """Return twice the area under the ROC curve less 1."""
    return 2 * rank_auc(y_true, y_pred) - 1


@metric(
    "bias_auc",
    IDENTITIES,
    "max",
    0,
    1,
    formula=r"\tfrac{1}{4}\left(\mathrm{AUC} + \sum_{s} "
    r"\left(\tfrac{1}{m}\sum_g \mathrm{AUC}_{s,g}^{\,p}\right)^{1/p}\right)",
    degenerate="a constant prediction scores 0.5",
    title="AUC with three AUCs of each identity",
    source="Jigsaw unintended bias in toxicity classification (Kaggle 2019)",
    power=-5.0,
)
def bias_auc(
    y_true: Floats, y_pred: Floats, member: NDArray[np.bool_], power: float = -5.0
) -> float:
    """Return the mean of the overall AUC and of three power means of AUCs over identities.

    `member` (n, m) says which rows speak of which identity. The three are the AUC within them, that
    of their negatives with the positives of all others, and the other way round. Each identity
    needs positives and negatives within and without.
    """
    if not member.shape[1]:
        raise GradingError("no hidden row has an identity")
    positive = y_true == 1
    parts = []
    for own in member.T:
        # of a side that is not its own, an identity lacks what the other side then gives
        sides = own, own != positive, own == positive
        parts.append([rank_auc(y_true[rows], y_pred[rows]) for rows in sides])
    aucs = np.array(parts)
    means = [power_mean(aucs[:, i], power) for i in range(3)]
    return (rank_auc(y_true, y_pred) + sum(means)) / 4


def rank_auc(y_true: Floats, y_pred: Floats) -> float:
    """Return the area under the ROC curve from ranks; `GradingError` if one class is missing."""
    from scipy.stats import rankdata

    positive = float(np.sum(y_true))
    pairs = positive * (len(y_true) - positive)
    if not pairs:
        raise GradingError("all hidden answers, or all of some identity, are the same")
    ranks = float(np.sum(rankdata(y_pred) * y_true))
    return (ranks - positive * (positive + 1) / 2) / pairs


def power_mean(values: Floats, power: float) -> float:
    """Return the power mean of values from 0 to 1, for powers other than 0."""
    if power < 0 and not values.all():
        return 0.0
    return float(np.mean(values**power) ** (1 / power))


@metric(
    "top_k_accuracy",
    PROBABILITIES,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \left[\,|\{c : p_{ic} \ge p_{i,y_i}\}| \le k\right]",
    degenerate="ties count against: the same probability for all classes scores 0",
    title="top-k accuracy",
    k=2,
)
def top_k_accuracy(y_true: Floats, y_pred: Floats, k: int = 2) -> float:
    """Return the share of rows whose class is among the k likeliest, tied ones all before it."""
    own = y_pred[y_true == 1][:, None]
    return float(np.mean(np.sum(y_pred >= own, axis=1) <= k))


@metric(
    "brier_multiclass",
    PROBABILITIES,
    "min",
    0,
    2,
    formula=r"\frac{1}{n}\sum_i \sum_c (p_{ic} - [y_i = c])^2",
    degenerate="1/k everywhere scores 1 - 1/k",
    title="multi-class Brier score",
    source="Brier 1950, with the sum over classes",
)
def brier_multiclass(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over rows of the squared distance to the class that occurred."""
    p = y_pred / y_pred.sum(axis=1, keepdims=True)
    return float(np.mean(np.sum((p - y_true) ** 2, axis=1)))


@metric(
    "crps",
    PROBABILITIES,
    "min",
    0,
    1,
    formula=r"\frac{1}{n(k-1)}\sum_i \sum_{c<k} \left(\sum_{j \le c} p_{ij} - [y_i \le c]\right)^2",
    degenerate="1/k everywhere scores between 1/12 and 1/3, as the true classes lie",
    title="continuous ranked probability score over ordered classes",
    source="NFL Big Data Bowl (Kaggle 2019): the classes are yards",
)
def crps(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean squared distance of the cumulative probabilities from the true step.

    Classes are ordered as the columns of the schema; there must be two.
    """
    if y_true.shape[1] < 2:
        raise GradingError("a ranked probability score needs two classes")
    p = y_pred / y_pred.sum(axis=1, keepdims=True)
    return float(np.mean(np.cumsum(p - y_true, axis=1)[:, :-1] ** 2))


@metric(
    "roc_auc_ovr",
    PROBABILITIES,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_c \left(P(p_c^+ > p_c^-) + \tfrac{1}{2} P(p_c^+ = p_c^-)\right)",
    degenerate="the same probabilities for all rows score 0.5",
    title="mean one-versus-rest area under the ROC curve",
)
def roc_auc_ovr(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over classes of the AUC of the class against all others."""
    if not y_true.any(axis=0).all() or y_true.all(axis=0).any():
        raise GradingError("each class must occur among the hidden answers, and not alone")
    return mean_roc_auc(y_true, y_pred)
