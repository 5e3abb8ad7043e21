"""Metrics of several numbers a row: `y_true` and `y_pred` are float64 arrays (n, k)."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import ANGLES, NONNEGATIVE_TABLE, PLACES, TABLE, UNCERTAIN
from sandmle.metrics.registry import metric
from sandmle.metrics.regression import root_mean_square

Floats = NDArray[np.float64]
EARTH = 6_371_000.0  # mean radius, metres
LEAST_SPREAD = 70.0  # millilitres: what repeated measurements of a lung differ by
MOST_ERROR = 1000.0


@metric(
    "mcrmse",
    TABLE,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{k}\sum_j \sqrt{\frac{1}{n}\sum_i (\hat y_{ij} - y_{ij})^2}",
    degenerate="none",
    title="mean column-wise root mean squared error",
)
def mcrmse(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over the columns of their RMSE."""
    return float(np.mean([root_mean_square(column) for column in (y_pred - y_true).T]))


@metric(
    "mcrmsle",
    NONNEGATIVE_TABLE,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{k}\sum_j \sqrt{\frac{1}{n}\sum_i "
    r"\left(\ln(1+\hat y_{ij}) - \ln(1+y_{ij})\right)^2}",
    degenerate="a negative prediction is an invalid submission",
    title="mean column-wise root mean squared logarithmic error",
)
def mcrmsle(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over the columns of the RMSE of log(1 + value), nothing negative."""
    if (y_true < 0).any():
        raise GradingError("a hidden answer is negative")
    return mcrmse(np.log1p(y_true), np.log1p(y_pred))


@metric(
    "mean_spearman",
    TABLE,
    "max",
    -1,
    1,
    formula=r"\frac{1}{k}\sum_j \mathrm{corr}(\mathrm{rank}\,\hat y_j, \mathrm{rank}\,y_j)",
    degenerate="a column with a constant prediction counts 0",
    title="mean column-wise Spearman rank correlation",
)
def mean_spearman(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean over the columns of the rank correlation, ties given their mean rank."""
    from scipy.stats import rankdata

    middle = (len(y_true) + 1) / 2
    first, second = (rankdata(table, axis=0) - middle for table in (y_true, y_pred))
    same = np.flatnonzero(~first.any(axis=0))
    if len(same):
        raise GradingError(f"all hidden answers in column {int(same[0]) + 1} are the same")
    both, below = np.sum(first * second, axis=0), np.sum(first**2, axis=0) * np.sum(second**2, 0)
    return float(np.mean(both / np.sqrt(np.where(below == 0, 1.0, below))))


@metric(
    "laplace_log_likelihood",
    UNCERTAIN,
    "max",
    float("-inf"),
    -math.log(math.sqrt(2) * LEAST_SPREAD),
    formula=r"-\frac{1}{n}\sum_i \left(\frac{\sqrt 2\,\min(|\hat y_i - y_i|, 1000)}{s_i} "
    r"+ \ln(\sqrt 2\,s_i)\right),\quad s_i = \max(\hat\sigma_i, 70)",
    degenerate="standard deviations below 70 count as 70, errors above 1,000 as 1,000",
    title="modified Laplace log likelihood",
    source="OSIC pulmonary fibrosis progression (Kaggle 2020); values in millilitres",
)
def laplace_log_likelihood(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean log likelihood of values (column 1) with standard deviations (column 2).

    The second column of the hidden answers means nothing.
    """
    error = np.minimum(np.abs(y_pred[:, 0] - y_true[:, 0]), MOST_ERROR)
    spread = np.maximum(y_pred[:, 1], LEAST_SPREAD)
    return float(-np.mean(math.sqrt(2) * error / spread + np.log(math.sqrt(2) * spread)))


@metric(
    "angular_error",
    ANGLES,
    "min",
    0,
    math.pi,
    formula=r"\frac{1}{n}\sum_i \arccos\left(\hat u_i \cdot u_i\right),\quad "
    r"u = (\cos\alpha \sin\zeta,\ \sin\alpha \sin\zeta,\ \cos\zeta)",
    degenerate="for directions all over the sphere any fixed one scores about 1.57",
    title="mean angular error",
    source="IceCube neutrinos (Kaggle 2023)",
)
def angular_error(y_true: Floats, y_pred: Floats) -> float:
    """Return the mean angle between directions in radians, given as azimuth and zenith.

    The angle is taken from sine and cosine: the arc cosine alone is blind to small ones.
    """
    first, second = unit_vectors(y_true), unit_vectors(y_pred)
    sine = np.linalg.norm(np.cross(first, second), axis=1)
    return float(np.mean(np.arctan2(sine, np.sum(first * second, axis=1))))


def unit_vectors(angles: Floats) -> Floats:
    """Return the directions (n, 3) of azimuths and zeniths (n, 2) in radians."""
    azimuth, zenith = angles.T
    flat = np.sin(zenith)
    return np.column_stack([np.cos(azimuth) * flat, np.sin(azimuth) * flat, np.cos(zenith)])


@metric(
    "haversine",
    PLACES,
    "min",
    0,
    math.pi * EARTH,
    formula=r"\frac{1}{|G|}\sum_g \frac{Q_{0.5}(d_g) + Q_{0.95}(d_g)}{2},\quad "
    r"d = 2R \arcsin\sqrt{\sin^2\tfrac{\Delta\varphi}{2} "
    r"+ \cos\varphi \cos\hat\varphi \sin^2\tfrac{\Delta\lambda}{2}}",
    degenerate="none",
    title="mean of the 50th and 95th percentile of distances in metres",
    source="Smartphone decimeter challenge (Kaggle 2022), by phone; R = 6,371,000 m",
)
def haversine(y_true: Floats, y_pred: Floats, group: NDArray[Any]) -> float:
    """Return the mean over groups of the mean of two percentiles of the distances, in metres.

    Places are latitude and longitude in degrees; `group` (n,) names the track of each row.
    """
    metres = distances(y_true, y_pred)
    _, number, size = np.unique(group, return_inverse=True, return_counts=True)
    metres = metres[np.lexsort((metres, number))]
    start = np.cumsum(size) - size
    total = np.zeros(len(size))
    for share in (0.5, 0.95):
        place = share * (size - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, size - 1)
        below = metres[start + low]
        total += below + (place - low) * (metres[start + high] - below)
    return float(np.mean(total / 2))


def distances(first: Floats, second: Floats) -> Floats:
    """Return the great-circle distances (n,) in metres of places in degrees (n, 2)."""
    (latitude, longitude), (latitude_2, longitude_2) = np.deg2rad(first).T, np.deg2rad(second).T
    square = np.sin((latitude_2 - latitude) / 2) ** 2
    square += np.cos(latitude) * np.cos(latitude_2) * np.sin((longitude_2 - longitude) / 2) ** 2
    metres: Floats = 2 * EARTH * np.arcsin(np.sqrt(np.clip(square, 0, 1)))
    return metres
