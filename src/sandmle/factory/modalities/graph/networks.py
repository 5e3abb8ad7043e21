"""What families of networks share: pairs of nodes, and the table of edges."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Cells, Table

Integers = NDArray[np.int64]

EDGES = "graph/edges.csv"
OWNER = "{id}"  # the column that says which row a network belongs to, where each row is one
FIRST, SECOND, WEIGHT = "first", "second", "weight"
_TYPICAL, _SPREAD = 12.0, 0.3  # of weights, which are log-normal
# no edge weighs less than _LEAST, so that lighter ones can be told apart
_LEAST, _DECIMALS = 4.0, 1
_MOST = 1_000_000  # more than there are nodes in any sample


class Pairs(NamedTuple):
    """Undirected edges or other pairs of nodes by number; either end may come first."""

    first: Integers
    second: Integers


def distinct(first: Integers, second: Integers) -> Integers:
    """Return which pairs to keep: of every two nodes the first pair, and no node with itself."""
    codes = codes_of(Pairs(first, second))
    _, kept = np.unique(codes, return_index=True)
    kept = np.sort(kept)
    proper: Integers = kept[first[kept] != second[kept]]
    return proper


def codes_of(pairs: Pairs) -> Integers:
    """Return a number for each pair, the same from either end."""
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    codes: Integers = low * _MOST + high
    return codes


def turned(rng: np.random.Generator, pairs: Pairs) -> Pairs:
    """Exchange both ends of every other pair, at random."""
    swap = rng.random(len(pairs.first)) < 0.5
    return Pairs(
        np.where(swap, pairs.second, pairs.first), np.where(swap, pairs.first, pairs.second)
    )


def member_of(rng: np.random.Generator, labels: Integers, wanted: Integers) -> Integers:
    """Return for each wanted label the position of a random one of those that have it.

    -1 where none has it.
    """
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], wanted, "left")
    size = np.searchsorted(labels[order], wanted, "right") - start
    at = start + np.floor(rng.random(len(wanted)) * size).astype(np.int64)
    return np.where(size > 0, order[np.minimum(at, len(labels) - 1)], -1)


def edge_table(kind: Literal["id", "node", "number"]) -> Table:
    """Return the table of edges: between rows, between nodes, or between numbers within a row."""
    ends = {
        "id": ("`{id}` of one end", "`{id}` of the other end"),
        "node": ("{node} at one end", "{node} at the other end"),
        "number": ("number of one end within this network", "number of the other end"),
    }[kind]
    owner = {OWNER: "the row whose network it is"} if kind == "number" else {}
    described = {
        "id": "the links between rows, without direction: {edge}.",
        "node": "links between one {node} and another that were known before, without direction.",
        "number": "each row has a small network of its own; these are the links in it, without "
        "direction.",
    }[kind]
    columns = {**owner, FIRST: ends[0], SECOND: ends[1], WEIGHT: "weight of the link"}
    return Table(path=EDGES, description=described, columns=columns)


def edge_cells(
    rng: np.random.Generator,
    kind: Literal["rows", "nodes", "numbers"],
    pairs: Pairs,
    owner: Integers | None = None,
) -> dict[str, Cells]:
    """Return the columns of a table of edges, with random weights that mean nothing."""
    weights = np.maximum(_TYPICAL * np.exp(_SPREAD * rng.normal(size=len(pairs.first))), _LEAST)
    either = turned(rng, pairs)
    cells = {OWNER: Cells("rows", owner)} if owner is not None else {}
    return {
        **cells,
        FIRST: Cells(kind, either.first),
        SECOND: Cells(kind, either.second),
        WEIGHT: Cells("numbers", weights, _DECIMALS),
    }
