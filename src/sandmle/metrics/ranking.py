"""Metrics of rankings: scores within queries, and lists of labels."""

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
    from sklearn.metrics import ndcg_score

    if (relevance < 0).any():
        raise GradingError("a hidden relevance is negative")
    rows: dict[str, list[int]] = {}
    for i, name in enumerate(query):
        rows.setdefault(name, []).append(i)
    by_size: dict[int, list[list[int]]] = {}
    for name, members in rows.items():
        if len(members) < 2 or not relevance[members].any():
            raise GradingError(f"query {name!r} has a single row or no relevant row")
        by_size.setdefault(len(members), []).append(members)
    # one call for all queries of a size: the library's checks cost more than its arithmetic
    total = sum(
        ndcg_score(relevance[group], score[group], k=k) * len(group)
        for group in map(np.array, by_size.values())
    )
    return float(total / len(rows))


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
