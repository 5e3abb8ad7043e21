"""Rollouts of scripted policies with real programs, graded for real."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from build import build_task

from sandmle.config import Config, PolicySection, load_config
from sandmle.errors import ModelError, TaskError, UsageError
from sandmle.files import lock
from sandmle.llm.base import Completion
from sandmle.llm.scripted import Scripted
from sandmle.rollout.folder import RunFolder
from sandmle.rollout.policies import POLICIES, open_policy
from sandmle.rollout.record import episode_seed
from sandmle.rollout.runner import prepare, run_rollout
from sandmle.tasks.corpus import open_corpus
from sandmle.types import Trajectory

ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
WRITE = "open('submission.csv', 'w').write({!r})\n"
SCRIPTS = {
    "00-dummy": WRITE.format("id,label\na,1\nb,1\nc,0\nd,0\n"),
    "90-reference": WRITE.format(ANSWERS),
}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A corpus of two hand-made tasks with a ladder of two rungs."""
    for name in ("one", "two"):
        build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=name, solutions=SCRIPTS)
    return tmp_path / "c"


def config(tasks: Path, *overrides: str) -> Config:
    return load_config(None, [f"corpus.path='{tasks}'", "sandbox.preload=none", *overrides])


def rewards(out: Path) -> dict[str, float | None]:
    return {t.id: t.reward.total if t.reward else None for t in RunFolder(out).trajectories()}


def test_a_group_climbs_the_ladder(tasks: Path, tmp_path: Path) -> None:
    seen = []
    summary = run_rollout(
        config(tasks, "group=3"),
        tmp_path / "run",
        "command",
        lambda t, i, n: seen.append((t.id, i, n)),
    )
    # half right: valid and above median and bronze; all right: everything
    assert rewards(tmp_path / "run") == {
        "one.0": 0.7, "one.1": 1.0, "one.2": 0.7, "two.0": 0.7, "two.1": 1.0, "two.2": 0.7,
    }  # fmt: skip
    assert summary["complete"]
    assert summary["rates"]["gold"]["mean"] == pytest.approx(1 / 3)
    assert summary["rates"]["any_medal"]["mean"] == 1.0
    assert summary["reward"]["mean"] == pytest.approx(0.8)
    assert sorted(i for _, i, _ in seen) == [1, 2, 3, 4, 5, 6]


def test_the_run_folder_holds_what_it_promises(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_rollout(config(tasks, "group=2"), out, "sandmle rollout ...")
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["command"] == "sandmle rollout ..."
    assert manifest["corpus_hash"] == open_corpus(tasks).root_hash
    assert load_config(out / "config.toml") == config(tasks, "group=2")
    assert manifest["config"]["corpus"]["path"] == str(tasks)
    assert (out / "submissions" / "one.1.csv").read_text() == ANSWERS
    journal = (out / "journal" / "one.1.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in journal]
    assert [event["event"] for event in events] == [
        "start", "exec", "hidden_grade", "turn", "turn", "end",
    ]  # fmt: skip
    line = (out / "trajectories.jsonl").read_text().splitlines()[0]
    trajectory = Trajectory.model_validate_json(line)
    assert trajectory.isolation.fs_hidden
    assert trajectory.feedback == "validity"
    assert trajectory.versions["sandmle"]
    assert json.loads((out / "summary.json").read_text())["expected"] == 4


def test_the_same_command_does_nothing_twice(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run_rollout(config(tasks, "group=2"), out)
    lines = (out / "trajectories.jsonl").read_bytes()
    again = run_rollout(config(tasks, "group=2", "concurrency=1"), out)
    assert (out / "trajectories.jsonl").read_bytes() == lines
    assert again == first


def test_a_torn_line_is_played_again(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_rollout(config(tasks, "group=2"), out)
    expected = rewards(out)
    path = out / "trajectories.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    run_rollout(config(tasks, "group=2"), out)
    assert rewards(out) == expected
    assert len(path.read_text().splitlines()) == 4


def start(tasks: Path, out: Path, group: int) -> subprocess.Popen[bytes]:
    """Begin or go on with a run in a process of its own."""
    code = (
        "from pathlib import Path\nfrom sandmle import load_config, run_rollout\n"
        "sets = ['sandbox.preload=none', 'concurrency=3', 'group=" + f"{group}']\n"
        f"config = load_config(None, [\"corpus.path='{tasks}'\", *sets])\n"
        f"run_rollout(config, Path({str(out)!r}))"
    )
    return subprocess.Popen([sys.executable, "-c", code])


def finished(out: Path) -> int:
    path = out / "trajectories.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def test_kill_9_and_resume(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(tasks, out, 6)
    while finished(out) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run_rollout(config(tasks, "group=6", "sandbox.workers=1"), out)
    assert finished(out) == 12, "every episode once"
    assert sorted(set(rewards(out).values())) == [0.7, 1.0]


@pytest.mark.slow
def test_kill_9_at_twenty_random_moments(tmp_path: Path) -> None:
    """64 episodes, killed 20 times on the way: each is there once, with its reward."""
    slow = {name: f"import time\ntime.sleep(0.2)\n{code}" for name, code in SCRIPTS.items()}
    for number in range(8):
        task_id = f"t{number}"
        build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=task_id, solutions=slow)
    whole, out = tmp_path / "whole", tmp_path / "run"
    run_rollout(config(tmp_path / "c", "group=8"), whole)
    rng = random.Random(0)
    kills = 0
    while kills < 20 and finished(out) < 62:
        process = start(tmp_path / "c", out, 8)
        goal = finished(out) + rng.choice((0, 0, 0, 1, 2))
        while process.poll() is None and (finished(out) < goal or not (out / "run.json").exists()):
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.3))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills == 20
    summary = run_rollout(config(tmp_path / "c", "group=8"), out)
    assert summary["complete"]
    assert finished(out) == len(rewards(out)) == 64, "every episode once"
    assert rewards(out) == rewards(whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("group=3", "another group"),
        ("env.max_turns=5", "another env"),
        ("seed=1", "another seed"),
        ("sandbox.limits.wall_s=5", "another sandbox"),
    ],
)
def test_another_run_is_not_mixed_in(
    tasks: Path, tmp_path: Path, change: str, message: str
) -> None:
    out = tmp_path / "run"
    run_rollout(config(tasks, "corpus.limit=1"), out)
    with pytest.raises(UsageError, match=message):
        run_rollout(config(tasks, "corpus.limit=1", change), out)


def test_other_tasks_are_not_mixed_in(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_rollout(config(tasks, "corpus.limit=1", "group=1"), out)
    with pytest.raises(UsageError, match="other tasks"):
        run_rollout(config(tasks, "group=1"), out)


def test_a_foreign_folder_is_left_alone(tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds no run"):
        run_rollout(config(tasks), tmp_path / "run")
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("policy.name=ladder", "write it as SORT:NAME"),
        ("policy.name=scripted:referenz", "no script 'referenz'"),
        ("policy.name=scipted:nop", "did you mean 'scripted'"),
        ("env.scaffold=reakt", "did you mean 'react'"),
        ("sandbox.backend=cool", "did you mean 'cold'"),
        ("reward.preset=papers", "did you mean 'paper'"),
        ("reward.preset=continuous", "needs a floor"),
        ("corpus.split=test", "no split 'test'"),
    ],
)
def test_wrong_names_are_told_before_any_work(
    tasks: Path, tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run_rollout(config(tasks, override), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_start_that_was_killed_is_started_again(tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "journal").mkdir(parents=True)
    (tmp_path / "run" / "config.toml").write_text("half")
    assert run_rollout(config(tasks, "group=1"), tmp_path / "run")["complete"]


def test_no_corpus_is_told() -> None:
    with pytest.raises(UsageError, match="no corpus given"):
        prepare(Config())


def test_a_broken_task_does_not_stop_the_others(tasks: Path, tmp_path: Path) -> None:
    (tasks / "one" / "task.json").write_text("{")
    summary = run_rollout(config(tasks, "group=2"), tmp_path / "run")
    assert summary["trajectories"] == summary["expected"] == 2
    assert summary["complete"] is False, "a task that is missing is not hidden"
    assert "task.json" in summary["broken"][0]


def test_a_changed_file_is_our_failure_not_the_agents(tasks: Path, tmp_path: Path) -> None:
    (tasks / "one" / "public" / "train.csv").write_text("changed")
    summary = run_rollout(config(tasks, "group=1"), tmp_path / "run")
    by_id = {t.id: t for t in RunFolder(tmp_path / "run").trajectories()}
    assert by_id["one.0"].stop_reason == "infra_error"
    assert "public/train.csv: changed" in by_id["one.0"].error.message
    assert by_id["two.0"].stop_reason == "submitted"
    assert not summary["complete"]


def test_a_missing_answer_file_stops_its_task_only(tasks: Path, tmp_path: Path) -> None:
    (tasks / "one" / "private" / "answer.csv").unlink()
    run_rollout(config(tasks, "group=1"), tmp_path / "run")
    reasons = {t.id: t.stop_reason for t in RunFolder(tmp_path / "run").trajectories()}
    assert reasons == {"one.0": "infra_error", "two.0": "submitted"}


def test_two_writers_are_one_too_many(tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with lock(tmp_path / "run"), pytest.raises(UsageError, match="another process is writing"):
        run_rollout(config(tasks, "group=1"), tmp_path / "run")


@pytest.mark.parametrize("file", ["a", "a/run", "a/run/journal", "a/run/.lock/x"])
def test_a_place_that_cannot_be_written_is_told(tasks: Path, tmp_path: Path, file: str) -> None:
    """A file lies where a folder is wanted, or a folder where the lock is wanted."""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("x")
    with pytest.raises(UsageError, match=r"run: cannot be written \(\w"):
        run_rollout(config(tasks, "group=1"), tmp_path / "a" / "run")


def test_a_run_goes_on_from_anywhere(tasks: Path, tmp_path: Path, monkeypatch) -> None:
    """The saved configuration has the corpus as an absolute path; where it lies may change."""
    monkeypatch.chdir(tasks.parent)
    relative = load_config(None, ["corpus.path=c", "group=1"])
    run_rollout(relative, tmp_path / "run")
    monkeypatch.chdir("/")
    saved = load_config(tmp_path / "run" / "config.toml")
    assert run_rollout(saved, tmp_path / "run")["complete"]
    shutil.copytree(tasks, tmp_path / "moved")
    moved = config(tmp_path / "moved", "group=1")
    assert run_rollout(moved, tmp_path / "run")["trajectories"] == 2


def test_a_run_without_its_folders_can_go_on(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_rollout(config(tasks, "group=1"), out)
    shutil.rmtree(out / "journal")
    shutil.rmtree(out / "submissions")
    path = out / "trajectories.jsonl"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert run_rollout(config(tasks, "group=1"), out)["complete"]


def running(marker: str) -> list[Path]:
    """Processes whose command line holds a marker."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if marker.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(folder)
    return found


def test_an_interrupt_ends_what_is_running(tmp_path: Path) -> None:
    marker = f"602.{os.getpid()}"
    slow = {"90-slow": f"import subprocess\nsubprocess.run(['sleep', '{marker}'])\n"}
    build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), solutions=slow)
    out = tmp_path / "run"
    # whoever runs the tests in the background has interrupts ignored, and so would the command
    start = (
        "import runpy, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runpy.run_module('sandmle.cli.app', run_name='__main__')"
    )
    command = [sys.executable, "-c", start, "rollout", str(tmp_path / "c")]
    command += ["--out", str(out), "--group", "3", "--policy", "scripted:slow"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        while not running(marker):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == status
        assert "Traceback" not in errors
        assert not running(marker)
        assert not list(tmp_path.glob("sandmle-*")), "workspaces are removed"
        if number == signal.SIGINT:
            assert "the same command goes on from here" in errors


def test_a_task_that_cannot_be_played_is_recorded(tasks: Path, tmp_path: Path) -> None:
    (tasks / "one" / "public" / "train.csv").unlink()
    (tasks / "one" / "public" / "train.csv").symlink_to("../private/answer.csv")
    run_rollout(config(tasks, "group=1"), tmp_path / "run")
    by_id = {t.id: t for t in RunFolder(tmp_path / "run").trajectories()}
    assert by_id["one.0"].error.boundary == "task"
    assert by_id["one.0"].reward is None
    assert by_id["two.0"].stop_reason == "submitted"


def test_a_task_that_names_what_is_not_there_is_the_tasks_fault(
    tasks: Path, tmp_path: Path
) -> None:
    card = tasks / "one" / "task.json"
    card.write_text(card.read_text().replace('"accuracy"', '"acuracy"'))
    run_rollout(config(tasks, "group=1"), tmp_path / "run")
    by_id = {t.id: t for t in RunFolder(tmp_path / "run").trajectories()}
    assert by_id["one.0"].error.boundary == "task"
    assert "did you mean 'accuracy'" in by_id["one.0"].error.message
    assert by_id["two.0"].stop_reason == "submitted"


class Failing:
    """A policy whose model fails for member 1 of each group, as a server might."""

    name = "failing:test"

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.failure = argument

    def close(self) -> None:
        pass

    def open(self, task, seed: int, k: int):
        if k == 1:
            return Unreachable(self.failure)
        return Scripted(["<think>no</think>\n<submit/>"])


class Unreachable:
    def __init__(self, failure: str) -> None:
        self.failure = failure

    def complete(self, messages) -> Completion:
        if self.failure == "model":
            raise ModelError("HTTP 500")
        raise ZeroDivisionError("a bug of ours")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    POLICIES.names()
    monkeypatch.setitem(POLICIES._items, "failing", Failing)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("failure", "reason", "boundary"),
    [("model", "model_error", "model"), ("bug", "infra_error", "internal")],
)
def test_a_failure_is_recorded_and_its_siblings_go_on(
    tasks: Path, tmp_path: Path, failure: str, reason: str, boundary: str
) -> None:
    out = tmp_path / "run"
    summary = run_rollout(config(tasks, "group=3", f"policy.name=failing:{failure}"), out)
    by_id = {t.id: t for t in RunFolder(out).trajectories()}
    failed = by_id["one.1"]
    assert (failed.stop_reason, failed.error.boundary) == (reason, boundary)
    assert failed.reward is None
    assert (failed.mask.masked, failed.mask.why) == (True, reason)
    assert by_id["one.0"].stop_reason == by_id["one.2"].stop_reason == "submitted"
    assert not summary["complete"]
    assert summary["rates"]["valid"]["n"] == 6, "failures stay in the denominator"
    assert summary["without_failures"]["valid"]["n"] == 4
    assert len(summary["failures"]) == 2


@pytest.mark.usefixtures("failing")
def test_failed_episodes_are_played_again_on_resume(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    settings = config(tasks, "group=2", "policy.name=failing:model")
    run_rollout(settings, out)
    monkeypatch.setattr(Unreachable, "complete", lambda self, messages: Completion("<submit/>"))
    summary = run_rollout(settings, out)
    assert summary["complete"]
    assert len(RunFolder(out).trajectories()) == 4


def test_a_timeout_masks_the_trajectory_and_keeps_its_grade(tmp_path: Path) -> None:
    slow = {"90-slow": WRITE.format(ANSWERS) + "while True: pass\n"}
    build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), solutions=slow)
    settings = ["group=1", "sandbox.limits.wall_s=1", "policy.name=scripted:slow"]
    for rule, masked in (("any", True), ("never", False)):
        out = tmp_path / rule
        run_rollout(config(tmp_path / "c", *settings, f"grpo.timeout_rule={rule}"), out)
        (trajectory,) = RunFolder(out).trajectories()
        assert trajectory.grade.score == 1.0
        assert trajectory.reward.total == 1.0
        assert trajectory.mask.masked is masked
        assert trajectory.mask.why == ("execution_timeout" if masked else None)


def test_the_nop_policy_earns_its_form_and_nothing_else(tasks: Path, tmp_path: Path) -> None:
    run_rollout(config(tasks, "policy.name=scripted:nop", "group=1"), tmp_path / "run")
    assert set(rewards(tmp_path / "run").values()) == {0.1}


def test_seeds_differ_by_run_task_and_member() -> None:
    seeds = {
        episode_seed(run, task, k) for run in range(5) for task in ("0a", "0b") for k in range(5)
    }
    assert len(seeds) == 50
    assert episode_seed(0, "0a", 0) == episode_seed(0, "0a", 0)


def test_a_damaged_run_is_told(tasks: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_rollout(config(tasks, "group=1"), out)
    path = out / "trajectories.jsonl"
    path.write_text('{"id": 1}\n' + path.read_text())
    with pytest.raises(TaskError, match=r"trajectories\.jsonl, line 1: "):
        run_rollout(config(tasks, "group=1"), out)
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(TaskError, match=r"trajectories\.jsonl"):
        run_rollout(config(tasks, "group=1"), out)


def test_a_scripted_model_runs_out() -> None:
    model = Scripted(["a"])
    assert model.complete([]).text == "a"
    with pytest.raises(ModelError, match="no more replies"):
        model.complete([])
    assert open_policy(PolicySection(name="scripted:nop")).name == "scripted:nop"
