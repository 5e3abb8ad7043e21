"""Queries of a ranking: which rows belong together, and how they are graded among themselves."""

import numpy as np
from numpy.typing import NDArray

# the share of the rows of a query that each grade above 0 begins with
_CUTS = (0.45, 0.65, 0.8, 0.92)
GRADES = (
    "relevance 4 is the best "
    f"{1 - _CUTS[3]:.0%} of them, 3 what is above {_CUTS[2]:.0%}, 2 above {_CUTS[1]:.0%}, "
    f"1 above {_CUTS[0]:.0%}, by (rank - 0.5) / number of rows, the worst having rank 1"
)


def in_queries(n: int, size: int) -> NDArray[np.int64]:
    """Return the query of each of `n` rows, one after another: `size` rows each or a few more."""
    return np.arange(n) * max(n // size, 1) // n


def graded_within(query: NDArray[np.int64], worth: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a relevance from 0 to 4 by the rank of each row's worth in its query."""
    order = np.lexsort((worth, query))
    starts = np.searchsorted(query, query)  # queries are in order
    sizes = np.bincount(query)[query]
    rank = np.empty(len(query), dtype=np.int64)
    rank[order] = np.arange(len(query))
    share = (rank - starts + 0.5) / sizes
    return np.digitize(share, _CUTS).astype(np.int64)
