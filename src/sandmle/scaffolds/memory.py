"""What an operator is told of earlier nodes, and how much of it."""

from collections.abc import Callable, Sequence

from sandmle.scaffolds.tree import Node, Tree

MEMORY_CHARS = 12_000
Memory = Callable[[Tree, Node], list[Node]]


def nothing(tree: Tree, parent: Node) -> list[Node]:
    """Remember nothing."""
    return []


def all_good(tree: Tree, parent: Node) -> list[Node]:
    """Remember every node without a fault."""
    return tree.good


def siblings(tree: Tree, parent: Node) -> list[Node]:
    """Remember what was made of the same parent before, faulty or not."""
    return parent.children


def ancestors(tree: Tree, parent: Node) -> list[Node]:
    """Remember the faulty nodes in a row that led here, the first one first."""
    chain = []
    for node in parent.line():
        if not node.fault:
            break
        chain.append(node)
    return chain[::-1]


def recall(nodes: Sequence[Node], best: Node | None, limit: int = MEMORY_CHARS) -> list[Node]:
    """Return the best of these nodes and the newest ones, as many as fit, in their order."""
    kept: set[Node] = set()
    for node in [*(node for node in nodes if node is best), *reversed(nodes)]:
        limit -= (node not in kept) * (len(node.plan) + len(node.summary) + len(node.fault))
        if limit < 0:
            break
        kept.add(node)
    return [node for node in nodes if node in kept]
