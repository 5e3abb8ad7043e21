"""Faults of networks: edges that are none, edges listed twice, nodes with two names.

They change the lines of the table of edges. A remedy works on it as the frame `edges`.
"""

import json
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import Cells, Split
from sandmle.factory.modalities.graph.networks import (
    EDGES,
    FIRST,
    OWNER,
    SECOND,
    WEIGHT,
    Integers,
    Pairs,
    codes_of,
    distinct,
    turned,
)
from sandmle.factory.mutation import MUTATIONS, Draft, Setting, TaskMutation

Lines = dict[str, Cells]
_ENDS = f'["{FIRST}", "{SECOND}"]'
_MARKS = ("/2", "-b", ".old", "_x")


class EdgeMutation(TaskMutation):
    """A fault of the table of edges; several may hit it, one above the other.

    `owner` is the column that tells small networks apart, empty where all rows share one. `share`
    is that of lines which are added, or changed; it lies between `low` and `high`.
    """

    owner: str
    share: float
    low: ClassVar[float]
    high: ClassVar[float]

    @classmethod
    def draw(cls, rng: np.random.Generator, setting: Setting) -> Self | None:
        """Choose how many lines, if there is a table of edges."""
        for file in setting.story.files:
            if file.path == EDGES:
                key = setting.story.id_column
                owner = key if key in file.columns else ""
                share = setting.share(cls.low, cls.high)
                return cls(owner=owner, share=share, **cls.more(rng))
        return None

    @classmethod
    def more(cls, rng: np.random.Generator) -> dict[str, Any]:
        """Draw what else a fault needs to know."""
        return {}

    @property
    def touched(self) -> tuple[str, ...]:
        """Return nothing: the columns of the rows stay as they are."""
        return ()

    @property
    def key(self) -> list[str]:
        """Return the columns that name an edge."""
        return [self.owner, FIRST, SECOND] if self.owner else [FIRST, SECOND]

    def apply(self, draft: Draft, rng: np.random.Generator, split: Split) -> None:
        """Replace the table of edges, unless it has none."""
        lines = draft.tables[EDGES]
        if len(lines[FIRST].values):
            draft.tables[EDGES] = self.spoil(lines, rng)

    @abstractmethod
    def spoil(self, lines: Lines, rng: np.random.Generator) -> Lines:
        """Return the lines with the fault."""
        ...


@MUTATIONS.register("spurious_edges")
class SpuriousEdges(EdgeMutation):
    """There are edges by chance, which can be told by their small weight."""

    name: ClassVar[str] = "spurious_edges"
    low: ClassVar[float] = 0.7
    high: ClassVar[float] = 1.1
    limit: float = 2.5  # genuine edges weigh more, see `networks.py`

    def spoil(self, lines: Lines, rng: np.random.Generator) -> Lines:
        """Add edges between random ends."""
        at, other = _strangers(lines, rng, self.share)
        weights = rng.uniform(0.1, 0.6 * self.limit, len(at))
        return _joined(lines, _linked(lines, at, other, weights))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"links that weigh less than {self.limit:g} are there by chance"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return f'edges = edges[edges["{WEIGHT}"] >= {self.limit:g}]'


@MUTATIONS.register("cancelled_edges")
class CancelledEdges(EdgeMutation):
    """There are edges that a second line with the negative weight takes back."""

    name: ClassVar[str] = "cancelled_edges"
    layer: ClassVar[int] = 1
    low: ClassVar[float] = 0.45
    high: ClassVar[float] = 0.65

    def spoil(self, lines: Lines, rng: np.random.Generator) -> Lines:
        """Add edges between random ends, and the lines that take them back."""
        at, other = _strangers(lines, rng, self.share)
        weights = rng.choice(lines[WEIGHT].values[lines[WEIGHT].values > 0], len(at))
        made = _joined(_linked(lines, at, other, weights), _linked(lines, at, other, -weights))
        return _joined(lines, made)

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return "a link with a negative weight takes back the same link with the positive weight"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return (
            f"key = {json.dumps(self.key)}\n"
            f'back = edges[edges["{WEIGHT}"] < 0]\n'
            "taken = pd.MultiIndex.from_frame(back[key])\n"
            f'edges = edges[(edges["{WEIGHT}"] > 0) & '
            "~pd.MultiIndex.from_frame(edges[key]).isin(taken)]"
        )


@MUTATIONS.register("repeated_edges")
class RepeatedEdges(EdgeMutation):
    """Some edges are listed several times, from either end."""

    name: ClassVar[str] = "repeated_edges"
    layer: ClassVar[int] = 2
    low: ClassVar[float] = 0.3
    high: ClassVar[float] = 0.4
    most: int = 8

    def spoil(self, lines: Lines, rng: np.random.Generator) -> Lines:
        """Copy some lines, and exchange the ends of every other copy."""
        n = len(lines[FIRST].values)
        some = rng.permutation(n)[: round(self.share * n)]
        copied = np.repeat(some, rng.integers(3, self.most, len(some)))
        copies = {name: _taken(cells, copied) for name, cells in lines.items()}
        return _joined(lines, _exchanged(copies, rng))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return "the same link with the same weight, from either end, is one link"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        others = [self.owner, WEIGHT] if self.owner else [WEIGHT]
        return (
            f"said = edges[{json.dumps(others)}].reset_index(drop=True)\n"
            f"said[{_ENDS}] = np.sort(edges[{_ENDS}].to_numpy(), axis=1)\n"
            "edges = edges[~said.duplicated().to_numpy()]"
        )


@MUTATIONS.register("self_loops")
class SelfLoops(EdgeMutation):
    """Some nodes are linked with themselves."""

    name: ClassVar[str] = "self_loops"
    low: ClassVar[float] = 0.4
    high: ClassVar[float] = 0.6

    def spoil(self, lines: Lines, rng: np.random.Generator) -> Lines:
        """Link an end of some edges with itself."""
        n = len(lines[FIRST].values)
        some = rng.permutation(n)[: round(self.share * n)]
        weights = lines[WEIGHT].values[rng.permutation(some)]
        return _joined(lines, _linked(lines, some, some, weights, itself=True))

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return "a link of something with itself is none"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        return f'edges = edges[edges["{FIRST}"] != edges["{SECOND}"]]'


@MUTATIONS.register("second_names")
class SecondNames(EdgeMutation):
    """Some lines come from a second list, in which something stands behind every name."""

    name: ClassVar[str] = "second_names"
    layer: ClassVar[int] = 3
    low: ClassVar[float] = 0.5
    high: ClassVar[float] = 0.7
    mark: str

    @classmethod
    def more(cls, rng: np.random.Generator) -> dict[str, Any]:
        """Draw what stands behind the names."""
        return {"mark": _MARKS[int(rng.integers(len(_MARKS)))]}

    def spoil(self, lines: Lines, rng: np.random.Generator) -> Lines:
        """Put the mark behind the names in some lines."""
        marks = np.where(rng.random(len(lines[FIRST].values)) < self.share, self.mark, "")
        named = {name: cells for name, cells in lines.items() if cells.kind != "numbers"}
        return {**lines, **{name: cells._replace(marks=marks) for name, cells in named.items()}}

    @property
    def recovery(self) -> str:
        """Return how it is undone."""
        return f"names of links are the same with and without {self.mark!r} at the end"

    def remedy(self, target: str) -> str:
        """Return the lines that undo it."""
        names = [self.owner] if self.owner else self.key
        return (
            f"for name in {json.dumps(names)}:\n"
            f'    edges[name] = edges[name].str.removesuffix("{self.mark}")'
        )


# --- lines of a table of edges --------------------------------------------------------------------


def _strangers(lines: Lines, rng: np.random.Generator, share: float) -> tuple[Integers, Integers]:
    """Return two lines of the same network for each new edge: it goes from one to the other.

    A new edge is from the first end of one line to the second end of another, never where there is
    an edge already.
    """
    first, second = lines[FIRST].values, lines[SECOND].values
    n = len(first)
    owner = lines[OWNER].values if OWNER in lines else np.zeros(n, np.int64)
    order = np.argsort(owner, kind="stable")
    at = rng.integers(0, n, round(2 * share * n))  # more than wanted: some fall away
    start = np.searchsorted(owner[order], owner[at], "left")
    size = np.searchsorted(owner[order], owner[at], "right") - start
    other = order[start + np.floor(rng.random(len(at)) * size).astype(np.int64)]
    # nodes of different networks are not to be confused
    inside = int(max(first.max(), second.max())) + 1
    new = Pairs(owner[at] * inside + first[at], owner[at] * inside + second[other])
    old = Pairs(owner * inside + first, owner * inside + second)
    kept = distinct(*new)
    kept = kept[~np.isin(codes_of(new)[kept], codes_of(old))][: round(share * n)]
    return at[kept], other[kept]


def _linked(
    lines: Lines, at: Integers, other: Integers, weights: NDArray[np.float64], itself: bool = False
) -> Lines:
    """Return edges from the first end of some lines to the second, or first, end of others."""
    made = {name: _taken(cells, at) for name, cells in lines.items()}
    made[SECOND] = _taken(lines[FIRST if itself else SECOND], other)
    made[WEIGHT] = lines[WEIGHT]._replace(values=weights)
    return made


def _taken(cells: Cells, at: Integers) -> Cells:
    """Return some cells of a column."""
    return cells._replace(values=cells.values[at])


def _joined(lines: Lines, more: Lines) -> Lines:
    """Return the lines of both."""
    return {
        name: cells._replace(values=np.concatenate([cells.values, more[name].values]))
        for name, cells in lines.items()
    }


def _exchanged(lines: Lines, rng: np.random.Generator) -> Lines:
    """Exchange the ends of every other line, at random."""
    first, second = lines[FIRST], lines[SECOND]
    either = turned(rng, Pairs(first.values, second.values))
    return {
        **lines,
        FIRST: first._replace(values=either.first),
        SECOND: second._replace(values=either.second),
    }
