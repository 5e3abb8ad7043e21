"""Numbers with their uncertainty: bootstrap intervals, paired comparisons, win rates, rank
agreement.

numpy and scipy are loaded by the first call. Intervals are percentile bootstraps over units that
are exchangeable, for us tasks; a seed makes them repeatable.
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

_RESAMPLES = 2000


class Interval(NamedTuple):
    """An estimate from `n` values of `units` units, with its bounds; None where there are none."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    units: int


def mean_interval(
    values: Sequence[float],
    units: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the mean of `values` with a percentile bootstrap interval.

    `units` names the unit that each value belongs to: episodes of one task are not independent, so
    whole units are drawn. Without it every value is a unit of its own. The order does not matter.
    One unit alone says nothing about others: it has no bounds.

    >>> mean_interval([1.0, 1.0, 1.0])
    Interval(estimate=1.0, low=1.0, high=1.0, n=3, units=3)
    """
    import numpy as np

    if not len(values):
        return Interval(None, None, None, 0, 0)
    data = np.asarray(values, dtype=float)
    if units is None:
        sums, counts = np.sort(data), np.ones(len(data))
    else:
        _, unit = np.unique(np.asarray(units, dtype=str), return_inverse=True)
        sums, counts = np.bincount(unit, weights=data), np.bincount(unit).astype(float)
    if len(sums) == 1:
        return Interval(float(data.mean()), None, None, len(data), 1)
    rng = np.random.default_rng(seed)
    draws = rng.integers(0, len(sums), (_RESAMPLES, len(sums)))
    means = sums[draws].sum(axis=1) / counts[draws].sum(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(data.mean()), float(low), float(high), len(data), len(sums))


def paired_difference(
    first: Sequence[float], second: Sequence[float], level: float = 0.95, seed: int = 0
) -> Interval:
    """Return the mean of `first - second`, unit by unit, with a bootstrap interval over units.

    Raises `ValueError` if the two differ in length.
    """
    pairs = zip(first, second, strict=True)
    return mean_interval([a - b for a, b in pairs], level=level, seed=seed)


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Return the chance that at least one of `k` of `n` episodes succeeds, drawn without return.

    The unbiased estimate of Chen et al. 2021 (arXiv 2107.03374, section 2.1).

    >>> pass_at_k(4, 1, 2)
    0.5
    """
    if not 1 <= k <= n or not 0 <= successes <= n:
        raise ValueError(f"no such draw: {k} of {n} with {successes} successes")
    return 1 - comb(n - successes, k) / comb(n, k)


def win_rate(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the share of pairs in which `first` is larger; a tie counts one half (paper, Fig. 4).

    >>> win_rate([2, 1, 0], [1, 1, 1])
    0.5
    """
    points = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in zip(first, second, strict=True)]
    return sum(points) / len(points) if points else None


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two rankings of the same things; None if one is constant."""
    from scipy.stats import kendalltau

    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(kendalltau(first, second).statistic)


def known_sum(values: Sequence[float | None]) -> float | None:
    """Return a sum, or None if there is nothing to add or not all of it is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def order_interval(values: Sequence[Sequence[float]], level: float = 0.95) -> Interval:
    """Return Kendall's tau between the order of the rows and their means, 1 if each row has a
    larger mean than the row before it, with a bootstrap interval over the columns.

    `values` has a row for each thing and a column for each unit that all of them were measured on.

    >>> order_interval([[0.0, 0.1], [0.5, 0.4], [1.0, 0.9]]).estimate
    1.0
    """
    import numpy as np

    data = np.asarray(values, dtype=float)
    order, n = list(range(len(data))), data.shape[1]
    estimate = kendall_tau(data.mean(axis=1).tolist(), order)
    if n < 2:
        return Interval(estimate, None, None, n, n)
    draws = np.random.default_rng(0).integers(0, n, (_RESAMPLES, n))
    taus = [kendall_tau(data[:, drawn].mean(axis=1).tolist(), order) for drawn in draws]
    told = [tau for tau in taus if tau is not None]
    if not told:
        return Interval(estimate, None, None, n, n)
    low, high = np.quantile(told, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high), n, n)
