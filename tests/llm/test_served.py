"""Rollouts of a model behind a server that fails, with real programs; recorded and replayed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from build import build_task
from llm.faulty_server import FaultyServer, Request, chat, serving

from sandmle.config import Config, PolicySection, load_config
from sandmle.errors import UsageError
from sandmle.llm.replay import Keys, Recorder, Store
from sandmle.llm.scripted import Scripted
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.policies import open_policy
from sandmle.rollout.runner import prepare, run_rollout
from sandmle.types import Trajectory

KEY = "sk-test-0123456789abcdef"
ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
HALF = "id,label\na,1\nb,1\nc,0\nd,0\n"


def play(request: Request) -> str:
    """Write a submission, a right one for every other seed, look at it, submit."""
    said = sum(message["role"] == "assistant" for message in request["messages"])
    content = ANSWERS if request["seed"] % 2 else HALF
    if said == 0:
        code = f"print(open('submission.csv', 'w').write({content!r}))"
    elif said == 1:
        code = "print(open('submission.csv').read())"
    else:
        return "<think>\ndone\n</think>\n<submit/>"
    return f"<think>\nturn {said}\n</think>\n```python\n{code}\n```"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A corpus of two hand-made tasks."""
    for name in ("one", "two"):
        build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=name)
    return tmp_path / "c"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    with serving(say=play) as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.delenv("SANDMLE_RECORD", raising=False)
        yield made


def config(tasks: Path, *overrides: str) -> Config:
    settings = ["sandbox.preload=none", "policy.name=openai:m", "policy.retries=0", "group=3"]
    given = {override.partition("=")[0] for override in overrides}
    settings = [setting for setting in settings if setting.partition("=")[0] not in given]
    return load_config(None, [f"corpus.path='{tasks}'", *settings, *overrides])


def trajectories(out: Path) -> dict[str, Trajectory]:
    return {t.id: t for t in RunFolder(out).trajectories()}


def rewards(out: Path) -> dict[str, float | None]:
    return {t.id: t.reward.total if t.reward else None for t in RunFolder(out).trajectories()}


def completions(out: Path) -> dict[str, list[str]]:
    return {t.id: [u.completion for u in t.turns] for t in RunFolder(out).trajectories()}


def check_key_is_nowhere(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path


FAILURES = [
    ("one.0", 0, (401, f"the key {KEY} is wrong"), "HTTP 401"),
    ("one.1", 1, "context", "HTTP 400"),
    ("one.2", 2, "hang", "no whole reply within"),
    ("two.0", 1, "half", "no chat completion"),
]


def failing_for(tasks: Path, settings: Config):
    """Fail for some episodes, each at its own turn and in its own way."""
    from sandmle.rollout.record import episode_seed
    from sandmle.tasks.corpus import open_corpus

    hashes = {task.id: task.content_hash for task in open_corpus(tasks)}
    script = {
        (episode_seed(settings.seed, hashes[name[:3]], int(name[4:])), turn): behaviour
        for name, turn, behaviour, _ in FAILURES
    }

    def behave(request: Request):
        said = sum(message["role"] == "assistant" for message in request["messages"])
        return script.get((request["seed"], said), "ok")

    return behave


def test_failures_of_the_server_are_data_and_the_rest_is_played_later(
    tasks: Path, tmp_path: Path, server: FaultyServer
) -> None:
    out = tmp_path / "run"
    settings = config(tasks, "policy.timeout_s=4")
    server.behaviours = [failing_for(tasks, settings)] * 100
    summary = run_rollout(settings, out)
    assert not summary["complete"]
    assert summary["trajectories"] == 6
    played = trajectories(out)
    for name, turn, _, message in FAILURES:
        failed = played.pop(name)
        assert (failed.stop_reason, failed.error.boundary) == ("model_error", "model")
        assert message in failed.error.message
        assert len(failed.turns) == turn
        assert failed.reward is None
        assert failed.mask.masked
    assert {t.stop_reason for t in played.values()} == {"submitted"}
    assert all(t.reward.total in {0.7, 1.0} for t in played.values())
    assert trajectories(out)["one.1"].error.type == "ContextError"
    check_key_is_nowhere(out)

    server.behaviours, before = [], len(server.requests)
    summary = run_rollout(config(tasks, "policy.timeout_s=60"), out)
    assert summary["complete"]
    assert len(server.requests) - before == 3 * len(FAILURES), "only the rest is played"
    assert {t.stop_reason for t in trajectories(out).values()} == {"submitted"}
    assert {t.policy for t in trajectories(out).values()} == {"openai:m"}
    check_key_is_nowhere(out)


def test_what_passes_by_itself_leaves_no_trace(
    tasks: Path, tmp_path: Path, server: FaultyServer
) -> None:
    server.behaviours = ["busy", "half", "closed"]
    settings = ["policy.retries=3", "policy.usd_per_million=[2.0, 10.0]"]
    assert run_rollout(config(tasks, *settings), tmp_path / "run")["complete"]
    assert len(server.requests) == 6 * 3 + 3
    usages = [u.usage for t in trajectories(tmp_path / "run").values() for u in t.turns]
    assert {(u.prompt_tokens, u.completion_tokens, u.usd) for u in usages} == {(100, 10, 0.0003)}


def test_a_cap_ends_the_run_and_more_money_goes_on(
    tasks: Path, tmp_path: Path, server: FaultyServer
) -> None:
    out = tmp_path / "run"
    settings = ["concurrency=1", "policy.max_tokens=440"]
    assert not run_rollout(config(tasks, *settings), out)["complete"]
    assert len(server.requests) == 4, "110 tokens each"
    reasons = [t.stop_reason for t in trajectories(out).values()]
    assert sorted(reasons) == ["model_error"] * 5 + ["submitted"]
    failed = [t.error.message for t in trajectories(out).values() if t.error]
    assert all("raise policy.max_tokens and run the same command" in line for line in failed)
    assert run_rollout(config(tasks, "policy.max_tokens=100000"), out)["complete"]


def test_a_reply_that_is_cut_off_ends_the_episode(
    tasks: Path, tmp_path: Path, server: FaultyServer
) -> None:
    server.behaviours = [chat("<think>for ever", finish="length")]
    run_rollout(config(tasks, "group=1", "concurrency=1"), tmp_path / "run")
    reasons = sorted(t.stop_reason for t in trajectories(tmp_path / "run").values())
    assert reasons == ["length", "submitted"]


def test_a_recorded_run_is_played_again_without_a_server(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "replies.db"
    with serving("empty", (500, "x"), say=play) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("SANDMLE_RECORD", str(file))
        settings = config(tasks, "policy.retries=3", "policy.usd_per_million=[1.0, 1.0]")
        assert run_rollout(settings, tmp_path / "first")["complete"]
        asked = len(server.requests)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "SANDMLE_RECORD"):
        monkeypatch.delenv(name)
    again = config(tasks, f"policy.name='replay:{file}'")
    assert run_rollout(again, tmp_path / "second")["complete"]
    assert len(server.requests) == asked
    assert rewards(tmp_path / "second") == rewards(tmp_path / "first")
    assert len(set(rewards(tmp_path / "first").values())) == 2, "the seeds matter"
    assert completions(tmp_path / "second") == completions(tmp_path / "first")
    usages = [[u.usage for u in t.turns] for t in trajectories(tmp_path / "second").values()]
    assert usages == [[u.usage for u in t.turns] for t in trajectories(tmp_path / "first").values()]
    assert KEY.encode() not in file.read_bytes()

    other = config(tasks, f"policy.name='replay:{file}'", "seed=1", "group=1")
    assert not run_rollout(other, tmp_path / "third")["complete"]
    assert {t.stop_reason for t in trajectories(tmp_path / "third").values()} == {"model_error"}


def test_an_interrupt_does_not_wait_for_the_server(
    tasks: Path, tmp_path: Path, server: FaultyServer
) -> None:
    server.behaviours = ["hang"] * 100
    # whoever runs the tests in the background has interrupts ignored, and so would the command
    start = (
        "import runpy, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runpy.run_module('sandmle.cli.app', run_name='__main__')"
    )
    command = [sys.executable, "-c", start, "rollout", str(tasks), "--policy", "openai:m"]
    command += ["--out", str(tmp_path / "run"), "--set", "policy.timeout_s=3600"]
    command += ["--set", "sandbox.preload=none"]
    process = subprocess.Popen(command, env={**os.environ}, stderr=subprocess.PIPE, text=True)
    while not server.requests:
        assert process.poll() is None
        server.released.wait(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "the same command goes on from here" in errors


def test_nothing_is_asked_before_the_first_episode(tasks: Path, server: FaultyServer) -> None:
    prepare(config(tasks)).policy.close()
    assert server.requests == []


def test_a_wrong_setup_is_told_before_the_run(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL is no http or https URL"):
        run_rollout(config(tasks), tmp_path / "run")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1")
    with pytest.raises(UsageError, match=r"policy\.usd_per_million"):
        run_rollout(config(tasks, "policy.max_usd=1"), tmp_path / "run")
    monkeypatch.setenv("SANDMLE_RECORD", str(tmp_path))
    with pytest.raises(UsageError, match="cannot be opened as a file of replies"):
        run_rollout(config(tasks), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_which_model_of_a_file_is_played(tmp_path: Path) -> None:
    file = tmp_path / "a#b.db"
    section = PolicySection(name=f"replay:{file}")
    with pytest.raises(UsageError, match="no such file"):
        open_policy(section)
    with closing(Store(file, create=True)) as store:
        with pytest.raises(UsageError, match="has no replies yet"):
            open_policy(section)
        for model in ("org/x#1", "y"):
            Recorder(Scripted(["a"]), store, Keys(model, section, 0)).complete([])
    with pytest.raises(UsageError, match=r"a#b\.db#MODEL with one of org/x#1, y$"):
        open_policy(section)
    for model, code in (("y", None), ("org/x#1", None), ("z", "models: org/x#1, y")):
        named = PolicySection(name=f"replay:{file}#{model}")
        if code is None:
            policy = open_policy(named)
            assert policy.open(None, seed=0, k=0).complete([]).text == "a"
            policy.close()
            policy.close()
        else:
            with pytest.raises(UsageError, match=code):
                open_policy(named)
