"""What is left out of a conversation that has grown too long, and what never is (FR-42)."""

import json
from pathlib import Path

import pytest
from build import build_task

from sandmle.config import EnvSection
from sandmle.env.context import Exchange, evict_failed, open_context
from sandmle.env.journal import Journal
from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Workbench
from sandmle.errors import ContextError, UsageError
from sandmle.llm.base import Completion, Message, estimate_tokens
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds.react import react

ANSWERS = "id,label\na,1\nb,0\n"
WRITE = f"open('submission.csv', 'w').write({ANSWERS!r})"


def exchanges(marks: str) -> list[Exchange]:
    """One exchange a letter: f failed, v left a valid submission, anything else neither."""
    return [
        Exchange(i, Message("assistant", f"r{i}"), Message("user", f"o{i}"), m == "f", m == "v")
        for i, m in enumerate(marks)
    ]


def turns(kept: list[Exchange]) -> list[int]:
    return [one.turn for one in kept]


@pytest.mark.parametrize(
    ("marks", "room", "left"),
    [
        ("fofov", 5, [0, 1, 2, 3, 4]),
        ("fofov", 4, [1, 2, 3, 4]),
        ("fofov", 3, [1, 3, 4]),
        ("fofov", 2, [3, 4]),
        ("vfoof", 3, [0, 3, 4]),
        ("vvfff", 2, [1, 4]),
        ("vffff", 1, [0, 4]),  # the last valid one and the last exchange stay whatever the room
        ("o", 0, [0]),
    ],
)
def test_failed_ones_go_first_then_the_oldest(marks: str, room: int, left: list[int]) -> None:
    kept = evict_failed(exchanges(marks), lambda found: len(found) <= room)
    assert turns(kept) == left


def test_a_window_keeps_the_last_and_the_best() -> None:
    rule = open_context("window:2")
    assert turns(rule(exchanges("vooof"), lambda found: True)) == [0, 3, 4]
    assert turns(rule(exchanges("ooooo"), lambda found: len(found) <= 1)) == [4]
    assert turns(open_context("none")(exchanges("fff"), lambda found: False)) == [0, 1, 2]


@pytest.mark.parametrize("name", ["window", "window:0", "window:-1", "evict", ""])
def test_an_unknown_rule_is_told(name: str) -> None:
    with pytest.raises(UsageError, match="window:K"):
        open_context(name)


def code(text: str) -> str:
    return f"<think>next</think>\n```python\n{text}\n```"


def start(folder: Path, sandbox: Sandbox, **options) -> MLEEnv:
    task = build_task(folder / "c", ANSWERS, classes=("0", "1"))
    journal = Journal(folder / "journal.jsonl")
    config = EnvSection(**options)
    return MLEEnv(Workbench(task, sandbox, config, journal=journal), count=estimate_tokens)


def test_fr42_the_task_stays_and_whole_exchanges_go(sandbox: Sandbox, tmp_path: Path) -> None:
    env = start(tmp_path, sandbox, context_tokens=2000)
    opening = env.observe()
    env.step(code(WRITE))
    for i in range(9):
        env.step(code(f"# try {i}\nraise ValueError('x' * 900)"))
        seen = env.observe()
        assert estimate_tokens(seen) <= 2000, "the note on what was left out included"
        assert seen[0] == opening[0]
        assert seen[1].content.startswith(opening[1].content)
        assert [m.role for m in seen[2:]] == ["assistant", "user"] * (len(seen) // 2 - 1)
        assert f"# try {i}\n" in seen[-2].content
        assert WRITE in seen[2].content, "the program that left a valid submission stays"
    env.step("<think>done</think>\n<submit/>")
    gone = [turn.evicted for turn in env.workbench.turns]
    left_out = [index for one in gone for index in one]
    assert left_out == sorted(set(left_out)), "each once, oldest first"
    assert left_out
    assert 0 not in left_out
    assert f"({len(left_out)} earlier" in env.observe()[1].content
    assert env.close().grade.status == "ok"
    env.workbench.journal.close()
    events = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [i for e in events if e["event"] == "evict" for i in e["turns"]] == left_out


def test_what_cannot_fit_ends_the_episode(sandbox: Sandbox, tmp_path: Path) -> None:
    env = start(tmp_path, sandbox, context_tokens=1000, observation_chars=4000)
    assert env.step(code("print('word ' * 800)")) is None
    assert env.close().stop_reason == "context_limit"
    env.workbench.journal.close()


class Forgetful:
    def complete(self, messages) -> Completion:
        raise ContextError("too long")


def test_a_model_that_cannot_read_so_much_has_failed(sandbox: Sandbox, tmp_path: Path) -> None:
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"))
    outcome = react(Workbench(task, sandbox), Forgetful())
    assert (outcome.stop_reason, outcome.error.type) == ("model_error", "ContextError")


def test_without_a_count_nothing_is_left_out(sandbox: Sandbox, tmp_path: Path) -> None:
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"))
    env = MLEEnv(Workbench(task, sandbox, EnvSection(context_tokens=256)))
    for _ in range(3):
        env.step(code("raise ValueError('x' * 900)"))
    assert len(env.observe()) == 8
    env.stop("max_turns")
    env.close()


def test_a_compact_prompt_is_short(sandbox: Sandbox, corpus, tmp_path: Path) -> None:
    for task in corpus:
        env = MLEEnv(Workbench(task, sandbox, EnvSection(prompt="compact")))
        seen = env.observe()
        assert estimate_tokens(seen) <= 256
        text = seen[0].content + seen[1].content
        schema = task.card.submission
        for name in (schema.id_column, *(c.name for c in schema.columns), task.card.metric.name):
            assert name in text
        env.stop("max_turns")
        env.close()
