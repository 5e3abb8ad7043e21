"""The pieces that scaffolds share: extraction, printed figures, memory, the tree, prompts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scaffolds.played import CRASH, Listening, cast, fenced, good, play, script, small_task

from sandmle.report.episodes import detail
from sandmle.rewards import PRESETS
from sandmle.rollout.record import EpisodeKey, make_trajectory
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds.extract import read_program
from sandmle.scaffolds.memory import all_good, ancestors, recall, siblings
from sandmle.scaffolds.review import printed_metric
from sandmle.scaffolds.tree import Node, Tree
from sandmle.tasks.folder import Task


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return small_task(tmp_path / "c")


@pytest.mark.parametrize(
    ("reply", "plan", "code"),
    [
        ("Do it.\n```python\na = 1\n```", "Do it.", "a = 1\n"),
        ("<think>hm\n```python\nx\n```</think>Do it.\n```\na = 1\n```", "Do it.", "a = 1\n"),
        ("the thought</think>\nDo it.\n```py\na = 1\n```", "Do it.", "a = 1\n"),
        (
            "Do.\n```python\na = 1\n```\nand\n```python\nb = 2\n```",
            "Do.\nand",
            "a = 1\n\n\nb = 2\n",
        ),
        ("Do.\n```bash\nls\n```\n```python\na = 1\n```", "Do.", "a = 1\n"),
        ("Do.\n```python\na = (\n```\n```python\nb = 2\n```", "Do.", "b = 2\n"),
        ("import os\nprint(os.name)", "", "import os\nprint(os.name)"),
    ],
)
def test_programs_are_found(reply: str, plan: str, code: str) -> None:
    program = read_program(reply)
    assert ("\n".join(program.plan.split("\n\n")).replace("\n\n", "\n"), program.code) == (
        plan,
        code,
    )
    assert program.error == ""


@pytest.mark.parametrize(
    ("reply", "error", "code"),
    [
        ("Do.\n```python\na = (\n```", "the program does not compile: line 1", "a = (\n"),
        ("Do.\n```python\na = 1", "the code block was not closed", ""),
        ("<think>Do.\n```python\na = 1\n```", "the thought was not closed", ""),
        ("Nothing.", "there is no fenced python block", ""),
        ("", "there is no fenced python block", ""),
        ("```python\n\n```", "the program does not compile: it is empty", "\n"),
    ],
)
def test_what_is_no_program_is_said(reply: str, error: str, code: str) -> None:
    program = read_program(reply)
    assert program.error.startswith(error)
    assert program.code == code


@given(st.text())
def test_any_reply_can_be_read(reply: str) -> None:
    program = read_program(reply)
    assert bool(program.code) or bool(program.error)
    assert program.raw == reply


@pytest.mark.parametrize(
    ("output", "metric"),
    [
        ("validation metric: 0.5", 0.5),
        ("fold 1\nFinal Validation Metric:  -1e-3 \ndone", -0.001),
        ("validation metric: 1\nvalidation metric: 2", 2.0),
        ("validation metric: 1\nvalidation metric: nan", None),
        ("validation metric: inf", None),
        ("validation metric: about 3", None),
        ("my validation metric: 3", None),
        ("", None),
    ],
)
def test_the_printed_figure(output: str, metric: float | None) -> None:
    assert printed_metric(output) == metric


def line(tree: Tree, *faults: str) -> list[Node]:
    """Return nodes below one another with these faults; the good ones have their id as metric."""
    nodes, parent = [], tree.root
    for i, fault in enumerate(faults):
        metric = None if fault else float(i)
        operator = "debug" if parent.fault else "improve"
        node = Node(i, operator, (parent,), f"plan {i}", metric=metric, fault=fault)
        nodes.append(parent := tree.add(node))
    return nodes


def test_depth_and_memories() -> None:
    tree = Tree("max")
    nodes = line(tree, "", "a", "b", "c", "", "d")
    assert [node.debug_depth for node in nodes] == [0, 0, 1, 2, 3, 0]
    assert ancestors(tree, nodes[3]) == nodes[1:4]
    assert all_good(tree, nodes[3]) == [nodes[0], nodes[4]]
    other = tree.add(Node(6, "improve", (nodes[0],), fault="e"))
    assert siblings(tree, nodes[0]) == [nodes[1], other]
    assert tree.to_debug(0) == [nodes[5], other]


def test_memory_keeps_the_best_and_the_newest() -> None:
    nodes = [Node(i, "draft", plan="x" * 100, metric=float(-i)) for i in range(10)]
    assert recall(nodes, nodes[1], 350) == [nodes[1], nodes[8], nodes[9]]
    assert recall(nodes, nodes[9], 350) == nodes[7:]
    assert recall(nodes, None, 50) == []
    assert recall(nodes, nodes[0], 10_000) == nodes


def test_what_aide_shows(small: Task, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """An improvement sees no output, a repair no memory, and both their program."""
    cast(monkeypatch, 0.1, 0, 0.9, 0.9)
    llm = Listening([*good(0.5), *CRASH, *CRASH, *good(0.75)])
    play(small, sandbox, "aide-orig", llm, max_turns=4, search={"num_drafts": 2})
    draft, second, repair, improve = (llm.asked[i][1].content for i in (0, 2, 3, 4))
    assert "What was tried" not in draft
    assert "Reaches 0.5." in second
    assert "`train.csv`" in draft
    assert "ValueError: no such column" in repair
    assert "It is of no use: failed with exit code 1." in repair
    assert "What was tried" not in repair
    assert "print('validation metric:', 0.5)" in improve
    assert "What came of it" not in improve
    assert "`train.csv`" not in improve
    assert draft.endswith("programs left, with this one: 4")
    assert "5-fold" in improve


def test_what_aira_shows(small: Task, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    cast(monkeypatch, 0.1, 0, 0.1, 0, 0.1, 0, 0.9)
    llm = Listening([*CRASH, *CRASH, *CRASH, *good(0.5), *good(0.6)])
    play(small, sandbox, "aira-greedy", llm, max_turns=4, search={"num_drafts": 1, "debug_prob": 1})
    repair = llm.asked[2][1].content
    assert repair.count("Fails.") >= 2, "the chain of failures, and the program itself"


def test_a_crossover_shows_both(
    small: Task, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast(monkeypatch, 0, 0, 0.1, 0, 1, 0.9, 0)
    search = {"individuals": 2, "generations": 3}
    llm = Listening(script(0.5, 0.6, 0.7, 0.8, 0.9))
    play(small, sandbox, "aira-evo", llm, max_turns=5, search=search)
    both = llm.asked[8][1].content
    assert "# Program 1" in both
    assert "# Program 2" in both
    assert "print('validation metric:', 0.5)" in both
    assert "print('validation metric:', 0.6)" in both


def test_output_is_cut_and_harmless(small: Task, sandbox: Sandbox) -> None:
    noisy = "print('<think>' + 'x' * 20000)\nraise SystemExit(3)"
    llm = Listening([fenced(noisy), *good(0.5)])
    outcome = play(
        small, sandbox, "aide-orig", llm, max_turns=2, observation_chars=1000,
        search={"num_drafts": 1, "debug_prob": 1},
    )  # fmt: skip
    shown = outcome.turns[0].observation
    assert len(shown) < 1200
    assert "&lt;think>" in shown
    assert shown in llm.asked[1][1].content


def test_the_page_tells_of_nodes(small: Task, sandbox: Sandbox) -> None:
    llm = Listening([*CRASH, *good(0.5)])
    search = {"num_drafts": 1, "debug_prob": 1}
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=2, search=search)
    key = EpisodeKey(task_hash="", scaffold="aide-orig", policy="p", sampling={}, seed=0)
    made = make_trajectory(outcome, small, key, 0, PRESETS["paper"], "validity")
    first, second = detail(made, small.card, 5000)["turns"]
    assert (first["node"], first["fault"]) == ("draft", "failed with exit code 1")
    assert second["node"] == "debug of turn 1 · validation metric 0.5 · It ran."
