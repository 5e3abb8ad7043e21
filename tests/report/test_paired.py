"""Comparisons of runs: differences, win rates, strata; and nothing claimed without an interval."""

import numpy as np
import pytest
from small import write_run

from sandmle.report.paired import (
    as_json,
    compare,
    order_agreement,
    overall,
    stratum,
    verdict,
    win_interval,
    win_matrix,
)
from sandmle.report.runs import read_run
from sandmle.stats import Interval, kendall_tau
from sandmle.types import MetricRef, Milestones, Rung, SubmissionSchema, TaskCard

TASKS = [f"t{n:02d}" for n in range(64)]


def run(tmp_path, name, outcomes, **options):
    return read_run(write_run(tmp_path / name, outcomes, **options))


def test_win_rates_by_hand(tmp_path) -> None:
    # t00: won; t01: tied; t02: both without a score, a tie; t03: no score loses; t04: our failure
    # loses like one
    a = run(tmp_path, "a", {"t00": [0.9], "t01": [0.5], "t02": [None], "t03": [0.1], "t04": [0.3]})
    b = run(
        tmp_path, "b", {"t00": [0.8], "t01": [0.5], "t02": [None], "t03": [None], "t04": ["infra"]}
    )
    rate = win_interval(a, b)
    assert rate.estimate == pytest.approx((1 + 0.5 + 0.5 + 1 + 1) / 5)
    assert rate.units == 5
    assert win_interval(b, a).estimate == pytest.approx(1 - 0.8)


def test_every_episode_of_one_against_every_one_of_the_other(tmp_path) -> None:
    a = run(tmp_path, "a", {"t00": [0.9, 0.1]})
    b = run(tmp_path, "b", {"t00": [0.5, 0.1, 0.0]})
    # 0.9 wins three; 0.1 loses, ties, wins
    assert win_interval(a, b).estimate == pytest.approx((3 + 0 + 0.5 + 1) / 6)


def test_five_rungs_on_64_tasks_come_out_in_their_order(tmp_path) -> None:
    rng = np.random.default_rng(0)
    runs = [
        run(
            tmp_path,
            f"rung{level}",
            {task: [float(np.clip(0.15 * level + rng.normal(0, 0.15), 0, 1))] for task in TASKS},
        )
        for level in range(5)
    ]
    matrix = win_matrix(runs)
    assert all(matrix[i][i] is None for i in range(5))
    for i in range(5):
        for j in range(i):
            assert matrix[i][j] + matrix[j][i] == pytest.approx(1)
    rates = overall(matrix)
    assert kendall_tau(rates, list(range(5))) >= 0.8
    lowest, highest = win_interval(runs[0], runs[4]), win_interval(runs[4], runs[0])
    assert lowest.high < 0.5 < highest.low
    agreement = order_agreement(runs)
    assert agreement.estimate == kendall_tau(rates, list(range(5)))
    assert 0.8 <= agreement.low <= agreement.high == pytest.approx(1)
    assert agreement.units == 64


def test_order_agrees_over_the_tasks_that_all_have_played(tmp_path) -> None:
    # by t00 and t01 the second is best (2/2), then the third (1/2), and the first is last
    a = run(tmp_path, "a", {"t00": [0.1], "t01": [0.1], "t02": [0.9]})
    b = run(tmp_path, "b", {"t00": [0.9], "t01": [0.9]})
    c = run(tmp_path, "c", {"t00": [0.5], "t01": [0.5], "t03": [0.9]})
    assert order_agreement([a, c, b]) == pytest.approx((1.0, 1.0, 1.0, 2, 2))
    assert order_agreement([a, b, c]).estimate == pytest.approx(1 / 3)
    alone = run(tmp_path, "d", {"t09": [0.5]})
    assert order_agreement([a, b, alone]) == (None, None, None, 0, 0)


def test_one_task_more_is_no_improvement(tmp_path) -> None:
    # FR-54: a medal rate on 22 tasks that moves by one task
    base = {task: [0.9 if n < 5 else 0.1] for n, task in enumerate(TASKS[:22])}
    a = run(tmp_path, "a", base)
    b = run(tmp_path, "b", {**base, "t05": [0.9]})
    found = {one.name: one for one in compare(a, b).figures}
    assert found["any_medal"].difference.estimate == pytest.approx(1 / 22)
    assert found["any_medal"].verdict == "no difference shown"


def test_a_large_difference_is_told_with_its_sign(tmp_path) -> None:
    a = run(tmp_path, "a", {task: [0.1] for task in TASKS[:20]})
    b = run(tmp_path, "b", {task: [0.9 if n % 4 else 0.1] for n, task in enumerate(TASKS[:24])})
    found = compare(a, b)
    assert (found.tasks, found.alone) == (20, 4)
    figures = {one.name: one for one in found.figures}
    assert figures["gold"].verdict == "higher"
    assert figures["gold"].difference.estimate == pytest.approx(15 / 20)
    assert figures["valid"].verdict == "no difference shown"
    assert {one.name: one.verdict for one in compare(b, a).figures}["gold"] == "lower"
    assert as_json(found)["figures"][0]["difference"]["n"] == 20


def test_failures_of_ours_stay_in_the_denominator(tmp_path) -> None:
    a = run(tmp_path, "a", {task: [0.9] for task in TASKS[:10]})
    b = run(tmp_path, "b", {task: [0.9 if n < 5 else "model"] for n, task in enumerate(TASKS[:10])})
    figures = {one.name: one for one in compare(a, b).figures}
    assert figures["any_medal"].second == 0.5


def test_few_tasks_show_nothing() -> None:
    assert verdict(Interval(0.5, 0.4, 0.6, 4, 4)) == "too few tasks to tell"
    assert verdict(Interval(0.5, 0.4, 0.6, 5, 5)) == "higher"
    assert verdict(Interval(-0.5, -0.6, -0.4, 5, 5)) == "lower"
    assert verdict(Interval(0.5, 0.0, 0.6, 5, 5)) == "no difference shown"
    assert verdict(Interval(0.5, None, None, 1, 1)) == "too few tasks to tell"


@pytest.mark.parametrize(
    ("generic", "expected"), [(0.75, "easy"), (0.5, "middle"), (0.2, "hard"), (None, "unknown")]
)
def test_strata_by_how_far_the_generic_scripts_come(tmp_path, generic, expected) -> None:
    schema = SubmissionSchema.model_validate(
        {"id_column": "id", "columns": [{"name": "y", "kind": "number"}], "n_rows": 3}
    )
    rungs = [Rung(name="dummy", kind="dummy", test=0.1)]
    if generic is not None:
        rungs.append(Rung(name="forest", kind="generic", test=generic))
    card = TaskCard(
        id="t00", title="t", modality="tabular", metric=MetricRef(name="r2"), submission=schema,
        milestones=Milestones(direction="max", median=0.3, bronze=0.5, silver=0.7, gold=1.0),
        ladder=tuple(rungs), files={},
    )  # fmt: skip
    one = run(tmp_path, "a", {"t00": [0.9]})._replace(cards={"t00": card})
    assert stratum("t00", [one]) == expected
    assert list(compare(one, one).strata) == [expected]
