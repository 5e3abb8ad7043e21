"""Add a metric in one file: a pure function with its direction, range and kind of submission."""

import numpy as np

from sandmle.metrics.kinds import NUMBER
from sandmle.metrics.registry import METRICS, metric


@metric(
    "median_absolute_error",
    NUMBER,
    "min",
    0,
    float("inf"),
    formula=r"\mathrm{median}_i |\hat y_i - y_i|",
    degenerate="none",
)
def median_absolute_error(y_true, y_pred):
    """Return the median absolute error, in the target's units."""
    return float(np.median(np.abs(y_pred - y_true)))


print(METRICS.get("median_absolute_error")(np.array([1.0, 2.0, 9.0]), np.array([1.0, 3.0, 5.0])))
