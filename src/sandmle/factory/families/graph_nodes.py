"""Nodes of a network: the class says which kind of neighbours prevails around a node.

Neighbours do not count alike: a number of the neighbour says how much. A node's own kind counts a
little, and as nodes seek their own kind it gives some of the class away. Train and test are
networks of their own, so classes cannot be handed on from neighbour to neighbour.
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
    Integers,
    Pairs,
    distinct,
    edge_cells,
    edge_table,
    member_of,
)
from sandmle.types import Record

_NUMBERS = 3
# kinds, how much a number decides what a neighbour counts, wrong labels; by level
_LEVELS = ((3, 0.25, 0.03), (3, 0.4, 0.04), (3, 0.55, 0.05), (4, 0.4, 0.05), (4, 0.55, 0.06))


class GraphNodesConfig(Record):
    """The drawn parameters.

    A node has at least `links` edges, a share `seeking` of which goes to its own kind. Kind k has
    the share `kinds[k]` of nodes and stands for the class `classes[k]`. A neighbour counts
    `exp(slope * z)` by its number `number`, a node's own kind as much as the share `own` of all.
    """

    links: int
    seeking: float
    kinds: tuple[float, ...]
    classes: tuple[int, ...]
    number: int
    slope: float
    own: float
    wrong: float


@FAMILIES.register("graph_nodes")
class GraphNodes(FamilyOf[GraphNodesConfig]):
    """See the module's text."""

    name: ClassVar[str] = "graph_nodes"
    modality: ClassVar[str] = "graph"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = (
        "accuracy", "macro_f1", "balanced_accuracy", "log_loss_multiclass", "mcc",
    )  # fmt: skip
    mutations: ClassVar[tuple[str, ...]] = (
        "spurious_edges", "cancelled_edges", "repeated_edges", "second_names", "spelling",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_pool: ClassVar[int] = 1000
    config_type = GraphNodesConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the kinds, how they mix, and who counts how much."""
        kinds, slope, wrong = _LEVELS[level - 1]
        shares = rng.dirichlet(np.full(kinds, 60.0)).round(3)
        shares[-1] = round(1 - shares[:-1].sum(), 3)
        return cls(
            GraphNodesConfig(
                links=int(rng.integers(3, 6)),
                seeking=round(float(rng.uniform(0.1, 0.25)), 2),
                kinds=tuple(shares.tolist()),
                classes=tuple(rng.permutation(kinds).tolist()),
                number=int(rng.integers(_NUMBERS)) + 1,
                slope=round(slope * float(rng.choice([-1.0, 1.0])), 2),
                own=round(float(rng.uniform(0.06, 0.12)), 3),
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the kind of a node, and its numbers."""
        config = self.config
        kind = Variable(
            name="feat_0", kind="category", abstract="kind of a node", size=len(config.kinds)
        )
        numbers = (
            Variable(
                name=f"feat_{i}",
                kind="number",
                abstract="continuous, bell-shaped",
                relevant=i == config.number,
            )
            for i in range(1, _NUMBERS + 1)
        )
        return (kind, *numbers)

    def outcome(self) -> Outcome:
        """Return as many classes as there are kinds."""
        return Outcome("classes", len(self.config.kinds))

    def tables(self) -> tuple[Table, ...]:
        """Return the edges between rows."""
        return (edge_table("id"),)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw a network of `n` nodes; some of the observed classes are wrong."""
        config = self.config
        kind = np.digitize(rng.random(n), np.cumsum(config.kinds)[:-1]).astype(np.int64)
        numbers = rng.normal(size=(_NUMBERS, n))
        pairs = self._edges(rng, kind)
        counts = self._around(pairs, kind, np.exp(config.slope * numbers[config.number - 1]))
        clean = np.array(config.classes)[counts.argmax(axis=1)]
        other = (clean + rng.integers(1, len(config.kinds), n)) % len(config.kinds)
        observed = np.where(rng.random(n) < config.wrong, other, clean)
        features: dict[str, NDArray[Any]] = {"feat_0": kind}
        features |= {f"feat_{i}": values for i, values in enumerate(numbers, 1)}
        return Sample(features, observed, clean, {EDGES: edge_cells(rng, "rows", pairs)})

    def _edges(self, rng: np.random.Generator, kind: Integers) -> Pairs:
        """Let each node link to some others, now and then of its own kind on purpose."""
        first = np.repeat(np.arange(len(kind)), self.config.links)
        alike = member_of(rng, kind, kind[first])
        seeks = rng.random(len(first)) < self.config.seeking
        second = np.where(seeks, alike, rng.integers(0, len(kind), len(first)))
        kept = distinct(first, second)
        return Pairs(first[kept], second[kept])

    def _around(
        self, pairs: Pairs, kind: Integers, counts: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return for each node how much each kind counts among its neighbours (n, kinds)."""
        total = np.zeros((len(kind), len(self.config.kinds)))
        np.add.at(total, (pairs.first, kind[pairs.second]), counts[pairs.second])
        np.add.at(total, (pairs.second, kind[pairs.first]), counts[pairs.first])
        own = np.maximum(self.config.own * total.sum(axis=1), 1e-9)
        total[np.arange(len(kind)), kind] += own
        return total

    def rule(self) -> str:
        """Return what counts how much."""
        config = self.config
        classes = ", ".join(f"{k} for class {c}" for k, c in enumerate(config.classes))
        return (
            f"the class belongs to the value of feat_0 that prevails around a node (value "
            f"{classes}): each neighbour counts exp({config.slope:g} * z(feat_{config.number})) "
            "for its own feat_0, z() being the neighbour's number standardised, and the node "
            f"counts {config.own:g} of the sum of all its neighbours for its own feat_0; in train "
            f"{config.wrong:.0%} of the classes are wrong"
        )

    def look(self, names: Names) -> str:
        """Return degrees."""
        return _LOOK

    def solution(self, names: Names) -> Solution:
        """Return the shares of kinds among neighbours, also of those with high numbers."""
        numbers = [names[f"feat_{i}"] for i in range(1, _NUMBERS + 1)]
        return Solution(_FEATURES.format(numbers=numbers, **names), "sparse")


_LOOK = f'''
def look(frame):
    """How many links a row has, what they weigh, and how many links its neighbours have."""
    ends = pd.concat(
        [edges, edges.rename(columns={{"{FIRST}": "{SECOND}", "{SECOND}": "{FIRST}"}})]
    )
    degree = ends.groupby("{FIRST}").size()
    weight = ends.groupby("{FIRST}")["weight"].mean()
    around = ends["{SECOND}"].map(degree).groupby(ends["{FIRST}"]).mean()
    found = [frame[ID].map(fact).fillna(0) for fact in (degree, weight, around)]
    return np.column_stack(found)
'''
_FEATURES = f'''
numbers = {{numbers}}

def features(frame):
    """Shares of each kind among the neighbours, plain and weighted by their numbers."""
    place = pd.Series(np.arange(len(frame)), frame[ID])
    ends = np.array([edges["{FIRST}"].map(place), edges["{SECOND}"].map(place)])
    first, second = ends[:, ~np.isnan(ends).any(axis=0)].astype(int)
    around = sparse.coo_matrix((np.ones(len(first)), (first, second)), shape=[len(frame)] * 2)
    around = (around + around.T).tocsr()
    degree = np.maximum(around.sum(axis=1), 1).reshape(-1, 1)
    kinds = np.array([frame["{{feat_0}}"] == k for k in sorted(train["{{feat_0}}"].unique())]).T
    z = ((frame[numbers] - train[numbers].mean()) / train[numbers].std()).to_numpy()
    seen = [kinds, *(kinds * z[:, [i]] for i in range(z.shape[1]))]
    return np.hstack([kinds, *(np.asarray(around @ part / degree) for part in seen)])
'''
