"""Each search, node by node, as it was worked out by hand."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
from scaffolds.played import (
    CRASH,
    Listening,
    cast,
    good,
    grown,
    play,
    script,
    small_task,
    together,
)  # fmt: skip

from sandmle.config import EnvSection
from sandmle.env.workbench import Outcome, Workbench
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds.aira import draw, settle
from sandmle.scaffolds.base import SCAFFOLDS
from sandmle.scaffolds.ml_master import Branching, exploration, implausible
from sandmle.scaffolds.tree import Node, Tree
from sandmle.tasks.folder import Task

Playing = Callable[..., Outcome]


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return small_task(tmp_path / "max")


@pytest.fixture(params=["max", "min"])
def episode(request: pytest.FixtureRequest, tmp_path: Path, sandbox: Sandbox) -> Playing:
    """Play a script of metrics; where less is better each m is told as 1 - m."""
    lower = request.param == "min"
    task = small_task(tmp_path / "c", "rmse" if lower else "accuracy")

    def turned(metric: float | None) -> float | None:
        return metric if metric is None or not lower else round(1 - metric, 6)

    def playing(name: str, metrics: list[float | None], **env):
        llm = Listening(script(*map(turned, metrics)))
        outcome = play(task, sandbox, name, llm, **env)
        nodes = [(op, parents, turned(m)) for op, parents, m in grown(outcome)]
        return outcome, nodes, llm.left

    return playing


def test_aide_drafts_debugs_and_improves(episode: Playing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two drafts; a number below 0.5 means a repair, of the first faulty leaf each time.

    The last number is drawn for a step that is not made any more.
    """
    cast(monkeypatch, 0.7, 0.2, 0, 0.2, 0, 0.2, 0.9, 0.1, 0, 0.9, 0.9)
    metrics = [0.5, None, 0.625, None, None, 0.625, None, 0.75, 0.5]
    search = {"num_drafts": 2, "debug_prob": 0.5, "max_debug_depth": 1}
    outcome, nodes, left = episode("aide-orig", metrics, max_turns=9, search=search)
    assert nodes == [
        ("draft", (), 0.5),
        ("draft", (), None),
        ("improve", (0,), 0.625),
        ("debug", (1,), None),  # depth 1
        ("debug", (3,), None),  # depth 2: too deep to be repaired again
        ("improve", (2,), 0.625),  # 0.2 wants a repair, but there is nothing left to repair
        ("improve", (2,), None),  # of two with 0.625 the earlier one
        ("debug", (6,), 0.75),
        ("improve", (7,), 0.5),
    ]
    assert (outcome.stop_reason, left) == ("max_turns", 0)


def test_aide_drafts_again_while_nothing_is_good(
    episode: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast(monkeypatch, 0.9, 0.3, 1, 0.9)
    search = {"num_drafts": 1, "max_debug_depth": 3}
    _, nodes, _ = episode("aide-orig", [None] * 3, max_turns=3, search=search)
    assert nodes == [("draft", (), None), ("draft", (), None), ("debug", (1,), None)]


def test_aira_greedy_repairs_first(episode: Playing, monkeypatch: pytest.MonkeyPatch) -> None:
    cast(monkeypatch, 0.99, 0, 0.99, 0, 0.99, 0.99)
    metrics = [None, 0.5, None, 0.75, 0.875]
    _, nodes, _ = episode("aira-greedy", metrics, max_turns=5, search={"num_drafts": 2})
    assert nodes == [
        ("draft", (), None), ("draft", (), 0.5), ("debug", (0,), None), ("debug", (2,), 0.75),
        ("improve", (3,), 0.875),
    ]  # fmt: skip


def test_mcts_descends_expands_repairs_and_propagates(episode: Playing) -> None:
    """Worth = scaled mean + 0.25 sqrt(ln N(parent) / N), N and the sums of metrics by hand:

    1. the root has no children: drafts 0 (0.5) and 1, which is repaired by 2 (0.9). Root: N 2.
    2. 0: 0 + .208; 1: 1 + .208, and below it 2: improved by 3 (0.7), and by 4, never repaired.
    3. root N 3. 0: 0 + .262; 1: .75 + .185 (N 2, sum 1.6); 2; then 3 before 4, which has N 0:
       improved by 7 and 8 (0.2 each). Root N 5, 1: N 4, sum 2.0.
    4. scale .2 to .9. 0: .429 + .317; 1: .429 + .159: 0 is improved by 9 and 10 (0.5 each).
    5. root N 7. 0: .429 + .201 (N 3); 1: .429 + .174. 9 and 10 are equal: the earlier one.
    """
    metrics = [0.5, None, 0.9, 0.7, None, None, None, 0.2, 0.2, 0.5, 0.5, 0.9]
    search = {"num_children": 2, "uct_c": 0.25, "max_debug_depth": 2}
    outcome, nodes, left = episode("aira-mcts", metrics, max_turns=12, search=search)
    assert nodes == [
        ("draft", (), 0.5), ("draft", (), None), ("debug", (1,), 0.9),
        ("improve", (2,), 0.7),
        ("improve", (2,), None), ("debug", (4,), None), ("debug", (5,), None),
        ("improve", (3,), 0.2), ("improve", (3,), 0.2),
        ("improve", (0,), 0.5), ("improve", (0,), 0.5),
        ("improve", (9,), 0.9),
    ]  # fmt: skip
    assert (outcome.stop_reason, left) == ("max_turns", 0)
    assert grown(outcome)[2][2] == grown(outcome)[11][2], "two are the best"
    assert outcome.turns[2].submission_sha256 is not None


def test_evolution_mates_repairs_and_selects(
    episode: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two individuals a generation; the island is what it was when a generation began.

    - 1: one parent each. 2 (0.05) is below the mean of 0 and 1 (0.5), 4 just reaches it.
    - 2: a crossover of two of 0, 1 and 4, and one improvement: 5 has not joined them yet. Metrics
      are scaled from 0.05, of which none is on the island, to 0.75.
    - 3: 5 has joined (0.875 against a mean of 0.5), and is the best of all.
    """
    dice = cast(monkeypatch, 1, 0, 0.3, 1, 2, 0.7, 1, 0.9, 3, 0.9, 0)
    metrics = [0.25, 0.75, 0.05, None, 0.5, 0.875, None, None, 0.1, 0.1]
    search = {"individuals": 2, "generations": 4, "max_debug_depth": 1}
    outcome, nodes, left = episode("aira-evo", metrics, max_turns=50, search=search)
    assert nodes == [
        ("draft", (), 0.25), ("draft", (), 0.75),
        ("improve", (1,), 0.05), ("improve", (0,), None), ("debug", (3,), 0.5),
        ("crossover", (1, 4), 0.875), ("improve", (1,), None), ("debug", (6,), None),
        ("improve", (5,), 0.1), ("improve", (0,), 0.1),
    ]  # fmt: skip
    assert (outcome.stop_reason, left) == ("submitted", 0)
    e = 2.718281828459045
    assert dice.weights == [
        pytest.approx(weights)
        for weights in (
            [1, e],  # the worse and the better of two
            [1, e],
            [e ** (0.2 / 0.7), e, e ** (0.45 / 0.7)],
            [e ** (0.2 / 0.7), e ** (0.45 / 0.7)],  # without the one that was drawn
            [e ** (0.2 / 0.7), e, e ** (0.45 / 0.7)],
            [e ** (0.2 / 0.825), e ** (0.7 / 0.825), e ** (0.45 / 0.825), e],
            [e ** (0.2 / 0.825), e ** (0.7 / 0.825), e ** (0.45 / 0.825), e],
        )
    ]


def test_evolution_drafts_again_while_the_island_is_empty(
    episode: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast(monkeypatch, 0)
    search = {"individuals": 1, "generations": 3, "max_debug_depth": 0}
    _, nodes, _ = episode("aira-evo", [None, 0.5, 0.25], max_turns=9, search=search)
    assert nodes == [("draft", (), None), ("draft", (), 0.5), ("improve", (1,), 0.25)]


def test_evolution_gives_up_repairs_that_take_long(episode: Playing) -> None:
    """With no time at all the one repair is made after which it is noticed."""
    search = {"individuals": 1, "generations": 1, "max_debug_depth": 3}
    _, nodes, _ = episode("aira-evo", [None] * 4, max_turns=9, search=search)
    assert [operator for operator, *_ in nodes] == ["draft", "debug", "debug", "debug"]
    search["max_debug_s"] = 0
    _, nodes, _ = episode("aira-evo", [None] * 4, max_turns=9, search=search)
    assert [operator for operator, *_ in nodes] == ["draft", "debug"]


def test_an_island_loses_its_worst(small: Task) -> None:
    tree = Tree("min")
    a, b, c, d, e, f = (
        Node(i, "draft", metric=m) for i, m in enumerate((3.0, 3.0, 2.0, 4.0, 1.0, 1.5))
    )
    island = [a, b]
    settle(tree, island, c, size=2)
    assert island == [b, c], "of two equally bad ones the earlier"
    settle(tree, island, d, size=2)
    assert island == [b, c], "worse than the mean"
    settle(tree, island, e, size=2)
    assert island == [c, e]
    settle(tree, island, f, size=2)
    assert island == [e, f], "just the mean"
    settle(tree, island, d, size=1)
    assert island == [e], "too full without it"
    empty: list[Node] = []
    settle(tree, empty, d, size=2)
    assert empty == [d]


def test_the_drawn_differ(small: Task) -> None:
    assert sorted(draw(Random(0), [1.0, 1.0, 5.0], 3, 1.0)) == [0, 1, 2]
    often = [draw(Random(seed), [0.0, 1.0], 1, 1.0)[0] for seed in range(2000)]
    assert sum(often) / 2000 == pytest.approx(2.71828 / 3.71828, abs=0.03)


def test_ml_master_stays_on_a_branch_and_propagates(episode: Playing) -> None:
    """One worker, 13 steps: exploration is 1.414 until node 4, then 0.01 less a node, .5 from 10.

    - 0 improves to 1; 2 and 3 do not: the branch ends, reward 1, and the root gets its draft 4.
    - 4, 5 and 6 fail: at depth 2 reward -1 goes up. Node 7: root N 2, weight 1.384.
      0: 1 + 1.384 sqrt(ln 2) = 2.15; 4: 0.15. 0 has 1 of 2 children: 7, better, goes on.
    - 8 fails, 9 repairs it and is the best: reward 2. Root N 3, weight .5: 0: 1.5 + .371;
      4: -1 + .524. Below 0, 1: 1 + .416, 7: 2 + .416. 7 goes on below, and 8 is repaired: to 9.
    - 10 and 11 are no better: the end, reward 1. Root N 4. 0: 1.33 + .34; 1: 1 + .524;
      7: 1.5 + .371, it has 1 of 2 children and nothing goes on below it: improved by 12.
    """
    metrics = [0.5, 0.6, 0.6, 0.55, None, None, None, 0.7, None, 0.9, 0.9, 0.9, 0.2]
    search = {
        "num_drafts": 2, "num_improves": 2, "workers": 1, "back_debug_depth": 2,
        "max_debug_depth": 3, "max_stale": 1,
    }  # fmt: skip
    outcome, nodes, left = episode("ml-master", metrics, max_turns=13, search=search)
    assert nodes == [
        ("draft", (), 0.5), ("improve", (0,), 0.6), ("improve", (1,), 0.6), ("improve", (2,), 0.55),
        ("draft", (), None), ("debug", (4,), None), ("debug", (5,), None),
        ("improve", (0,), 0.7), ("improve", (7,), None), ("debug", (8,), 0.9),
        ("improve", (9,), 0.9), ("improve", (10,), 0.9),
        ("improve", (7,), 0.2),
    ]  # fmt: skip
    assert (outcome.stop_reason, left) == ("max_turns", 0)


def test_ml_master_workers_share_the_branches(small: Task, sandbox: Sandbox) -> None:
    """Four workers, three drafts: one has nothing to do; then each stays on its own branch.

    The repair by 4 is propagated at once: its worker chooses anew, and finds that branch alone.
    """
    rounds = [(0.5, None, 0.25), (0.625, 0.375, 0.5), (0.75, 0.5, 0.6), (0.8,)]
    llm = Listening([reply for one in rounds for reply in together(*one)])
    search = {"num_drafts": 3, "workers": 4}
    outcome = play(small, sandbox, "ml-master", llm, max_turns=10, search=search)
    assert grown(outcome) == [
        ("draft", (), 0.5), ("draft", (), None), ("draft", (), 0.25),
        ("improve", (0,), 0.625), ("debug", (1,), 0.375), ("improve", (2,), 0.5),
        ("improve", (3,), 0.75), ("improve", (4,), 0.5), ("improve", (5,), 0.6),
        ("improve", (6,), 0.8),  # the last step is the first worker's
    ]  # fmt: skip
    assert (outcome.stop_reason, llm.left) == ("max_turns", 0)


def test_ml_master_ends_when_every_branch_has(episode: Playing) -> None:
    search = {"num_drafts": 1, "back_debug_depth": 2, "max_debug_depth": 3, "workers": 1}
    outcome, nodes, _ = episode("ml-master", [None] * 4, max_turns=20, search=search)
    assert nodes == [
        ("draft", (), None), ("debug", (0,), None), ("debug", (1,), None), ("debug", (2,), None),
    ]  # fmt: skip
    assert (outcome.stop_reason, outcome.grade.status) == ("submitted", "missing")


def test_ml_master_does_not_believe_every_figure(small: Task, sandbox: Sandbox) -> None:
    llm = Listening(script(0.5, 51.0, 0.6))
    outcome = play(small, sandbox, "ml-master", llm, max_turns=3, search={"workers": 1})
    assert grown(outcome)[1:] == [("improve", (0,), None), ("debug", (1,), 0.6)]
    assert outcome.turns[1].node.fault == "a metric of 51.0 beside 0.5 cannot be right"
    near = partial(implausible, constants=Branching())
    assert [near(100.0, 1.0), near(101.0, 1.0), near(0.0, 100.0), near(-101, 0.0)] == [
        False, True, False, True,
    ]  # fmt: skip


def test_exploration_falls_between_two_times() -> None:
    """500 steps: from min(5 * 3^2, 150) = 45 on, until .5 is reached at 45 + 91.4 nodes."""
    weights = [exploration(n, 500, Branching()) for n in (0, 44, 45, 46, 136, 137, 350, 351, 499)]
    assert weights == pytest.approx([1.414, 1.414, 1.414, 1.404, 0.504, 0.5, 0.5, 0.5, 0.5])
    # 40 steps: from min(45, 12) on, and the floor after 28
    weights = [exploration(n, 40, Branching()) for n in (11, 12, 28, 29)]
    assert weights == pytest.approx([1.414, 1.414, 1.254, 0.5])


@pytest.mark.parametrize(("metric", "chosen"), [("accuracy", 0), ("rmse", 1)])
def test_the_best_by_its_own_validation_counts(
    tmp_path: Path, sandbox: Sandbox, metric: str, chosen: int
) -> None:
    """The better figure of its own has the worse hidden score; the last node is of no use."""
    task = small_task(tmp_path / "c", metric)
    llm = Listening([*good(0.9, right=1), *good(0.2, right=3), *CRASH])
    outcome = play(task, sandbox, "aide-orig", llm, max_turns=3)
    assert outcome.grade == outcome.turns[chosen].hidden_grade
    assert outcome.grade != outcome.turns[1 - chosen].hidden_grade
    assert (outcome.grade.status, outcome.stop_reason) == ("ok", "max_turns")


def test_chance_comes_from_the_seed(small: Task, sandbox: Sandbox) -> None:
    def nodes(seed: int) -> list:
        llm = Listening(script(0.5, *[None] * 11))
        section = EnvSection(max_turns=12, search={"num_drafts": 2})
        bench = Workbench(small, sandbox, section, seed=seed)
        return grown(SCAFFOLDS.get("aide-orig")(bench, llm))

    assert nodes(1) == nodes(1)
    assert len({str(nodes(seed)) for seed in range(4)}) > 1
