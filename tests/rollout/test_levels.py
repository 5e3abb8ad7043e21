"""Policies of a known strength: a level is a rung of each task, and win rates find the order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from build import build_task

from sandmle.errors import UsageError
from sandmle.factory.pipeline import generate
from sandmle.rollout.scripts import level_rung
from sandmle.tasks.folder import Task
from sandmle.types import Rung

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "win_rates.py"
ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
# by the pool: linear, dummy, tuned, reference, forest, kernel; the hidden rows say otherwise
POOL = {"dummy": 0.2, "linear": 0.1, "forest": 0.6, "kernel": 0.7, "tuned": 0.2, "reference": 0.5}


def ladder(folder: Path, metric: str = "accuracy") -> Task:
    rungs = [
        Rung(name=name, kind="generic", test=n / 10, pool=pool)
        for n, (name, pool) in enumerate(POOL.items())
    ]
    rungs.append(Rung(name="measured", kind="generic", test=0.9, pool=0.9))  # without a script
    scripts = {f"{10 * n:02d}-{name}": "pass" for n, name in enumerate(POOL)}
    return build_task(
        folder, ANSWERS, metric, ("0", "1") if metric == "accuracy" else (), ladder=rungs,
        solutions=scripts,
    )  # fmt: skip


def test_levels_are_spread_over_the_rungs_from_the_weakest_on(tmp_path: Path) -> None:
    task = ladder(tmp_path)
    names = ["linear", "dummy", "tuned", "reference", "forest", "kernel"]
    assert [level_rung(task, k, 6) for k in range(1, 7)] == names
    assert [level_rung(task, k, 2) for k in (1, 2)] == ["linear", "kernel"]
    # places 0, 1.25, 2.5, 3.75 and 5
    assert [level_rung(task, k, 5) for k in range(1, 6)] == [
        "linear", "dummy", "tuned", "forest", "kernel",
    ]  # fmt: skip


def test_less_is_better_where_it_is(tmp_path: Path) -> None:
    task = ladder(tmp_path, "rmse")
    assert [level_rung(task, k, 2) for k in (1, 2)] == ["kernel", "linear"]


def test_without_a_pool_the_hidden_rows_must_do(tmp_path: Path) -> None:
    rungs = [Rung(name="good", kind="reference", test=0.9), Rung(name="bad", kind="dummy", test=0)]
    scripts = {"00-good": "pass", "10-bad": "pass"}
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"), ladder=rungs, solutions=scripts)
    assert [level_rung(task, k, 2) for k in (1, 2)] == ["bad", "good"]


@pytest.mark.parametrize(
    ("level", "levels", "message"),
    [
        (0, 5, "no level 0 of 5"),
        (6, 5, "no level 6 of 5"),
        (1, 1, "no level 1 of 1"),
        (2, 7, "has 6 rungs, not enough for 7"),
    ],
)
def test_a_level_that_is_none_is_refused(
    tmp_path: Path, level: int, levels: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        level_rung(ladder(tmp_path), level, levels)


@pytest.mark.slow
def test_win_rates_of_real_runs_find_the_order(tmp_path: Path) -> None:
    """Six tasks, five levels, thirty programs in the sandbox."""
    generate(tmp_path / "c", 6, seed=4)
    command = [sys.executable, str(BENCHMARK), str(tmp_path / "c"), str(tmp_path / "out")]
    subprocess.run([*command, "--tasks", "6"], check=True, capture_output=True)
    found = json.loads((tmp_path / "out" / "win_rates.json").read_text())
    assert found["tasks"] == 6
    assert found["failed"] == 0
    assert found["kendall_tau"]["estimate"] >= 0.8
    assert found["overall"][4] == pytest.approx(1.0, abs=0.1), "a reference beats what is generic"
    low = found["overall"][0]
    assert low == min(found["overall"])
    more = subprocess.run([*command, "--tasks", "7"], capture_output=True, text=True, check=False)
    assert (more.returncode, more.stderr) == (
        1,
        f"{tmp_path / 'c'}: has 6 tasks, not 7; give --tasks\n",
    )
