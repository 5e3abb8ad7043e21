"""Links to come: two nodes will link if their hidden groups are partners and their types match.

Which group a node belongs to shows only in the edges that were known before. These mostly join
partners, so there is no triangle to go by: partners are three steps apart, while two steps lead
back to a node's own group. Every node has as many edges as any other. Train and test lie in
networks of their own.
"""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    Cells,
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
    codes_of,
    distinct,
    edge_cells,
    edge_table,
    member_of,
    turned,
)
from sandmle.types import Record

_NODES = "graph/nodes.csv"
_SIZE = 120  # nodes of a network
_ROWS = 200  # at most, that are asked about one network
_NEAR = 0.4  # share of partners among pairs that will not link: their types do not match
_RING = 5  # groups in a ring, each a partner of both beside it
# groups that are partners in pairs, types, edges that a node draws (two more in a ring), share of
# edges by chance, wrong labels; by level
_LEVELS = (
    (4, 2, 4, 0.12, 0.03),
    (4, 2, 4, 0.16, 0.04),
    (6, 2, 4, 0.16, 0.05),
    (6, 2, 3, 0.16, 0.06),
    (6, 3, 3, 0.16, 0.07),
)


class GraphLinksConfig(Record):
    """The drawn parameters.

    Group g is a partner of `partner[g]`, and the other way round; type t matches `match[t]` alone.
    A node draws `links` edges, of which a share `loose` is with anybody.
    """

    partner: tuple[int, ...]
    match: tuple[int, ...]
    links: int
    loose: float
    wrong: float


class _Network(NamedTuple):
    """Group and type of each node; networks lie one behind the other."""

    group: Integers
    type: Integers


@FAMILIES.register("graph_links")
class GraphLinks(FamilyOf[GraphLinksConfig]):
    """See the module's text."""

    name: ClassVar[str] = "graph_links"
    modality: ClassVar[str] = "graph"
    task_type: ClassVar[str] = "link_prediction"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("link",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["link"]
    mutations: ClassVar[tuple[str, ...]] = (
        "spurious_edges", "cancelled_edges", "repeated_edges", "second_names", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    n_pool: ClassVar[int] = 1000
    config_type = GraphLinksConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which groups are partners, and which types match."""
        pairs, types, links, loose, wrong = _LEVELS[level - 1]
        ring = bool(rng.random() < 0.5)
        order = rng.permutation(_RING if ring else pairs)
        beside = np.roll(order, 1) if ring else order.reshape(-1, 2)[:, ::-1].ravel()
        partner = beside[np.argsort(order)]
        match = np.arange(types)
        first, second = rng.permutation(types)[:2]
        if rng.random() < 0.5:
            match[[first, second]] = second, first
        return cls(
            GraphLinksConfig(
                partner=tuple(partner.tolist()),
                match=tuple(match.tolist()),
                links=links + 2 * ring,
                loose=loose,
                wrong=wrong,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the two nodes."""
        return (
            Variable(name=FIRST, kind="node", abstract="one node"),
            Variable(name=SECOND, kind="node", abstract="another node"),
        )

    def outcome(self) -> Outcome:
        """Return whether there will be a link."""
        return Outcome("link", 2)

    def tables(self) -> tuple[Table, ...]:
        """Return the edges that are known, and the nodes with their types."""
        nodes = Table(
            path=_NODES,
            description="one line for each {node}.",
            columns={"name": "the {node}", "type": "its type, a number that means no order"},
        )
        return (edge_table("node"), nodes)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw networks, known edges in them, and `n` pairs of nodes without an edge."""
        network = self._network(rng, -(-n // _ROWS))
        rows, clean = self._rows(rng, network, n)
        edges = self._edges(rng, network)
        free = ~np.isin(codes_of(edges), codes_of(rows))
        edges = Pairs(edges.first[free], edges.second[free])
        observed = np.where(rng.random(n) < self.config.wrong, 1 - clean, clean)
        either = turned(rng, rows)
        features: dict[str, NDArray[Any]] = {FIRST: either.first, SECOND: either.second}
        nodes = {
            "name": Cells("nodes", np.arange(len(network.type))),
            "type": Cells("numbers", network.type + 1),
        }
        tables = {EDGES: edge_cells(rng, "nodes", edges), _NODES: nodes}
        return Sample(features, observed, clean, tables)

    def _network(self, rng: np.random.Generator, count: int) -> _Network:
        """Draw `count` networks in which groups and types are equally large, in random order."""
        groups, types = len(self.config.partner), len(self.config.match)
        block = np.concatenate([rng.permutation(_SIZE) for _ in range(count)])
        return _Network(block % groups, block // groups % types)

    def _rows(self, rng: np.random.Generator, network: _Network, n: int) -> tuple[Pairs, Integers]:
        """Draw pairs, half of which will link: the others are no partners, or do not match."""
        groups, types = len(self.config.partner), len(self.config.match)
        ask = 2 * n + 20  # more than wanted: some pairs come twice
        part = np.arange(ask) % -(-n // _ROWS)
        first = part * _SIZE + rng.integers(0, _SIZE, ask)
        link = rng.random(ask) < 0.5
        near = link | (rng.random(ask) < _NEAR)
        group = np.where(
            near,
            _one_of(rng, self._partners(True), network.group[first]),
            _one_of(rng, self._partners(False), network.group[first]),
        )
        match = np.array(self.config.match)[network.type[first]]
        match = np.where(near & ~link, (match + rng.integers(1, types, ask)) % types, match)
        blocks = (np.arange(len(network.type)) // _SIZE * groups + network.group) * types
        wanted = (part * groups + group) * types + match
        second = member_of(rng, blocks + network.type, wanted)
        kept = distinct(first, second)[:n]
        return Pairs(first[kept], second[kept]), link[kept].astype(np.int64)

    def _edges(self, rng: np.random.Generator, network: _Network) -> Pairs:
        """Let each node link to some partners of any type, and now and then to anybody."""
        size, groups = len(network.group), len(self.config.partner)
        first = np.repeat(np.arange(size), self.config.links)
        part = first // _SIZE
        group = part * groups + _one_of(rng, self._partners(True), network.group[first])
        partner = member_of(rng, np.arange(size) // _SIZE * groups + network.group, group)
        anybody = part * _SIZE + rng.integers(0, _SIZE, len(first))
        loose = rng.random(len(first)) < self.config.loose
        second = np.where(loose, anybody, partner)
        kept = distinct(first, second)
        return Pairs(first[kept], second[kept])

    def _partners(self, wanted: bool) -> Integers:
        """Return for each group those that are its partners, or those that are not."""
        partner = self.config.partner
        groups = range(len(partner))
        return np.array(
            [[b for b in groups if (b in (partner[a], partner.index(a))) is wanted] for a in groups]
        )

    def rule(self) -> str:
        """Return which groups are partners, and which types match."""
        partner, match = self.config.partner, self.config.match
        groups = ", ".join(f"{a} with {b}" for a, b in enumerate(partner))
        types = ", ".join(f"{a + 1} with {b + 1}" for a, b in enumerate(match) if a <= b)
        return (
            f"class 1 iff the hidden groups of the nodes {FIRST} and {SECOND} are partners "
            f"({groups}, from either end) and their types match ({types}); known edges join "
            f"partners of any types, but {self.config.loose:.0%} of them anybody; in train "
            f"{self.config.wrong:.0%} of the classes are wrong"
        )

    def look(self, names: Names) -> str:
        """Return degrees, common neighbours and types."""
        return _LOOK.format(**names)

    def solution(self, names: Names) -> Solution:
        """Return walks of two to five steps, and which types meet."""
        return Solution(_FEATURES.format(**names), "linear")


def _one_of(rng: np.random.Generator, choices: Integers, which: Integers) -> Integers:
    """Return a random one of the choices (n, k) in the rows `which`."""
    return choices[which, rng.integers(0, choices.shape[1], len(which))]


_LOOK = f'''
def look(frame):
    """Links of both, common neighbours, and types."""
    pairs = zip(edges["{FIRST}"], edges["{SECOND}"])
    around = {{{{name: set() for name in nodes["name"]}}}}
    for one, other in pairs:
        if one in around and other in around:
            around[one].add(other)
            around[other].add(one)
    kind = nodes.set_index("name")["type"]
    rows = []
    for one, other in zip(frame["{{first}}"], frame["{{second}}"]):
        mine, theirs = around[one], around[other]
        shared = len(mine & theirs)
        rows.append([len(mine), len(theirs), len(mine) * len(theirs), shared,
                     shared / max(len(mine | theirs), 1), kind[one], kind[other]])
    return np.array(rows)
'''
_FEATURES = f'''
def features(frame):
    """Walks of several steps between both, more than chance has it, and which types meet."""
    place = pd.Series(np.arange(len(nodes)), nodes["name"])
    ends = np.array([edges["{FIRST}"].map(place), edges["{SECOND}"].map(place)])
    one, other = ends[:, ~np.isnan(ends).any(axis=0)].astype(int)
    step = sparse.coo_matrix((np.ones(len(one)), (one, other)), shape=[len(nodes)] * 2).tocsr()
    step = step + step.T
    degree = np.maximum(np.asarray(step.sum(axis=0)).ravel(), 1)
    step = sparse.diags(degree**-0.5) @ step @ sparse.diags(degree**-0.5)
    two = step @ step
    three, four, five = two @ step, two @ two, two @ step @ two
    first, second = (place[frame[name]].to_numpy() for name in ("{{first}}", "{{second}}"))
    walks = [np.asarray(m[first, second]).ravel() for m in (two, three, four, five)]
    kinds = nodes["type"].to_numpy()
    low, high = np.sort([kinds[first], kinds[second]], axis=0)
    meet = [(low == a) & (high == b) for a in set(kinds) for b in set(kinds) if a <= b]
    return np.column_stack([*(np.sqrt(walk) for walk in walks), *meet])
'''
