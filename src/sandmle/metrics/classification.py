"""Metrics of class labels and of probabilities and shares of classes.

Label metrics take `y_true` and `y_pred` (n,) of str and `classes`, the choices of the schema in
their order. Probability metrics take `y_true` (n,) of 0 and 1 with scores (n,), or one-hot
`y_true` (n, k) with probabilities (n, k); metrics of tags take the same with any number of ones in
a row, metrics of shares the shares (n, k) of both.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import COLUMNS, LABEL, PROBABILITIES, PROBABILITY, SCORE, SHARES
from sandmle.metrics.registry import metric

Labels = NDArray[Any]
Floats = NDArray[np.float64]


@metric(
    "accuracy",
    LABEL,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i [\hat y_i = y_i]",
    degenerate="a constant prediction scores the share of that class",
)
def accuracy(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return the share of rows predicted right."""
    return float(np.mean(y_true == y_pred))


@metric(
    "balanced_accuracy",
    LABEL,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_c \mathrm{recall}_c",
    degenerate="a constant prediction scores 1/k",
    title="balanced accuracy",
)
def balanced_accuracy(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return the mean recall over the classes of the schema; each must occur in `y_true`."""
    from sklearn.metrics import recall_score

    require_classes(y_true, classes)
    options = {"labels": list(classes), "average": "macro", "zero_division": 0}
    return float(recall_score(y_true.astype(str), y_pred.astype(str), **options))


@metric(
    "macro_f1",
    LABEL,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_c \frac{2\,tp_c}{2\,tp_c + fp_c + fn_c}",
    degenerate="a class that is never predicted contributes 0",
    title="macro-averaged F1",
)
def macro_f1(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return the unweighted mean F1 over the classes of the schema; each must occur in `y_true`."""
    from sklearn.metrics import f1_score

    require_classes(y_true, classes)
    options = {"labels": list(classes), "average": "macro", "zero_division": 0}
    return float(f1_score(y_true.astype(str), y_pred.astype(str), **options))


@metric(
    "micro_f1",
    LABEL,
    "max",
    0,
    1,
    formula=r"\frac{2\sum_c tp_c}{\sum_c (2\,tp_c + fp_c + fn_c)}",
    degenerate="with one label a row it equals accuracy",
    title="micro-averaged F1",
)
def micro_f1(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return F1 over all decisions pooled."""
    from sklearn.metrics import f1_score

    options = {"labels": list(classes), "average": "micro", "zero_division": 0}
    return float(f1_score(y_true.astype(str), y_pred.astype(str), **options))


@metric(
    "mcc",
    LABEL,
    "max",
    -1,
    1,
    formula=r"\frac{\mathrm{cov}(\hat Y, Y)}{\sqrt{\mathrm{var}(\hat Y)\,\mathrm{var}(Y)}}",
    degenerate="a constant prediction scores 0",
    title="Matthews correlation coefficient",
)
def mcc(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return Matthews' correlation of two labellings (Gorodkin's R_k for more than two classes)."""
    from sklearn.metrics import matthews_corrcoef

    require_spread(y_true)
    return float(matthews_corrcoef(y_true.astype(str), y_pred.astype(str)))


@metric(
    "quadratic_kappa",
    LABEL,
    "max",
    -1,
    1,
    formula=r"1 - \frac{\sum_{ij} (i-j)^2 O_{ij}}{\sum_{ij} (i-j)^2 E_{ij}}",
    degenerate="a constant prediction scores 0",
    title="quadratic weighted kappa",
)
def quadratic_kappa(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return Cohen's kappa with quadratic weights; distances follow the order of `classes`."""
    from sklearn.metrics import cohen_kappa_score

    require_spread(y_true)
    rank = {name: i for i, name in enumerate(classes)}
    first, second = [rank[name] for name in y_true], [rank[name] for name in y_pred]
    labels = list(range(len(classes)))
    return float(cohen_kappa_score(first, second, labels=labels, weights="quadratic"))


@metric(
    "weighted_f1",
    LABEL,
    "max",
    0,
    1,
    formula=r"\sum_c \frac{n_c}{n} \frac{2\,tp_c}{2\,tp_c + fp_c + fn_c}",
    degenerate="a class that is never predicted contributes 0",
    title="F1 weighted by class size",
)
def weighted_f1(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return the mean F1 over the classes, each weighted by its share of the hidden rows."""
    from sklearn.metrics import f1_score

    options = {"labels": list(classes), "average": "weighted", "zero_division": 0}
    return float(f1_score(y_true.astype(str), y_pred.astype(str), **options))


@metric(
    "f1",
    LABEL,
    "max",
    0,
    1,
    formula=r"\frac{2\,tp}{2\,tp + fp + fn}",
    degenerate="never predicting the last class scores 0",
    title="F1 of the last class",
)
def f1(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return the F1 of the last class of the schema, the positive one; it must occur."""
    require_classes(y_true, classes[-1:])
    positive, found = y_true == classes[-1], y_pred == classes[-1]
    return float(2 * np.sum(positive & found) / (np.sum(positive) + np.sum(found)))


@metric(
    "fbeta",
    LABEL,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_c "
    r"\frac{(1+\beta^2)\,tp_c}{(1+\beta^2)\,tp_c + fp_c + \beta^2 fn_c}",
    degenerate="a class that is never predicted contributes 0",
    title="macro-averaged F-beta",
    beta=2.0,
)
def fbeta(y_true: Labels, y_pred: Labels, classes: Sequence[str], beta: float = 2.0) -> float:
    """Return the mean F-beta over the classes, each of which must occur; beta above 0."""
    from sklearn.metrics import fbeta_score

    require_classes(y_true, classes)
    options = {"labels": list(classes), "average": "macro", "zero_division": 0, "beta": beta}
    return float(fbeta_score(y_true.astype(str), y_pred.astype(str), **options))


@metric(
    "error_rate",
    LABEL,
    "min",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i [\hat y_i \ne y_i]",
    degenerate="a constant prediction scores the share of all other classes",
    title="top-1 error",
)
def error_rate(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return the share of rows predicted wrong."""
    return float(np.mean(y_true != y_pred))


@metric(
    "kappa",
    LABEL,
    "max",
    -1,
    1,
    formula=r"\frac{p_o - p_e}{1 - p_e}",
    degenerate="a constant prediction scores 0",
    title="Cohen's kappa",
)
def kappa(y_true: Labels, y_pred: Labels, classes: Sequence[str]) -> float:
    """Return Cohen's kappa: agreement beyond what the shares of the classes give by chance."""
    from sklearn.metrics import cohen_kappa_score

    require_spread(y_true)
    return float(cohen_kappa_score(y_true.astype(str), y_pred.astype(str)))


@metric(
    "log_loss",
    PROBABILITY,
    "min",
    0,
    float("inf"),
    formula=r"-\frac{1}{n}\sum_i \left(y_i \ln p_i + (1 - y_i) \ln (1 - p_i)\right)",
    degenerate="probabilities are clipped to [1e-15, 1 - 1e-15], so a sure mistake costs 34.5",
    title="log loss",
)
def log_loss(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean negative log likelihood of the class that occurred."""
    p = np.clip(y_pred, 1e-15, 1 - 1e-15)
    return float(-np.mean(y_true * np.log(p) + (1 - y_true) * np.log1p(-p)))


@metric(
    "log_loss_multiclass",
    PROBABILITIES,
    "min",
    0,
    float("inf"),
    formula=r"-\frac{1}{n}\sum_i \ln p_{i,y_i}",
    degenerate="rows are scaled to add up to 1, then clipped to at least 1e-15",
    title="multi-class log loss",
)
def log_loss_multiclass(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean negative log likelihood of the class that occurred."""
    p = np.clip(y_pred / y_pred.sum(axis=1, keepdims=True), 1e-15, 1)
    return float(-np.mean(np.log(p[y_true == 1])))


@metric(
    "roc_auc",
    SCORE,
    "max",
    0,
    1,
    formula=r"P(s^+ > s^-) + \tfrac{1}{2} P(s^+ = s^-)",
    degenerate="a constant prediction scores 0.5",
    title="area under the ROC curve",
)
def roc_auc(y_true: Floats, y_pred: Floats) -> float:
    """Return the chance that a positive row is scored above a negative one, ties one half."""
    from sklearn.metrics import roc_auc_score

    require_spread(y_true)
    return float(roc_auc_score(y_true, y_pred))


@metric(
    "average_precision",
    SCORE,
    "max",
    0,
    1,
    formula=r"\sum_j (R_j - R_{j-1}) P_j",
    degenerate="a constant prediction scores the share of positives",
    title="average precision",
)
def average_precision(y_true: Floats, y_pred: Floats) -> float:
    """Return the area under the precision-recall steps; thresholds are the distinct scores."""
    from sklearn.metrics import average_precision_score

    if not y_true.any():
        raise GradingError("average precision needs a positive among the hidden answers")
    return float(average_precision_score(y_true, y_pred))


@metric(
    "mean_roc_auc",
    COLUMNS,
    "max",
    0,
    1,
    formula=r"\frac{1}{k}\sum_j \left(P(s_j^+ > s_j^-) + \tfrac{1}{2} P(s_j^+ = s_j^-)\right)",
    degenerate="a column with a constant prediction counts 0.5",
    title="mean area under the ROC curves of the tags",
)
def mean_roc_auc(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over the tags of `roc_auc`, from ranks: for all tags at once."""
    from scipy.stats import rankdata

    positive = y_true.sum(axis=0)
    pairs = positive * (len(y_true) - positive)
    if not pairs.all():
        raise GradingError(f"all hidden answers about tag {int(pairs.argmin()) + 1} are the same")
    ranks = np.sum(rankdata(y_pred, axis=0) * y_true, axis=0)
    return float(np.mean((ranks - positive * (positive + 1) / 2) / pairs))


@metric(
    "mean_log_loss",
    COLUMNS,
    "min",
    0,
    float("inf"),
    formula=r"-\frac{1}{nk}\sum_{i,j} \left(y_{ij} \ln p_{ij} + (1-y_{ij}) \ln (1-p_{ij})\right)",
    degenerate="probabilities are clipped to [1e-15, 1 - 1e-15], so a sure mistake costs 34.5",
    title="mean log loss of the tags",
)
def mean_log_loss(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over the tags of `log_loss`: that of all cells, all tags having as many."""
    return log_loss(y_true.ravel(), y_pred.ravel())


@metric(
    "kl_divergence",
    SHARES,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i \max\left(0, \sum_j p_{ij} \ln \frac{p_{ij}}{q_{ij}}\right)",
    degenerate="predicted shares are clipped to at least 1e-6, so a row costs at most 13.8",
    title="Kullback-Leibler divergence of the true from the predicted shares",
)
def kl_divergence(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over rows of sum p ln(p / q), with 0 ln 0 = 0.

    The rows of both are scaled to add up to 1, then q is clipped to at least 1e-6; clipping adds to
    q, so a row can come out below 0 by k times 1e-6, and counts 0 then.
    """
    p = y_true / y_true.sum(axis=1, keepdims=True)
    q = np.clip(y_pred / y_pred.sum(axis=1, keepdims=True), 1e-6, 1)
    terms = p * np.log(np.divide(p, q, out=np.ones_like(p), where=p > 0))
    return float(np.mean(np.maximum(terms.sum(axis=1), 0)))


def require_classes(y_true: Labels, classes: Sequence[str]) -> None:
    """Raise `GradingError` unless every class of the schema occurs in the hidden answers."""
    absent = [name for name in classes if name not in set(y_true)]
    if absent:
        raise GradingError(f"no hidden answer is of class {absent[0]!r}")


def require_spread(y_true: NDArray[Any]) -> None:
    """Raise `GradingError` if all hidden answers are the same."""
    if len(set(y_true.tolist())) < 2:
        raise GradingError("all hidden answers are the same")
