"""ML-Master: tree search by rewards, several branches worked on at once, each to its end.

A worker stays on its branch while that improves or is being repaired; what comes of it is then
propagated back, and the worker chooses again. Workers take their turns in rounds: all choose and
write, the programs run side by side, all are judged in order. So an episode can be repeated.
"""

import math
from dataclasses import dataclass

from pydantic import Field

from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.base import LLM
from sandmle.scaffolds.aide import SHOWN
from sandmle.scaffolds.base import SCAFFOLDS, Preset
from sandmle.scaffolds.lab import Lab, Wish
from sandmle.scaffolds.memory import siblings
from sandmle.scaffolds.operators import Pack
from sandmle.scaffolds.tree import Node, Tree
from sandmle.types import Record

_ALL = frozenset(("draft", "debug", "improve"))
_MOST_LOOKS = 1000  # at branches that have ended, before it is believed that all have
PACK = Pack(
    name="ml_master",
    memory={"draft": siblings, "improve": siblings},
    output=_ALL,
    preview=_ALL,
    packages=frozenset(("draft",)),
)


class Branching(Record):
    """Children of the root, of a good node and of a faulty one; when a branch is given up; and the
    weight of exploration, which falls from `explore` to `explore_floor` by `explore_slope` a node.

    A branch ends after `max_stale` nodes that are not `min_gain` better than its best, or
    `max_debug_depth` repairs in a row; from `back_debug_depth` of them on its worker looks
    elsewhere. A metric more than `max_ratio` times another one is not believed.
    """

    num_drafts: int = Field(default=5, ge=1)
    num_improves: int = Field(default=3, ge=1)
    num_bugs: int = Field(default=1, ge=1)
    workers: int = Field(default=3, ge=1)
    back_debug_depth: int = Field(default=3, ge=1)
    max_debug_depth: int = Field(default=20, ge=1)
    max_stale: int = Field(default=3, ge=0)
    min_gain: float = Field(default=1e-4, ge=0)
    max_ratio: float = Field(default=100.0, gt=1)
    explore: float = Field(default=1.414, ge=0)
    explore_floor: float = Field(default=0.5, ge=0)
    explore_slope: float = Field(default=0.01, ge=0)
    explore_from: float = Field(default=0.3, ge=0, le=1)
    explore_until: float = Field(default=0.7, ge=0, le=1)


@dataclass
class Mark:
    """What a search knows of a node beyond its program.

    `best` is the best node of its branch so far, `stale` how often in a row that was not bettered;
    `goes_on`: the branch is worked on below this node; `fixed`: a repair of it succeeded; `ended`:
    nothing more is made of it; `locked`: a worker is on this branch.
    """

    best: Node | None = None
    stale: int = 0
    goes_on: bool = False
    fixed: bool = False
    ended: bool = False
    locked: bool = False


def play_ml_master(workbench: Workbench, llm: LLM, constants: Branching) -> Outcome:
    """Play one episode."""

    def doubt(tree: Tree, metric: float) -> str:
        best = tree.best()
        if best is None or best.metric is None or not implausible(metric, best.metric, constants):
            return ""
        return f"a metric of {metric} beside {best.metric} cannot be right"

    lab = Lab(workbench, llm, PACK, doubt)
    return lab.play(Search(lab.tree, constants, workbench.config.max_turns).run)


def implausible(metric: float, best: float, constants: Branching) -> bool:
    """Return whether a metric is too far from the best one to be believed."""
    small, large = sorted((abs(metric), abs(best)))
    if small == 0:
        return large > constants.max_ratio
    return large / small > constants.max_ratio


def exploration(made: int, steps: int, c: Branching) -> float:
    """Return the weight of exploration when `made` of `steps` nodes are there."""
    begin = min(c.num_drafts * c.num_improves**2, round(steps * c.explore_from))
    if made < begin:
        return c.explore
    if made > round(steps * c.explore_until):
        return c.explore_floor
    return max(c.explore_floor, c.explore - c.explore_slope * (made - begin))


class Search:
    """Where each worker is, and what is known of each branch."""

    def __init__(self, tree: Tree, constants: Branching, steps: int) -> None:
        self.tree, self.c, self._steps = tree, constants, steps
        self.marks: dict[Node, Mark] = {tree.root: Mark()}
        self._asked: dict[Node, int] = {}  # children that are being made in this round
        self._best: float | None = None

    def run(self, lab: Lab) -> None:
        """Work until there is nothing left to work on."""
        hands: list[Node | None] = [None] * self.c.workers
        while True:
            places, wishes = [], []
            self._asked.clear()
            for place, hand in enumerate(hands):
                node = hand or self.select()
                if node is not None:
                    self._asked[node] = self._asked.get(node, 0) + 1
                    places.append(place)
                    wishes.append(Wish(self._operator(node), (node,)))
            if not wishes:
                return
            for place, child in zip(places, lab.grow_all(wishes), strict=False):
                hands[place] = child if self.take_in(child) else None

    def select(self) -> Node | None:
        """Return the node to make a child of; None while every branch is taken or has ended."""
        for _ in range(_MOST_LOOKS):
            node = self._descend()
            if node is None or not self.marks[node].ended:
                return node
            self._propagate(node, 0.0)
        return None

    def take_in(self, child: Node) -> bool:
        """Judge a new node; return whether its worker goes on from it."""
        parent = child.parent
        assert parent is not None
        mark = self.marks[child] = Mark(best=self.marks[parent].best)
        mark.locked = child.operator == "draft"
        reward = -1.0
        if not child.fault:
            fitness = self.tree.fitness(child)
            betters = self._best is not None and fitness > self._best
            reward = 2.0 if betters else 1.0
            self._best = fitness if self._best is None else max(fitness, self._best)
        if goes_on := self._goes_on(child, mark):
            return goes_on
        self._propagate(child, reward)
        return False

    def _goes_on(self, child: Node, mark: Mark) -> bool:
        if child.fault:
            mark.ended = child.debug_depth >= self.c.max_debug_depth
            return not mark.ended and child.debug_depth < self.c.back_debug_depth
        best = mark.best
        gain = math.inf
        if best is not None:
            gain = self.tree.fitness(child) - self.tree.fitness(best)
        if gain >= self.c.min_gain:
            mark.best, mark.goes_on = child, True
        elif best is not None and self.marks[best].stale < self.c.max_stale:
            self.marks[best].stale += 1
            mark.goes_on = True
        else:
            mark.ended = True
        repaired = child.parent is not None and bool(child.parent.fault)
        return mark.goes_on and not repaired

    def _operator(self, node: Node) -> str:
        if node is self.tree.root:
            return "draft"
        return "debug" if node.fault else "improve"

    def _descend(self) -> Node | None:
        """Return the node that is reached from the root by the highest worth, ties earliest."""
        weight = exploration(len(self.tree.nodes), self._steps, self.c)
        node = self.tree.root
        while not self.marks[node].ended:
            mark = self.marks[node]
            made = len(node.children) + self._asked.get(node, 0)
            below = bool(node.children) and (mark.goes_on or mark.fixed)
            if made < self._allowed(node) and not below:
                return node
            free = [child for child in node.children if not self.marks[child].locked]
            if not free:
                return None
            node = max(free, key=lambda child: worth(child, weight))
            self.marks[node].locked = node.operator == "draft"
        return node

    def _allowed(self, node: Node) -> int:
        if node is self.tree.root:
            return self.c.num_drafts
        return self.c.num_bugs if node.fault else self.c.num_improves

    def _propagate(self, leaf: Node, value: float) -> None:
        """Count what came of a branch, tell every node above whether to go on below it, and let
        others at the branch.
        """
        self.tree.propagate(leaf, value)
        for node in leaf.line():
            mark, parent = self.marks[node], node.parent
            mark.locked, mark.stale = False, 0
            if parent is None:
                break
            above = self.marks[parent]
            above.fixed |= bool(parent.fault) and (not node.fault or mark.fixed)
            above.goes_on = mark.goes_on and parent is not self.tree.root


def worth(node: Node, weight: float) -> float:
    """Return mean reward + weight * sqrt(ln(visits of its parent) / its visits), of what was never
    visited without bound.
    """
    if not node.visits:
        return math.inf
    assert node.parent is not None
    return node.value / node.visits + weight * math.sqrt(math.log(node.parent.visits) / node.visits)


SCAFFOLDS.add(
    "ml-master",
    Preset(
        play_ml_master,
        Branching(),
        {
            **SHOWN,
            "env.max_turns": 500,
            "env.wall_s": 43200.0,
            "policy.temperature": 0.5,
            "sandbox.limits.wall_s": 32400.0,
            "sandbox.workers": 3,
        },
    ),
)
