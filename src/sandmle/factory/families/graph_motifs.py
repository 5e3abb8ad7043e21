"""Small networks: how long the rings are that were laid through a network says its class.

Rings of one length go through most of the nodes, so that each of these has two links in them, and
links by chance lie above. All classes have as many nodes and links, and the same degrees: only the
cycles differ. Some numbers of a row give a little of the class away.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    FamilyOf,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    Table,
    Variable,
)
from sandmle.factory.modalities.graph.networks import (
    EDGES,
    FIRST,
    SECOND,
    Pairs,
    distinct,
    edge_cells,
    edge_table,
)
from sandmle.types import Record

_RINGED = 12  # nodes that rings go through, whatever their length
_NUMBERS = 3
# lengths of rings that may be classes, links by chance for each node, spreads by which a number is
# higher, wrong labels; by level
_LEVELS = (
    ((3, 4, 6), 0.3, 0.8, 0.04),
    ((3, 4, 6), 0.4, 0.8, 0.05),
    ((3, 4, 6), 0.45, 0.7, 0.06),
    ((3, 4, 6, 12), 0.2, 0.8, 0.06),
    ((3, 4, 6, 12), 0.3, 0.8, 0.07),
)


class GraphMotifsConfig(Record):
    """The drawn parameters.

    Class c has rings of `lengths[c]` nodes. There are `loose` links by chance for each node, and
    the number i is higher by `shift` spreads in class `high[i]`.
    """

    lengths: tuple[int, ...]
    loose: float
    high: tuple[int, ...]
    shift: float
    wrong: float


@FAMILIES.register("graph_motifs")
class GraphMotifs(FamilyOf[GraphMotifsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "graph_motifs"
    modality: ClassVar[str] = "graph"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = (
        "accuracy", "macro_f1", "balanced_accuracy", "log_loss_multiclass", "mcc",
    )  # fmt: skip
    mutations: ClassVar[tuple[str, ...]] = (
        "spurious_edges", "cancelled_edges", "repeated_edges", "self_loops", "second_names",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_test: ClassVar[int] = 500
    n_pool: ClassVar[int] = 500
    config_type = GraphMotifsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which rings are which class, and what else tells of it."""
        lengths, loose, shift, wrong = _LEVELS[level - 1]
        chosen = rng.permutation(lengths)
        return cls(
            GraphMotifsConfig(
                lengths=tuple(chosen.tolist()),
                loose=round(loose * float(rng.uniform(0.9, 1.1)), 3),
                high=tuple(rng.integers(0, len(chosen), _NUMBERS - 1).tolist()),
                shift=shift,
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the numbers of a row; the last one is idle."""
        return tuple(
            Variable(
                name=f"feat_{i}",
                kind="number",
                abstract="continuous, nearly bell-shaped",
                relevant=i < len(self.config.high),
            )
            for i in range(_NUMBERS)
        )

    def outcome(self) -> Outcome:
        """Return a class for each length of rings."""
        return Outcome("classes", len(self.config.lengths))

    def tables(self) -> tuple[Table, ...]:
        """Return the links of all networks."""
        return (edge_table("number"),)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a network for each row; some of the observed classes are wrong."""
        config = self.config
        classes = len(config.lengths)
        clean = rng.integers(0, classes, n)
        networks = [self._network(rng, config.lengths[c]) for c in clean]
        pairs = Pairs(*(np.concatenate(ends) for ends in zip(*networks, strict=True)))
        owner = np.repeat(np.arange(n), [len(network.first) for network in networks])
        features: dict[str, NDArray[Any]] = {}
        for i in range(_NUMBERS):
            features[f"feat_{i}"] = rng.normal(size=n)
            if i < len(config.high):
                features[f"feat_{i}"] += config.shift * (clean == config.high[i])
        other = (clean + rng.integers(1, classes, n)) % classes
        observed = np.where(rng.random(n) < config.wrong, other, clean)
        cells = edge_cells(rng, "numbers", pairs, owner)
        return Sample(features, observed, clean, {EDGES: cells})

    def _network(self, rng: np.random.Generator, length: int) -> Pairs:
        """Lay rings of one length through some nodes, and add links by chance."""
        size = int(rng.integers(_RINGED + 2, _RINGED + 7))
        names = rng.permutation(size) + 1
        at = np.arange(_RINGED)
        ring = Pairs(names[at], names[at // length * length + (at + 1) % length])
        want = _RINGED + round(self.config.loose * size)
        ends = names[rng.integers(0, size, (2, 3 * want))]
        first, second = (np.concatenate(both) for both in zip(ring, ends, strict=True))
        kept = distinct(first, second)[:want]
        return Pairs(first[kept], second[kept])

    def rule(self) -> str:
        """Return which rings are which class, and which numbers are higher."""
        config = self.config
        lengths = ", ".join(f"{size} nodes in class {c}" for c, size in enumerate(config.lengths))
        numbers = ", ".join(f"feat_{i} in class {c}" for i, c in enumerate(config.high))
        return (
            f"the class says how long the rings are that were laid through {_RINGED} nodes "
            f"of the row's network, each node in one ring: {lengths}; {config.loose:g} links a "
            f"node lie above by chance; on average {numbers} is higher by {config.shift:g} spreads "
            f"than in other classes; in train {config.wrong:.0%} of the classes are wrong"
        )

    def look(self, names: Names) -> str:
        """Return sizes and degrees."""
        return _LOOK

    def solution(self, names: Names) -> Solution:
        """Return counts of cycles by their length, and the numbers."""
        numbers = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(numbers=numbers), "linear")


_LOOK = f'''
def look(frame):
    """How many nodes and links a network has, how they are spread, and how many triangles."""
    around = {{name: {{}} for name in frame[ID]}}
    for name, one, other in zip(edges[ID], edges["{FIRST}"], edges["{SECOND}"]):
        if name in around:
            around[name].setdefault(one, set()).add(other)
            around[name].setdefault(other, set()).add(one)
    rows = []
    for near in around.values():
        degree = np.array([len(others) for others in near.values()] or [0])
        triangles = sum(len(near[one] & near[other]) for one in near for other in near[one]) / 6
        shares = [(degree == k).mean() for k in (1, 2, 3)]
        rows.append([len(degree), degree.sum(), degree.std(), degree.max(), *shares, triangles])
    return np.array(rows)
'''
_FEATURES = f'''
def features(frame):
    """How many cycles of each length there are, and how long the shortest is through each link."""
    mine = edges[edges[ID].isin(frame[ID])]
    row = mine[ID].map(pd.Series(np.arange(len(frame)), frame[ID])).to_numpy()
    first, second = mine["{FIRST}"].to_numpy(), mine["{SECOND}"].to_numpy()
    size = 1 + max(edges["{FIRST}"].max(), edges["{SECOND}"].max())
    step = np.zeros((len(frame), size, size))
    np.add.at(step, (row, first, second), 1)
    np.add.at(step, (row, second, first), 1)
    degree = step.sum(axis=1, keepdims=True)
    # walks that never turn back, one step longer each time
    before, walk = step, step @ step - np.eye(size) * degree
    alone, found = step > 0, []
    for length in (3, 4, 5, 6):
        here = alone & (walk > 0)
        alone = alone & ~here
        before, walk = walk, walk @ step - before * (degree - 1)
        found += [here.sum(axis=(1, 2)), np.trace(walk, axis1=1, axis2=2) / length]
    return np.column_stack([frame[{{numbers}}], *found])
'''
