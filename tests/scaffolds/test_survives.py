"""What goes wrong in an operator costs one node, never the episode: programs, replies, servers."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from scaffolds.played import (
    ANSWERS,
    CRASH,
    Listening,
    fenced,
    good,
    grown,
    play,
    script,
    small_task,
    verdict,
    writes,
)  # fmt: skip

from sandmle.errors import ContextError, ModelError
from sandmle.llm.base import Completion, Message
from sandmle.sandbox.bare import BareSandbox
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task
from sandmle.types import Limits


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return small_task(tmp_path / "c")


FIRST = f"{writes()}\nprint('validation metric: 0.5', flush=True)\n"
SLEEPS = "import time; time.sleep(60)"
# what brought down the interpreter of another scaffold, or got away from it, and how it ends here
SCRIPTS = {
    "sleeps": (SLEEPS, "timeout"),
    "swallows the interrupt": (
        "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
        "timeout",
    ),
    "long call in C": (
        "import numpy\nwhile True: numpy.linalg.svd(numpy.random.rand(2000, 2000))",
        "timeout",
    ),
    "leaves a child": (
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'while True: pass'])",
        "ok",
    ),
    "leaves a daemon": (
        "import os, time\nif not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        "    time.sleep(60)",
        "ok",
    ),
    "a pool": (
        "import multiprocessing\nmultiprocessing.get_context('fork').Pool(2).map(abs, [1, -1])",
        "ok",
    ),
    "loky": (
        "from joblib import Parallel, delayed\n"
        "print(Parallel(n_jobs=2, backend='loky')(delayed(abs)(n) for n in (1, -1)))",
        "ok",
    ),
    "takes all memory": (
        "taken = []\nwhile True: taken.append(b'x' * 2**24)",
        "error",  # a MemoryError; with a cgroup of its own the kernel kills it ("oom")
    ),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "killed"),
    "leaves at once": ("import os; os._exit(0)", "ok"),
    "exits": ("import sys; sys.exit(0)", "ok"),
    "writes past Python": ("import os; os.write(1, b'from below\\n')", "ok"),
    "lets another write": ("import subprocess; subprocess.run(['echo', 'from aside'])", "ok"),
    "200,000 lines": (
        "print('a line\\n' * 200000)\nprint('validation metric: 0.5')",
        "ok",
    ),
    "asks": ("input()", "error"),
}


# how each scaffold is told to run a program
SAY = {
    "react-paper": lambda code: f"<think>\nA plan.\n</think>\n```python\n{code}\n```",
    "mle-agent-paper": lambda code: json.dumps(
        {"action": "execute_code", "params": {"code": code}}
    ),
}
SEARCHES = ("aide-orig", "aide-mlebench", "aira-greedy", "aira-mcts", "aira-evo", "ml-master")


class Talkative:
    """Writes the scripts one after the other, whatever the scaffold wants; approves of each."""

    def __init__(self, programs: Sequence[str], scaffold: str) -> None:
        self._programs, self._say = list(programs), SAY.get(scaffold, fenced)

    def complete(self, messages: Sequence[Message]) -> Completion:
        if "You check programs" in messages[0].content:
            return Completion(verdict(0.5))
        return Completion(self._say(self._programs.pop(0)))


# a short limit for those that must meet it, a long one for the others: a busy machine is no failure
@pytest.mark.parametrize("stuck", [True, False])
@pytest.mark.parametrize("name", [*SAY, *SEARCHES])
def test_programs_that_broke_others_cost_a_node_each(
    name: str, stuck: bool, small: Task, sandbox: Sandbox
) -> None:
    scripts = [one for one in SCRIPTS.values() if (one[1] == "timeout") is stuck]
    programs = [("" if stuck else FIRST) + code for code, _ in scripts]
    # one at a time, so that the order is that of the scripts
    search = {"workers": 1} if name == "ml-master" else {}
    limits = Limits(wall_s=1) if stuck else Limits(wall_s=90, memory_mb=1024)
    llm = Talkative(programs, name)
    outcome = play(small, sandbox, name, llm, limits, max_turns=len(programs), search=search)
    assert (outcome.stop_reason, outcome.error) == ("max_turns", None)
    ended = ["error" if t.result.status == "oom" else t.result.status for t in outcome.turns]
    assert ended == [end for _, end in scripts]
    printed = "\n".join(turn.result.stdout for turn in outcome.turns)
    assert stuck or ("from below" in printed and "from aside" in printed), "nothing is lost"
    if name != "react-paper":  # it has no nodes
        faults = [turn.node.fault for turn in outcome.turns]
        assert [not fault for fault in faults] == [end == "ok" for _, end in scripts]
        assert not stuck or faults == ["stopped: the time limit was reached"] * len(scripts)
    assert outcome.grade.score == (None if stuck else 1.0)


NONSENSE = [
    "",
    "no program here",
    "<think>endless",
    "```python\nprint('unclosed'",
    "```python\n```",
]


@pytest.mark.parametrize("said", NONSENSE)
def test_a_reply_without_a_program_is_one_node(said: str, small: Task, sandbox: Sandbox) -> None:
    """Three replies are asked for, each told what was wrong with the one before."""
    llm = Listening([said] * 3 + good(0.5))
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=2, search={"num_drafts": 2})
    assert grown(outcome) == [("draft", (), None), ("draft", (), 0.5)]
    first = outcome.turns[0]
    assert (first.action.kind, first.result, first.format_ok) == ("none", None, False)
    assert first.usage.prompt_tokens == 30
    assert llm.asked[2][-1].content.startswith("This cannot be used: ")
    assert first.node.fault in llm.asked[1][-1].content


def test_a_program_that_does_not_compile_is_run_after_three_tries(
    small: Task, sandbox: Sandbox
) -> None:
    llm = Listening([fenced("print('a'")] * 3 + good(0.5))
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=2, search={"num_drafts": 1,
                   "debug_prob": 1})  # fmt: skip
    assert grown(outcome) == [("draft", (), None), ("debug", (0,), 0.5)]
    assert "SyntaxError" in llm.asked[3][-1].content, "the repair is shown what Python says"


def test_a_reply_that_can_be_used_at_the_second_try(small: Task, sandbox: Sandbox) -> None:
    llm = Listening(["well", *good(0.5)])
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=1)
    assert (outcome.turns[0].format_ok, grown(outcome)) == (True, [("draft", (), 0.5)])


@pytest.mark.parametrize(
    ("said", "metric", "fault"),
    [
        (["I like it", "still"], 0.5, ""),  # the printed line says it too
        ([verdict(None)], None, "no validation metric was printed"),
        ([verdict(1, is_bug=True)], None, "the review found a fault: It ran."),
        (['{"is_bug": false, "summary": "", "metric": NaN}', verdict(7)], 7.0, ""),
        (['```json\n{"is_bug": false, "summary": "a", "metric": 1,}\n```'], 1.0, ""),
    ],
)
def test_reviews(
    said: list[str], metric: float | None, fault: str, small: Task, sandbox: Sandbox
) -> None:
    llm = Listening([good(0.5)[0], *said])
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=1)
    assert (outcome.turns[0].node.metric, outcome.turns[0].node.fault) == (metric, fault)
    assert llm.left == 0


def test_an_invalid_submission_is_a_fault_only_where_it_may_be_told(
    small: Task, sandbox: Sandbox
) -> None:
    program = "open('submission.csv', 'w').write('id\\n')\nprint('validation metric: 0.9')"
    llm = Listening([fenced(program), *good(0.5)])
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=2)
    assert outcome.turns[0].node.fault.startswith("submission.csv: not valid: ")
    assert outcome.grade.status == "ok"
    llm = Listening([fenced(program), verdict(0.9), *good(0.5)])
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=2, feedback="none")
    assert grown(outcome) == [("draft", (), 0.9), ("draft", (), 0.5)]
    assert outcome.grade.status == "invalid", "the better figure counts, and nobody was told"
    assert not any("submission.csv: " in m.content for talk in llm.asked for m in talk)


def test_without_a_good_node_the_last_valid_submission_counts(
    small: Task, sandbox: Sandbox
) -> None:
    llm = Listening(
        [fenced(writes(3)), verdict(None), fenced("open('submission.csv', 'w')"), *CRASH]
    )
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=3)
    assert [turn.node.metric for turn in outcome.turns] == [None] * 3
    assert outcome.grade.score == 0.75


def test_a_model_that_fails_costs_a_node_and_three_times_in_a_row_the_episode(
    small: Task, sandbox: Sandbox
) -> None:
    down, long = ModelError("down"), ContextError("too long")
    llm = Listening(
        [down, down, *good(0.5), good(0.6)[0], down, *good(0.7), *[long] * 4, *good(0.8)]
    )
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=9, search={"num_drafts": 9})
    metrics = [metric for _, _, metric in grown(outcome)]
    assert metrics == [None, None, 0.5, 0.6, 0.7, None, None, None, None]
    assert outcome.turns[0].node.fault == "the model gave no reply: down"
    assert (outcome.stop_reason, outcome.error) == ("max_turns", None)

    llm = Listening([*good(0.5), down, down, down])
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=9, search={"num_drafts": 9})
    assert (outcome.stop_reason, outcome.error.boundary) == ("model_error", "model")
    assert len(outcome.turns) == 3


class Closing(Listening):
    """A model during whose second program the machine goes down."""

    def __init__(self, replies: Sequence[str], sandbox: Sandbox) -> None:
        super().__init__(replies)
        self._sandbox = sandbox

    def complete(self, messages: Sequence[Message]) -> Completion:
        if len(self.asked) == 2:
            self._sandbox.close()
        return super().complete(messages)


def test_a_sandbox_that_fails_ends_the_episode(small: Task) -> None:
    broken = BareSandbox(1)
    outcome = play(small, broken, "aide-orig", Closing(script(0.5, 0.6), broken))
    assert (outcome.stop_reason, outcome.error.boundary) == ("infra_error", "sandbox")
    assert len(outcome.turns) == 1


def test_programs_find_nothing_of_one_another(small: Task, sandbox: Sandbox) -> None:
    """A file that an earlier node left cannot pass for the submission of a later one."""
    llm = Listening([*good(0.5), fenced("print('validation metric: 0.9')")])
    outcome = play(small, sandbox, "aide-orig", llm, max_turns=2)
    assert outcome.turns[1].node.fault == "submission.csv: not there"
    assert outcome.submission == ANSWERS.encode()


def test_the_wall_ends_a_search_and_bounds_its_programs(small: Task, sandbox: Sandbox) -> None:
    llm = Listening([fenced(SLEEPS), *good(0.5)])
    outcome = play(small, sandbox, "aide-orig", llm, wall_s=1.0)
    assert (outcome.stop_reason, len(outcome.turns)) == ("wall_limit", 1)
    assert outcome.turns[0].result.status == "timeout"
