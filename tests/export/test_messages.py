"""What is exported for fine-tuning is what the policy saw, message by message."""

import json
from pathlib import Path

import pytest
from build import build_task

from sandmle.config import EnvSection, load_config
from sandmle.env.react import MLEEnv
from sandmle.env.workbench import Workbench
from sandmle.errors import TaskError, UsageError
from sandmle.export.messages import export_messages
from sandmle.llm.base import estimate_tokens
from sandmle.rollout.conversations import segments
from sandmle.rollout.runner import run_rollout
from sandmle.sandbox.base import Sandbox

ANSWERS = "id,label\na,1\nb,0\n"
WRITE = "open('submission.csv', 'w').write({!r})\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    solutions = {
        "00-dummy": WRITE.format("id,label\na,0\nb,1\n"),
        "90-reference": WRITE.format(ANSWERS),
    }
    build_task(folder / "c", ANSWERS, classes=("0", "1"), solutions=solutions)
    run_rollout(load_config(None, [f"corpus.path='{folder / 'c'}'", "group=2"]), folder / "run")
    return folder / "run"


def test_a_run_is_exported(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "messages.jsonl"
    assert export_messages(run, out) == 2
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["small-task.0", "small-task.1"]
    for row in rows:
        roles = [message["role"] for message in row["messages"]]
        assert roles == ["system", "user", "assistant", "user", "assistant"]
        assert row["trained"] == [2, 4]
        assert row["messages"][4]["content"].endswith("<submit/>")
    assert rows[0]["reward"] < rows[1]["reward"]
    assert export_messages(run, out, min_reward=rows[1]["reward"]) == 1
    assert json.loads(out.read_text())["id"] == "small-task.1"


def test_segments_are_what_the_policy_saw(sandbox: Sandbox, tmp_path: Path) -> None:
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"))
    config = EnvSection(context_tokens=1500)
    env = MLEEnv(Workbench(task, sandbox, config), count=estimate_tokens)
    opening = env.observe()
    seen = []
    while not env.done:
        seen.append(env.observe())
        code = WRITE.format(ANSWERS) if len(seen) == 3 else f"raise ValueError('{len(seen)}' * 800)"
        last = "<submit/>" if len(seen) == 9 else f"```python\n{code}\n```"
        env.step(f"<think>{len(seen)}</think>\n{last}")
    turns = env.close().turns
    found = list(segments(opening, turns))
    assert len(found) == 1 + sum(bool(turn.evicted) for turn in turns) > 2
    replies = [(s.messages[:place], s.messages[place]) for s in found for place in s.trained]
    assert [shown for shown, _ in replies] == seen
    assert [reply.content for _, reply in replies] == [turn.completion for turn in turns]


def test_what_is_no_run_is_told(tmp_path: Path, run: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        export_messages(tmp_path, tmp_path / "x.jsonl")
    with pytest.raises(UsageError, match="cannot be written"):
        export_messages(run, tmp_path / "nothing" / "x.jsonl")


def test_a_journal_without_its_start_is_named(run: Path, tmp_path: Path) -> None:
    journal = run / "journal" / "small-task.0.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(b'{"event": "exec"}\n')
    with pytest.raises(TaskError, match=r"small-task\.0\.jsonl"):
        export_messages(run, tmp_path / "x.jsonl")
    journal.write_bytes(whole)
    assert not (tmp_path / "x.jsonl").exists()
