"""Laws that hold for every registered metric. A new metric is tested by being registered."""

import importlib.util
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from build import build_task
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.cases import Case, csv_text, make_case
from sandmle.grading.grader import Grader
from sandmle.metrics.registry import METRICS, Metric

every_metric = pytest.mark.parametrize("name", METRICS.names())
seeds, sizes = st.integers(0, 10**6), st.integers(6, 30)


def grader_for(metric: Metric, case: Case) -> Grader:
    with tempfile.TemporaryDirectory() as folder:
        return Grader(
            build_task(Path(folder), csv_text(case.answers), metric.name, schema=case.schema)
        )


def permuted(columns: dict[str, list[str]], order: np.ndarray) -> dict[str, list[str]]:
    return {name: [cells[i] for i in order] for name, cells in columns.items()}


@every_metric
@settings(max_examples=6)
@given(seed=seeds, n=sizes)
def test_laws(name: str, seed: int, n: int) -> None:
    check_laws(name, seed, n)


@pytest.mark.slow
@every_metric
@settings(max_examples=30)
@given(seed=seeds, n=sizes)
def test_laws_on_many_more_cases(name: str, seed: int, n: int) -> None:
    check_laws(name, seed, n)


def check_laws(name: str, seed: int, n: int) -> None:
    metric = METRICS.get(name)
    case = make_case(metric, seed, n)
    grader = grader_for(metric, case)

    perfect = grader.grade(csv_text(case.perfect).encode())
    assert perfect.status == "ok", perfect.reason
    assert perfect.score == pytest.approx(metric.best, abs=1e-9)

    guess = grader.grade(csv_text(case.random).encode())
    assert guess.status == "ok", guess.reason
    assert type(guess.score) is float
    assert metric.low <= guess.score <= metric.high
    worse = (
        guess.score <= perfect.score if metric.direction == "max" else guess.score >= perfect.score
    )
    assert worse

    order = np.random.default_rng(seed).permutation(n)
    turned = grader.grade(csv_text(permuted(case.random, order)).encode())
    assert turned == guess, "rows moved with their ids must not change the score"

    moved = misassigned(case)
    assert grader.grade(csv_text(moved).encode()).score != pytest.approx(perfect.score, abs=1e-9)


def misassigned(case: Case) -> dict[str, list[str]]:
    """The perfect submission with the ids of two rows swapped that do not belong together."""
    ids = list(case.perfect["id"])
    rows = list(zip(*[case.perfect[c.name] for c in case.schema.columns], strict=True))
    query = case.answers.get("query", [""] * len(ids))
    first, second = next(
        (i, j)
        for i in range(len(ids))
        for j in range(i)
        if rows[i] != rows[j] and query[i] == query[j]
    )
    ids[first], ids[second] = ids[second], ids[first]
    return {**case.perfect, "id": ids}


@every_metric
def test_evaluator_gives_the_same_score(name: str, tmp_path: Path) -> None:
    metric = METRICS.get(name)
    for seed in range(5):
        case = make_case(metric, seed, 12)
        task = build_task(
            tmp_path, csv_text(case.answers), name, schema=case.schema, task_id=f"t{seed}"
        )
        evaluator = load(task.private / "evaluator.py")
        grader = Grader(task)
        for number, columns in enumerate((case.random, case.perfect, misassigned(case))):
            path = tmp_path / f"s{seed}-{number}.csv"
            path.write_text(csv_text(columns))
            verdict = evaluator.evaluate(path)
            grade = grader.grade(path.read_bytes())
            assert verdict["score"] == grade.score
            assert verdict["is_lower_better"] == (metric.direction == "min")


def load(path: Path):
    """Import a rendered evaluator as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"evaluator_{path.parent.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@every_metric
def test_facts(name: str) -> None:
    metric = METRICS.get(name)
    assert metric.low < metric.high
    assert math.isfinite(metric.best)
    assert metric.formula
    assert metric.degenerate
    assert metric.function.__doc__


def test_a_constant_prediction_has_a_finite_score() -> None:
    for metric in METRICS:
        case = make_case(metric, 3, 12)
        constant = {n: [cells[0]] * 12 for n, cells in case.random.items() if n != "id"}
        grade = grader_for(metric, case).grade(
            csv_text({"id": case.random["id"], **constant}).encode()
        )
        assert grade.status == "ok", (metric.name, grade.reason)
        assert math.isfinite(grade.score)
