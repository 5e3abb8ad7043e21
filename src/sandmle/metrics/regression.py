"""Metrics of numbers: `y_true` and `y_pred` are float64 arrays (n,)."""

import sys

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import NONNEGATIVE, NUMBER
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]


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
