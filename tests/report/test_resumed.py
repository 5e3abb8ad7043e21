"""A run that was killed and resumed gives the same tables and figures as one that was not."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from build import build_task

from sandmle.report.paper import write_report
from sandmle.report.runs import is_complete, read_run

ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
EPISODES = 12


def rollout(tasks: Path, out: Path) -> subprocess.Popen[bytes]:
    """Begin, or go on with, a run in a process of its own."""
    command = [
        *(sys.executable, "-m", "sandmle.cli.app", "rollout", str(tasks), "--out", str(out)),
        *("--group", "4", "--concurrency", "1", "--set", "sandbox.preload=none"),
    ]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def finished(out: Path) -> int:
    path = out / "trajectories.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def test_killed_and_resumed_runs_give_the_same_tables(tmp_path: Path) -> None:
    rungs = {"00-dummy": ANSWERS.replace("1", "0"), "20-linear": ANSWERS, "90-reference": "id\n"}
    for name in ("one", "two", "three"):
        build_task(
            tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=name,
            solutions={
                rung: f"import time\ntime.sleep(0.4)\nopen('submission.csv', 'w').write({text!r})"
                for rung, text in rungs.items()
            },
        )  # fmt: skip
    whole, cut = tmp_path / "whole" / "run", tmp_path / "cut" / "run"
    assert rollout(tmp_path / "c", whole).wait() == 0
    process = rollout(tmp_path / "c", cut)
    while finished(cut) < 2:
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 2 <= finished(cut) < EPISODES
    assert not is_complete(read_run(cut))
    write_report([cut], tmp_path / "early")
    assert "Incomplete: run" in (tmp_path / "early" / "table1.md").read_text()

    assert rollout(tmp_path / "c", cut).wait() == 0
    assert finished(cut) == EPISODES
    for root in (whole, cut):
        write_report([root], root.parent / "report")
    files = {path.name for path in (whole.parent / "report").iterdir()}
    assert files == {path.name for path in (cut.parent / "report").iterdir()}
    assert {"table1.md", "tasks.tex", "episodes.md", "figure3.svg", "figure7.svg"} <= files
    timed = {"figure6.svg", "figure6.pdf", "costs.md", "costs.tex"}  # seconds of executions
    for name in files - timed:
        first, second = ((root.parent / "report" / name).read_bytes() for root in (whole, cut))
        assert first == second, name
