"""AIDE: a few drafts, then repairs of what failed and improvements of the best, greedily."""

from typing import Any

from pydantic import Field

from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.base import LLM
from sandmle.scaffolds.base import SCAFFOLDS, Preset
from sandmle.scaffolds.lab import Lab
from sandmle.scaffolds.memory import all_good
from sandmle.scaffolds.operators import Pack
from sandmle.scaffolds.tree import Node
from sandmle.types import Record

# an improvement is shown the program without its output, a repair remembers nothing
PACK = Pack(
    name="aide",
    memory={"draft": all_good, "improve": all_good},
    output=frozenset(("debug",)),
    preview=frozenset(("draft", "debug")),
    packages=frozenset(("draft",)),
)


class Greedy(Record):
    """`num_drafts` first; then with `debug_prob` a repair, if no more than `max_debug_depth`
    repairs in a row led to what it works on. `k_fold` is asked for in validation, 1 for none.
    """

    num_drafts: int = Field(default=5, ge=1)
    debug_prob: float = Field(default=0.5, ge=0, le=1)
    max_debug_depth: int = Field(default=3, ge=0)
    k_fold: int = Field(default=5, ge=1)


def play_aide(workbench: Workbench, llm: LLM, constants: Greedy) -> Outcome:
    """Play one episode with AIDE's operators."""
    return play_greedy(workbench, llm, constants, PACK)


def play_greedy(workbench: Workbench, llm: LLM, constants: Greedy, pack: Pack) -> Outcome:
    """Play one episode of the greedy search with the operators of `pack`."""

    def search(lab: Lab) -> None:
        while True:
            operator, parent = select(lab, constants)
            lab.grow(operator, parent)

    return Lab(workbench, llm, pack._replace(k_fold=constants.k_fold)).play(search)


def select(lab: Lab, constants: Greedy) -> tuple[str, Node]:
    """Return what is done next, and to which node; of equal metrics the earliest is improved.

    Chance is drawn once the drafts are there: a number for `debug_prob`, and then, for a repair,
    which of the faulty leaves.
    """
    tree = lab.tree
    if len(tree.root.children) < constants.num_drafts:
        return "draft", tree.root
    if lab.rng.random() < constants.debug_prob:
        faulty = tree.to_debug(constants.max_debug_depth)
        if faulty:
            return "debug", lab.rng.choice(faulty)
    best = tree.best()
    return ("improve", best) if best is not None else ("draft", tree.root)


# cut in the middle, as all of AIDE's descendants do
SHOWN: dict[str, Any] = {"env.observation_chars": 5000, "policy.turn_tokens": 8192}
# the paper's evaluation (appendix A.2): 24 hours and 5 minutes of grace, 4 hours for one program,
# temperature 0
DAY: dict[str, Any] = {
    **SHOWN,
    "env.wall_s": 86400.0,
    "env.grace_s": 300.0,
    "sandbox.limits.wall_s": 14400.0,
}

# aideml 0.2.2
SCAFFOLDS.add(
    "aide-orig",
    Preset(
        play_aide,
        Greedy(),
        {
            **SHOWN,
            "env.max_turns": 20,
            "policy.temperature": 0.5,
            "sandbox.limits.wall_s": 3600.0,
        },
    ),
)
# MLE-bench's configuration of AIDE, with the limits and the temperature of the paper's evaluation
SCAFFOLDS.add(
    "aide-mlebench",
    Preset(
        play_aide,
        Greedy(debug_prob=1.0, max_debug_depth=20),
        {**DAY, "env.max_turns": 500, "policy.temperature": 0.0},
    ),
)
# MLE-Dojo's variant: 15 steps in 12 hours, three drafts, no cross-validation. There it selects by
# the place on the hidden leaderboard; here by its own validation, as every scaffold does.
SCAFFOLDS.add(
    "aide-dojo",
    Preset(
        play_aide,
        Greedy(num_drafts=3, k_fold=1),
        {
            **SHOWN,
            "env.max_turns": 15,
            "env.wall_s": 43200.0,
            "policy.temperature": 0.0,
            "sandbox.limits.wall_s": 43200.0,
        },
    ),
)
