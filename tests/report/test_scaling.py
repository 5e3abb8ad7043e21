"""What more turns are worth, from prefixes and from separate runs."""

import pytest
from small import trajectory, write_run

from sandmle.report.paper import scaling_series
from sandmle.report.runs import read_run
from sandmle.report.scaling import goals_at, prefixes, separate


def test_a_prefix_counts_what_its_last_turn_left() -> None:
    # the agent writes bronze in turn 1, gold in turn 3, breaks the file in turn 4, mends it in 5
    t = trajectory("t", 0.5, turns=[None, 0.5, 0.5, 0.9, None, 0.5])
    medals = [
        next((n for n in ("gold", "silver", "bronze") if n in goals_at(t, b)), None)
        for b in range(8)
    ]
    assert medals == [None, None, "bronze", "bronze", "gold", None, "bronze", "bronze"]
    assert goals_at(t, 0) == set()
    assert "valid" not in goals_at(t, 5)


def test_a_failure_of_ours_reaches_nothing_at_any_budget() -> None:
    t = trajectory("t", "grader", turns=[0.9, 0.9])
    assert [goals_at(t, b) for b in (0, 1, 2, 9)] == [set()] * 4


def test_prefixes_stop_at_the_run_s_own_limit_and_are_named(tmp_path) -> None:
    outcomes = {"a": [0.9], "b": [0.1]}
    turns = {"a": [0.1] * 6 + [0.9], "b": [0.1]}
    run = read_run(write_run(tmp_path / "r", outcomes, turns, env={"max_turns": 20}))
    rungs = prefixes(run)
    assert [rung.budget for rung in rungs] == [0, 5, 10, 20]
    assert {rung.kind for rung in rungs} == {"prefix"}
    assert [rung.rates["any_medal"].estimate for rung in rungs] == [0, 0, 0.5, 0.5]
    assert [rung.rates["valid"].estimate for rung in rungs] == [0, 1, 1, 1]
    names = [one.name for one in scaling_series([run])]
    assert all("prefixes of one run" in name for name in names)


def test_separate_runs_are_named_and_in_their_order(tmp_path) -> None:
    runs = [
        read_run(write_run(tmp_path / f"r{n}", {"a": [score]}, env={"max_turns": n}))
        for n, score in ((10, 0.9), (5, 0.3))
    ]
    rungs = separate(runs)
    assert [(rung.budget, rung.kind) for rung in rungs] == [(5, "separate"), (10, "separate")]
    assert [rung.rates["gold"].estimate for rung in rungs] == [0.0, 1.0]
    lines = scaling_series(runs)
    assert [line.name for line in lines] == [
        "any medal (separate runs)", "above median (separate runs)",
    ]  # fmt: skip
    assert [point.y for point in lines[0].points] == [0.0, 1.0]
    assert [point.x for point in lines[0].points] == pytest.approx([5, 10])
