"""Metrics of rankings: scores within queries, and lists of labels."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import LISTS, RANKING
from sandmle.metrics.registry import metric

Floats = NDArray[np.float64]


@metric(
    "ndcg",
    RANKING,
    "max",
    0,
    1,
    formula=r"\frac{1}{|Q|}\sum_q \frac{\sum_{r \le k} rel_{q,r} / \log_2(1+r)}{\mathrm{ideal}_q}",
    degenerate="tied scores share the mean gain of their places",
    title="normalised discounted cumulative gain at k",
    k=10,
)
def ndcg(relevance: Floats, score: Floats, query: NDArray[Any], k: int = 10) -> float:
    """Return the mean NDCG@k over queries, with linear gain (as scikit-learn).

    `relevance` (n,) is not negative; `query` (n,) groups the rows. Every query needs two rows and
    one relevant row.
    """
    if (relevance < 0).any():
        raise GradingError("a hidden relevance is negative")
    names, number, size = np.unique(query, return_inverse=True, return_counts=True)
    poor = (size < 2) | (np.bincount(number, weights=relevance) == 0)
    if poor.any():
        raise GradingError(f"query {names[poor][0]!r} has a single row or no relevant row")
    ideal = _gain(relevance, relevance, number, k)
    return float(np.mean(_gain(relevance, score, number, k) / ideal))


def _gain(relevance: Floats, score: Floats, query: NDArray[np.int64], k: int) -> Floats:
    """Return DCG@k of each query, for all queries at once (scikit-learn's loops over them).

    Tied scores share the mean gain of their places (McSherry and Najork 2008).
    """
    order = np.lexsort((-score, query))
    relevance, score, query = relevance[order], score[order], query[order]
    n = len(query)
    starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
    place = np.arange(n) - np.repeat(starts, np.diff(np.r_[starts, n]))
    discount = np.where(place < k, 1 / np.log2(place + 2), 0.0)
    ties = np.flatnonzero(np.r_[True, (query[1:] != query[:-1]) | (score[1:] != score[:-1])])
    size = np.diff(np.r_[ties, n])
    gain = np.add.reduceat(relevance, ties) / size * np.add.reduceat(discount, ties)
    total: Floats = np.bincount(query[ties], weights=gain).astype(np.float64)
    return total


@metric(
    "map",
    LISTS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{1}{\min(k, |R_i|)}\sum_{r \le k} P_i(r)\,[l_{i,r} \in R_i]",
    degenerate="a list without a relevant label contributes 0",
    title="mean average precision at k",
    k=5,
)
def mean_average_precision(
    relevant: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], k: int = 5
) -> float:
    """Return MAP@k; each row has its relevant labels, and predicted ones best first, no repeats."""
    total = 0.0
    for wanted, guesses in zip(relevant, predicted, strict=True):
        hits, precision = 0, 0.0
        for place, guess in enumerate(guesses[:k], start=1):
            if guess in wanted:
                hits += 1
                precision += hits / place
        total += precision / min(k, len(wanted))
    return total / len(relevant)


@metric(
    "mrr",
    LISTS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{1}{\min\{r \le k : l_{i,r} \in R_i\}}",
    degenerate="a list without a relevant label contributes 0",
    title="mean reciprocal rank at k",
    k=10,
)
def mrr(
    relevant: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], k: int = 10
) -> float:
    """Return the mean of one over the place of the first relevant label among the first k."""
    total = 0.0
    for wanted, guesses in zip(relevant, predicted, strict=True):
        hits = (place for place, guess in enumerate(guesses[:k], start=1) if guess in wanted)
        total += 1 / next(hits, float("inf"))
    return total / len(relevant)


@metric(
    "recall_at_k",
    LISTS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{|\{l_{i,1}, \ldots, l_{i,k}\} \cap R_i|}{\min(k, |R_i|)}",
    degenerate="a list without a relevant label contributes 0",
    title="recall at k",
    k=10,
)
def recall_at_k(
    relevant: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], k: int = 10
) -> float:
    """Return the mean share of relevant labels among the first k, of as many as k can hold."""
    total = 0.0
    for wanted, guesses in zip(relevant, predicted, strict=True):
        total += len(set(guesses[:k]) & set(wanted)) / min(k, len(wanted))
    return total / len(relevant)


@metric(
    "hit_rate",
    LISTS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \left[\{l_{i,1}, \ldots, l_{i,k}\} \cap R_i \ne \emptyset\right]",
    degenerate="a list without a relevant label contributes 0",
    title="hit rate at k",
    k=10,
)
def hit_rate(
    relevant: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], k: int = 10
) -> float:
    """Return the share of rows with a relevant label among the first k."""
    pairs = zip(relevant, predicted, strict=True)
    return sum(not set(wanted).isdisjoint(guesses[:k]) for wanted, guesses in pairs) / len(relevant)


@metric(
    "order_tau",
    LISTS,
    "max",
    -1,
    1,
    formula=r"1 - 4 \frac{\sum_i \mathrm{inversions}_i}{\sum_i n_i (n_i - 1)}",
    degenerate="labels that a list lacks follow in reverse, the worst order; unknown ones count "
    "nothing",
    title="Kendall tau of orders",
    source="AI4Code (Kaggle 2022)",
)
def order_tau(true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return Kendall's tau of the orders of all rows, their pairs of labels pooled.

    Each row has its labels in the true order; some row must have two.
    """
    inversions, pairs = 0, 0
    for labels, guesses in zip(true, predicted, strict=True):
        place = {label: i for i, label in enumerate(labels)}
        given = [place[label] for label in guesses if label in place]
        absent = set(place.values()).difference(given)
        before: list[int] = []
        for at in [*given, *sorted(absent, reverse=True)]:
            inversions += len(before) - bisect_left(before, at)
            insort(before, at)
        pairs += len(labels) * (len(labels) - 1)
    if not pairs:
        raise GradingError("no hidden row has two labels to put in order")
    return 1 - 4 * inversions / pairs
