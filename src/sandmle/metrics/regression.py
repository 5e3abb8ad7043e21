"""Metrics of numbers: `y_true` and `y_pred` are float64 arrays (n,)."""

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import GROUPED, NONNEGATIVE, NUMBER, PART
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]
LEAST_MAE = 1e-9  # of a group: its logarithm must be finite


@metric(
    "rmse",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\sqrt{\frac{1}{n}\sum_i (\hat y_i - y_i)^2}",
    degenerate="none",
    title="root mean squared error",
)
def rmse(y_true: Floats, y_pred: Floats) -> float:
    """Return the root of the mean squared error, in the target's units."""
    return root_mean_square(y_pred - y_true)


@metric(
    "rmsle",
    NONNEGATIVE,
    "min",
    0,
    float("inf"),
    formula=r"\sqrt{\frac{1}{n}\sum_i \left(\ln(1+\hat y_i) - \ln(1+y_i)\right)^2}",
    degenerate="a negative prediction is an invalid submission",
    title="root mean squared logarithmic error",
)
def rmsle(y_true: Floats, y_pred: Floats) -> float:
    """Return the RMSE of log(1 + value); both arrays must not be negative."""
    if (y_true < 0).any():
        raise GradingError("a hidden answer is negative")
    return root_mean_square(np.log1p(y_pred) - np.log1p(y_true))


@metric(
    "mae",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i |\hat y_i - y_i|",
    degenerate="none",
    title="mean absolute error",
)
def mae(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean absolute error, in the target's units."""
    return float(np.mean(np.abs(y_pred - y_true)))


@metric(
    "smape",
    NONNEGATIVE,
    "min",
    0,
    2,
    formula=r"\frac{1}{n}\sum_i \frac{2\,|\hat y_i - y_i|}{|\hat y_i| + |y_i|}",
    degenerate="a row where both are 0 counts 0, one where only one is 0 counts 2",
    title="symmetric mean absolute percentage error",
)
def smape(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean error in units of the mean of both values, which must not be negative."""
    if (y_true < 0).any():
        raise GradingError("a hidden answer is negative")
    both = y_true + y_pred
    error = np.divide(np.abs(y_pred - y_true), both, out=np.zeros(len(both)), where=both > 0)
    return 2 * float(np.mean(error))


@metric(
    "r2",
    NUMBER,
    "max",
    float("-inf"),
    1,
    formula=r"1 - \frac{\sum_i (\hat y_i - y_i)^2}{\sum_i (y_i - \bar y)^2}",
    degenerate="predicting the hidden mean scores 0; the worst score is -1.8e308",
    title="coefficient of determination",
)
def r2(y_true: Floats, y_pred: Floats) -> float:
    """Return the share of the variance of `y_true` that is explained."""
    around = y_true - y_true.mean()
    unit = float(np.max(np.abs(around)))  # squares of very small numbers would vanish
    if np.ptp(y_true) == 0 or unit == 0:
        raise GradingError("R2 is undefined: all hidden answers are the same")
    with np.errstate(over="ignore"):
        error = np.sum(((y_pred - y_true) / unit) ** 2)
    return max(float(1 - error / np.sum((around / unit) ** 2)), -sys.float_info.max)


@metric(
    "spearman",
    NUMBER,
    "max",
    -1,
    1,
    formula=r"\mathrm{corr}(\mathrm{rank}\,\hat y, \mathrm{rank}\,y)",
    degenerate="a constant prediction scores 0",
    title="Spearman rank correlation",
)
def spearman(y_true: Floats, y_pred: Floats) -> float:
    """Return the rank correlation, ties given their mean rank."""
    from scipy.stats import spearmanr

    if np.ptp(y_true) == 0:
        raise GradingError("Spearman is undefined: all hidden answers are the same")
    if np.ptp(y_pred) == 0:
        return 0.0
    return float(spearmanr(y_true, y_pred).statistic)


def root_mean_square(values: Floats) -> float:
    """Return the root of the mean square, taken in units of the largest value."""
    unit = float(np.max(np.abs(values)))
    return unit * float(np.sqrt(np.mean((values / unit) ** 2))) if unit else 0.0


@metric(
    "mse",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i (\hat y_i - y_i)^2",
    degenerate="none",
    title="mean squared error",
)
def mse(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean squared error, in the square of the target's units."""
    return float(np.mean((y_pred - y_true) ** 2))


@metric(
    "mape",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i \frac{|\hat y_i - y_i|}{|y_i|}",
    degenerate="0 everywhere scores 1; an error counts at most 1e150",
    title="mean absolute percentage error",
)
def mape(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean error in units of the true value, which must not be 0."""
    return float(np.mean(np.abs(relative_error(y_true, y_pred))))


@metric(
    "rmspe",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\sqrt{\frac{1}{n}\sum_i \left(\frac{\hat y_i - y_i}{y_i}\right)^2}",
    degenerate="0 everywhere scores 1; an error counts at most 1e150",
    title="root mean squared percentage error",
)
def rmspe(y_true: Floats, y_pred: Floats) -> float:
    """Return the root of the mean squared error in units of the true value, which is not 0."""
    return root_mean_square(relative_error(y_true, y_pred))


def relative_error(y_true: Floats, y_pred: Floats) -> Floats:
    """Return the errors in units of the true values, at most 1e150 in size."""
    if not y_true.all():
        raise GradingError("a percentage error is undefined: a hidden answer is 0")
    with np.errstate(over="ignore"):
        return np.clip((y_pred - y_true) / y_true, -1e150, 1e150)


@metric(
    "wape",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\frac{\sum_i |\hat y_i - y_i|}{\sum_i |y_i|}",
    degenerate="0 everywhere scores 1; the worst score is 1.8e308",
    title="weighted absolute percentage error",
)
def wape(y_true: Floats, y_pred: Floats) -> float:
    """Return the sum of the errors in units of the sum of the true values, which is not 0."""
    whole = float(np.sum(np.abs(y_true)))
    if not whole:
        raise GradingError("a weighted percentage error is undefined: all hidden answers are 0")
    return min(float(np.sum(np.abs(y_pred - y_true))) / whole, sys.float_info.max)


@metric(
    "mase",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n\,\mathrm{scale}}\sum_i |\hat y_i - y_i|",
    degenerate="the naive forecast scores about 1 if scale is its error; the worst is 1.8e308",
    title="mean absolute scaled error",
    source="Hyndman and Koehler 2006",
    scale=1.0,
)
def mase(y_true: Floats, y_pred: Floats, scale: float = 1.0) -> float:
    """Return the mean absolute error in units of `scale`, that of the naive forecast in training.

    The submission has no training series, so the task states `scale`, above 0.
    """
    if scale <= 0:
        raise GradingError(f"the scale of MASE must be above 0, not {scale:g}")
    return min(mae(y_true, y_pred) / scale, sys.float_info.max)


@metric(
    "pinball",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i \max\left(q\,(y_i - \hat y_i),\ (1-q)\,(\hat y_i - y_i)\right)",
    degenerate="none; at the quantile 0.5 it is half the mean absolute error",
    title="pinball loss",
    quantile=0.5,
)
def pinball(y_true: Floats, y_pred: Floats, quantile: float = 0.5) -> float:
    """Return the mean pinball loss of predictions of a quantile between 0 and 1."""
    if not 0 < quantile < 1:
        raise GradingError(f"a quantile must be between 0 and 1, not {quantile:g}")
    error = y_true - y_pred
    return float(np.mean(np.maximum(quantile * error, (quantile - 1) * error)))


@metric(
    "pearson",
    NUMBER,
    "max",
    -1,
    1,
    formula=r"\frac{\sum_i (\hat y_i - \bar{\hat y})(y_i - \bar y)}"
    r"{\sqrt{\sum_i (\hat y_i - \bar{\hat y})^2 \sum_i (y_i - \bar y)^2}}",
    degenerate="a constant prediction scores 0",
    title="Pearson correlation",
)
def pearson(y_true: Floats, y_pred: Floats) -> float:
    """Return the linear correlation."""
    if np.ptp(y_true) == 0:
        raise GradingError("Pearson is undefined: all hidden answers are the same")
    first, second = direction(y_true), direction(y_pred)
    return float(np.clip(np.sum(first * second), -1, 1))


def direction(values: Floats) -> Floats:
    """Return the deviations from the mean, scaled to length 1; 0 if all values are the same."""
    if np.ptp(values) == 0:
        return np.zeros(len(values))
    around = values - values.mean()
    around = around / np.max(np.abs(around))  # squares of very small numbers would vanish
    unit: Floats = around / np.sqrt(np.sum(around**2))
    return unit


@metric(
    "kendall",
    NUMBER,
    "max",
    -1,
    1,
    formula=r"\frac{c - d}{\sqrt{(c + d + t_{\hat y})(c + d + t_y)}}",
    degenerate="a constant prediction scores 0",
    title="Kendall rank correlation",
)
def kendall(y_true: Floats, y_pred: Floats) -> float:
    """Return Kendall's tau-b from concordant (c), discordant (d) and tied (t) pairs."""
    from scipy.stats import kendalltau

    if np.ptp(y_true) == 0:
        raise GradingError("Kendall is undefined: all hidden answers are the same")
    if np.ptp(y_pred) == 0:
        return 0.0
    return float(kendalltau(y_true, y_pred).statistic)


@metric(
    "mean_log_mae",
    GROUPED,
    "min",
    math.log(LEAST_MAE),
    float("inf"),
    formula=r"\frac{1}{|G|}\sum_g \ln \max\left(\frac{1}{n_g}\sum_{i \in g} "
    r"|\hat y_i - y_i|, 10^{-9}\right)",
    degenerate="a group without any error counts -20.7",
    title="mean over groups of the log of the mean absolute error",
    source="CHAMPS scalar coupling (Kaggle 2019)",
)
def mean_log_mae(y_true: Floats, y_pred: Floats, group: NDArray[Any]) -> float:
    """Return the mean over groups of ln(MAE); `group` (n,) names the group of each row."""
    names, number = np.unique(group, return_inverse=True)
    error = np.bincount(number, weights=np.abs(y_pred - y_true)) / np.bincount(number)
    return float(np.sum(np.log(np.maximum(error, LEAST_MAE))) / len(names))


@metric(
    "masked_mae",
    PART,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{m}\sum_{i\ \mathrm{scored}} |\hat y_i - y_i|",
    degenerate="none",
    title="mean absolute error of the rows that count",
    source="Ventilator pressure prediction (Kaggle 2021): breathing in",
)
def masked_mae(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean absolute error of the rows that the answers mark, in the target's units."""
    return mae(y_true, y_pred)
