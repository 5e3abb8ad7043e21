"""AIRA: one set of operators with three searches: greedy, Monte Carlo tree search, evolution."""

import math
from collections.abc import Sequence
from random import Random

from pydantic import Field

from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.base import LLM
from sandmle.scaffolds.aide import DAY, Greedy, play_greedy
from sandmle.scaffolds.base import SCAFFOLDS, Preset
from sandmle.scaffolds.lab import Lab
from sandmle.scaffolds.memory import all_good, ancestors
from sandmle.scaffolds.operators import Pack
from sandmle.scaffolds.tree import Node, Tree
from sandmle.types import Record

_ALL = frozenset(("draft", "debug", "improve", "crossover"))
_NEVER_FIXED = -1e8  # the worth of a node that nothing was ever propagated through
PACK = Pack(
    name="aira",
    memory={"draft": all_good, "improve": all_good, "debug": ancestors},
    output=_ALL,
    preview=_ALL,
    packages=_ALL,
    k_fold=5,
)


class MonteCarlo(Record):
    """Each leaf that is chosen gets `num_children`; `uct_c` weighs what was seldom visited. What
    fails is repaired at once, up to `max_debug_depth` times in a row.
    """

    num_children: int = Field(default=5, ge=1)
    uct_c: float = Field(default=0.25, ge=0)
    max_debug_depth: int = Field(default=20, ge=0)


class Evolution(Record):
    """`generations` of `individuals` on one island of at most `size`; from generation 2 (the first
    is 0) on a child has two parents with probability `crossover_prob`. What fails is repaired at
    once, up to `max_debug_depth` times in a row or until all these programs took `max_debug_s`.
    """

    individuals: int = Field(default=5, ge=1)
    generations: int = Field(default=100, ge=1)
    size: int = Field(default=500, ge=1)
    crossover_prob: float = Field(default=0.5, ge=0, le=1)
    temperature: float = Field(default=1.0, gt=0)
    max_debug_depth: int = Field(default=10, ge=0)
    max_debug_s: float = Field(default=21600.0, ge=0)


def play_aira_greedy(workbench: Workbench, llm: LLM, constants: Greedy) -> Outcome:
    """Play one episode: AIDE's search with AIRA's operators."""
    return play_greedy(workbench, llm, constants, PACK)


def play_mcts(workbench: Workbench, llm: LLM, constants: MonteCarlo) -> Outcome:
    """Play one episode of the tree search, which ends with its steps or its time."""

    def search(lab: Lab) -> None:
        while True:
            leaf = descend(lab.tree, constants.uct_c)
            for _ in range(constants.num_children):
                operator = "draft" if leaf is lab.tree.root else "improve"
                child = repaired(lab, lab.grow(operator, leaf), constants.max_debug_depth)
                if not child.fault:
                    lab.tree.propagate(child, lab.tree.fitness(child))

    return Lab(workbench, llm, PACK).play(search)


def repaired(lab: Lab, node: Node, max_depth: int, max_s: float = math.inf) -> Node:
    """Return the node, or the last of the repairs that it took, whether it is good by then or not.

    A node that has no fault takes none; no more than `max_depth` are tried in a row, and none after
    one by which all programs took `max_s`.
    """
    spent = node.seconds
    while node.fault and node.debug_depth < max_depth:
        node = lab.grow("debug", node)
        spent += node.seconds
        if spent >= max_s:
            break
    return node


def descend(tree: Tree, uct_c: float) -> Node:
    """Return the leaf that is worked on next: from the root by the highest worth, ties earliest.

    The worth of a node is its mean metric (turned so that more is better) between the worst and
    the best of all metrics, 0 to 1, plus `uct_c * sqrt(ln(visits of its parent) / its visits)`.
    """
    known = [tree.fitness(node) for node in tree.good]
    low, high = min(known, default=0.0), max(known, default=0.0)

    def worth(node: Node) -> float:
        if not node.visits:
            return _NEVER_FIXED
        mean = scale(node.value / node.visits, low, high)
        assert node.parent is not None
        return mean + uct_c * math.sqrt(math.log(node.parent.visits) / node.visits)

    node = tree.root
    while node.children:
        node = max(node.children, key=worth)
    return node


def scale(value: float, low: float, high: float) -> float:
    """Return where a value lies between two others, 0 to 1; 0 where there is nothing between."""
    return (value - low) / (high - low) if high > low else 0.0


def play_evolution(workbench: Workbench, llm: LLM, constants: Evolution) -> Outcome:
    """Play one episode of the evolution, which ends with its generations if nothing else ends it.

    The parents of a generation are those on the island when it began; its children join, or not,
    when it has ended. The first generation joins as it is.
    """
    depth, seconds = constants.max_debug_depth, constants.max_debug_s

    def search(lab: Lab) -> None:
        island: list[Node] = []
        for generation in range(constants.generations):
            known = [lab.tree.fitness(node) for node in lab.tree.good]
            children = []
            for _ in range(constants.individuals):
                parents = mates(lab, island, known, generation, constants)
                operator = ("draft", "improve", "crossover")[len(parents)]
                children.append(repaired(lab, lab.grow(operator, *parents), depth, seconds))
            good = [child for child in children if not child.fault]
            if generation == 0:
                island.extend(good)
                continue
            for child in good:
                settle(lab.tree, island, child, constants.size)

    return Lab(workbench, llm, PACK).play(search)


def mates(
    lab: Lab,
    island: Sequence[Node],
    known: Sequence[float],
    generation: int,
    constants: Evolution,
) -> tuple[Node, ...]:
    """Draw the parents of the next child: none for a draft, one, or two for a crossover.

    `known` are the fitnesses of all nodes that ever were good, on the island or not: they are what
    is scaled by. Chance is drawn for the crossover, if it is possible, and then for each parent.
    """
    if generation == 0 or not island:
        return ()
    pairs = generation >= 2 and len(island) > 1 and lab.rng.random() < constants.crossover_prob
    low, high = min(known), max(known)
    scaled = [scale(lab.tree.fitness(node), low, high) for node in island]
    drawn = draw(lab.rng, scaled, 1 + pairs, constants.temperature)
    return tuple(island[i] for i in drawn)


def settle(tree: Tree, island: list[Node], child: Node, size: int) -> None:
    """Take a child onto the island if it is not worse than the mean of those that are there.

    Where it is too full the worst leaves, of equally bad ones the earliest.
    """
    fitness = [tree.fitness(node) for node in island]
    if not island or tree.fitness(child) >= math.fsum(fitness) / len(fitness):
        island.append(child)
    while len(island) > size:
        island.remove(min(island, key=tree.fitness))


def draw(rng: Random, scaled: Sequence[float], count: int, temperature: float) -> list[int]:
    """Return the places of `count` different ones, drawn one by one by exp(value / temperature)."""
    weights = {i: math.exp(value / temperature) for i, value in enumerate(scaled)}
    drawn = []
    for _ in range(count):
        [place] = rng.choices(list(weights), list(weights.values()))
        del weights[place]
        drawn.append(place)
    return drawn


SCAFFOLDS.add(
    "aira-greedy",
    Preset(
        play_aira_greedy,
        Greedy(debug_prob=1.0, max_debug_depth=20),
        {**DAY, "env.max_turns": 500, "policy.temperature": 0.0},
    ),
)
# aira-dojo's configurations; generation at 0.6
_SEARCH = {**DAY, "env.max_turns": 10000, "policy.temperature": 0.6}
SCAFFOLDS.add("aira-mcts", Preset(play_mcts, MonteCarlo(), _SEARCH))
SCAFFOLDS.add("aira-evo", Preset(play_evolution, Evolution(), _SEARCH))
