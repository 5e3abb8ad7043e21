"""The tree of programs that a search grows, and what every search asks of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sandmle.env.workbench import Snapshot
from sandmle.types import Direction


@dataclass(eq=False)
class Node:
    """One program with what came of it; `id` is the index of its turn, -1 for the root.

    `output` is what the model is shown of its execution, which took `seconds`; `metric` is its own
    validation, None where it has a `fault`. `visits` and `value` are for searches that propagate
    back: how often, and the sum of what.
    """

    id: int
    operator: str
    parents: tuple["Node", ...] = ()
    plan: str = ""
    code: str = ""
    output: str = ""
    seconds: float = 0.0
    summary: str = ""
    metric: float | None = None
    fault: str = ""
    snapshot: Snapshot | None = None
    children: list["Node"] = field(default_factory=list)
    visits: int = 0
    value: float = 0.0

    @property
    def parent(self) -> "Node | None":
        """Return what it was made from, the first of two."""
        return self.parents[0] if self.parents else None

    @property
    def debug_depth(self) -> int:
        """Return how many repairs in a row led to it; what is no repair has none."""
        depth = 0
        for node in self.line():
            if node.operator != "debug":
                break
            depth += 1
        return depth

    def line(self) -> Iterator["Node"]:
        """Yield the node, its parent, and so on to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


class Tree:
    """All nodes in the order they were made. Of equal ones the earliest is the best."""

    def __init__(self, direction: Direction) -> None:
        self.root = Node(-1, "root")
        self.nodes: list[Node] = []
        self._sign = 1 if direction == "max" else -1

    def add(self, node: Node) -> Node:
        """Add a node below its parents."""
        self.nodes.append(node)
        for parent in node.parents:
            parent.children.append(node)
        return node

    def fitness(self, node: Node) -> float:
        """Return the metric of a good node, turned so that more is better."""
        assert node.metric is not None
        return self._sign * node.metric

    @property
    def good(self) -> list[Node]:
        """Return the nodes without a fault."""
        return [node for node in self.nodes if not node.fault]

    def best(self) -> Node | None:
        """Return the good node with the best metric; None if there is no good node."""
        return max(self.good, key=self.fitness, default=None)

    def to_debug(self, max_depth: int) -> list[Node]:
        """Return the faulty leaves that at most `max_depth` repairs in a row led to."""
        return [
            node
            for node in self.nodes
            if node.fault and not node.children and node.debug_depth <= max_depth
        ]

    def propagate(self, leaf: Node, value: float) -> None:
        """Count a visit of a node and of all above it, and add the value to each."""
        for node in leaf.line():
            node.visits += 1
            node.value += value
