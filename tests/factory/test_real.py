"""Tasks from real tables: splits, milestones from measured models, and checks that bind."""

import csv
import gzip
import json

import numpy as np
import pytest

from sandmle.errors import TaskError, UsageError
from sandmle.factory.real.build import Judge, _gate, _write_checked, from_data
from sandmle.factory.real.leaks import leak_checks
from sandmle.factory.real.models import measure
from sandmle.factory.real.table import Request, by_time, read_real
from sandmle.grading.grader import Grader
from sandmle.tasks.submission import read_table, to_csv


def write(path, columns):
    path.write_bytes(to_csv({name: [str(v) for v in cells] for name, cells in columns.items()}))
    return path


def people(n=240, seed=0):
    """A table with something to learn: income follows from age and trade, with noise."""
    rng = np.random.default_rng(seed)
    age, trade = rng.integers(18, 70, n), rng.choice(["smith", "baker", "clerk"], n)
    pay = 3.0 * age + 40 * (trade == "smith") + rng.normal(0, 15, n)
    return {
        "age": age, "trade": trade, "height": rng.normal(170, 9, n).round(1),
        "town": rng.integers(0, 24, n), "year": rng.integers(1990, 2020, n), "pay": pay.round(2),
    }  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    return from_data(Request(write(folder / "people.csv", people()), "pay"), folder / "out")


def test_at_least_twelve_models_are_measured(built) -> None:
    assert len(built.models) >= 12
    assert len({one.name for one in built.models}) == len(built.models)
    for one in built.models:
        assert one.cv_error > 0
        assert one.cv == pytest.approx(one.test, rel=0.5)
    dummy = next(one for one in built.models if one.name == "dummy")
    linear = next(one for one in built.models if one.name == "linear")
    # the noise has a standard deviation of 15, the target one of about 50
    assert 12 < linear.test < 19 < 40 < dummy.test


def test_milestones_are_quantiles_of_what_they_reach(built) -> None:
    milestones = built.task.card.milestones
    scores = sorted({float(f"{one.test:.5g}") for one in built.models})
    for name, q in (("median", 0.5), ("bronze", 0.4), ("silver", 0.2), ("gold", 0.05)):
        assert getattr(milestones, name) == pytest.approx(np.quantile(scores, q), rel=1e-4)
    assert milestones.direction == "min"


def test_the_folder_is_a_task_that_can_be_graded(built) -> None:
    task = built.task
    assert task.faults() == []
    assert not list(task.root.parent.glob(".*")), "no draft is left"
    grader = Grader(task)
    assert grader.grade(task.read("private/answer.csv")).reached["gold"]
    sample = grader.grade(task.read("public/sample_submission.csv"))
    assert sample.status == "ok"
    assert not sample.reached["median"]
    text = task.description
    assert "rmse" in text.lower() or "root mean" in text.lower()
    record = json.loads(task.read("private/verification.json"))
    assert len(record["models"]) == len(built.models)
    assert all(check["passed"] is not False for check in record["checks"])
    assert {s.name for s in task.solutions()} >= {"dummy", "linear", "forest"}


def test_hidden_rows_are_nowhere_in_public(built) -> None:
    test = read_table(built.task.read("public/test.csv"))
    train = read_table(built.task.read("public/train.csv"))
    assert "pay" not in test.header
    assert "pay" in train.header
    answer = read_table(built.task.read("private/answer.csv"))
    assert sorted(test.column("id")) == sorted(answer.column("id"))
    assert not set(test.column("id")) & set(train.column("id"))
    assert len(test.rows) + len(train.rows) == 240
    assert abs(len(test.rows) - 72) <= 1


def test_the_same_table_gives_the_same_bytes(built, tmp_path) -> None:
    path = write(tmp_path / "people.csv", people())
    first = read_real(Request(path, "pay"))
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_real(Request(tmp_path / "people.csv.gz", "pay")) == first
    assert [first.ids[i] for i in first.rows(True)] != [str(i) for i in range(72)]
    other = read_real(Request(path, "pay", seed=1))
    assert other.hidden != first.hidden


def test_equal_rows_stay_on_one_side(tmp_path) -> None:
    table = {k: list(v) * 2 for k, v in people(120).items()}
    real = read_real(Request(write(tmp_path / "t.csv", table), "pay"))
    assert real.hidden[:120] == real.hidden[120:]


def test_groups_stay_on_one_side_and_time_is_cut_once(tmp_path) -> None:
    path = write(tmp_path / "t.csv", people())
    real = read_real(Request(path, "pay", group="town"))
    towns = [set(real.column("town", real.rows(side))) for side in (False, True)]
    assert not towns[0] & towns[1]
    assert 0.2 < sum(real.hidden) / 240 < 0.45
    real = read_real(Request(path, "pay", time="year"))
    years = [sorted(map(int, real.column("year", real.rows(side)))) for side in (False, True)]
    assert years[0][-1] < years[1][0]
    with pytest.raises(UsageError, match="not by both"):
        read_real(Request(path, "pay", group="town", time="year"))


def test_times_are_numbers_or_texts() -> None:
    assert by_time(["10", "9", "100"]) == ["9", "10", "100"]
    assert by_time(["2024-10-01", "2024-09-30", "2023-12-31"])[0] == "2023-12-31"


@pytest.mark.parametrize(
    ("target", "metric", "expected"),
    [
        (["yes", "no"], None, "roc_auc"),
        (["0", "1"], None, "roc_auc"),
        (["a", "b", "c"], None, "accuracy"),
        (["1", "2", "3"], None, "accuracy"),
        (["1", "2", "3"], "mae", "mae"),
        (["a", "b", "c"], "log_loss_multiclass", "log_loss_multiclass"),
    ],
)
def test_the_metric_follows_from_the_target(tmp_path, target, metric, expected) -> None:
    table = {**people(120), "goal": [target[i % len(target)] for i in range(120)]}
    real = read_real(Request(write(tmp_path / "t.csv", table), "goal", metric=metric))
    assert real.metric.name == expected
    if expected == "roc_auc":
        assert set(real.values) == {"0", "1"}
        assert real.positive == ("yes" if target[0] == "yes" else "1")
    if expected == "log_loss_multiclass":
        assert real.targets == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"target": "nothing"}, "no column 'nothing'"),
        ({"target": "pay", "group": "nothing"}, "no feature column 'nothing'"),
        ({"target": "pay", "drop": ("pay",)}, "no feature column 'pay'"),
        ({"target": "pay", "id_column": "town"}, "repeats itself"),
        ({"target": "pay", "metric": "ap50"}, "no metric for one column"),
        ({"target": "trade", "metric": "rmse"}, "not all numbers"),
        ({"target": "trade", "metric": "roc_auc"}, "wants two classes"),
        ({"target": "pay", "metric": "accuracy"}, "classes; a task takes 2 to 30"),
        ({"target": "pay", "test_share": 1.0}, "not within"),
    ],
)
def test_what_no_task_can_be_made_of_is_told(tmp_path, options, fault) -> None:
    path = write(tmp_path / "t.csv", people(120))
    with pytest.raises(UsageError, match=fault):
        read_real(Request(path, **options))


def test_rows_without_a_target_are_left_out_and_few_rows_refused(tmp_path) -> None:
    table = people(100)
    table["pay"] = ["" if i < 10 else v for i, v in enumerate(table["pay"])]
    real = read_real(Request(write(tmp_path / "t.csv", table), "pay"))
    assert real.dropped == 10
    assert len(real.values) == 90
    with pytest.raises(UsageError, match="50 rows with a target"):
        read_real(Request(write(tmp_path / "u.csv", people(50)), "pay"))


# --- checks that bind -----------------------------------------------------------------------------


def failed(path, target, **options):
    checks = leak_checks(read_real(Request(path, target, **options)))
    return {check.name.split(":")[0] for check in checks if check.passed is False}


def test_a_column_that_gives_the_target_away_is_caught(tmp_path) -> None:
    table = people()
    table["tax"] = (np.array(table["pay"]) * 0.3).round(2)
    path = write(tmp_path / "t.csv", table)
    assert failed(path, "pay") == {"single_column"}
    assert failed(path, "pay", drop=("tax",)) == set()
    with pytest.raises(TaskError, match="--drop tax"):
        from_data(Request(path, "pay"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ids_that_tell_the_target_are_caught(tmp_path) -> None:
    table = people()
    order = np.argsort(table["pay"])
    table["number"] = np.empty(240, dtype=int)
    table["number"][order] = np.arange(1000, 1240)
    path = write(tmp_path / "t.csv", table)
    assert failed(path, "pay", id_column="number", seed=1) == {"leak_id", "leak_order"}


def test_each_check_of_a_real_table_binds(tmp_path, built) -> None:
    """Shortcuts in ids and their order, a unit on both sides, milestones that are not apart."""
    table = people()
    table["number"] = np.empty(240, dtype=int)
    table["number"][np.argsort(table["pay"])] = np.arange(1000, 1240)
    path = write(tmp_path / "t.csv", table)
    with pytest.raises(TaskError, match=r"leak_id:.*leak_order:"):
        from_data(Request(path, "pay", id_column="number", seed=1), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    real = read_real(Request(path, "pay"))
    shared = real._replace(units=[real.units[0]] * len(real.units))
    (twins,) = [c for c in leak_checks(shared) if c.name.endswith("_on_both_sides")]
    assert (twins.passed, twins.value) == (False, 1)
    levels = built.task.card.milestones
    for name, value in (("bronze", levels.median), ("gold", levels.silver)):
        same = levels.model_copy(update={name: value})
        (ordered, dummy) = _gate(real, built.models, same)
        assert (ordered.name, ordered.passed, dummy.passed) == ("paper_monotone", False, True)


def test_a_folder_that_fails_its_own_check_is_not_written(built, tmp_path) -> None:
    """The form of the sample submission, and hidden answers that lie about."""
    card = built.task.card
    files = {name: built.task.read(name) for name in card.files}
    lines = files["public/sample_submission.csv"].splitlines(keepends=True)
    faults = {
        "sample_valid": {"public/sample_submission.csv": b"".join(lines[:-1])},
        "answer": {"private/answer.csv": files["private/answer.csv"].replace(b"pay", b"wage", 1)},
    }
    for name, change in faults.items():
        with pytest.raises(TaskError, match=name):
            _write_checked(tmp_path / "out", card, files | change)
        assert list((tmp_path / "out").iterdir()) == []
    assert _write_checked(tmp_path / "out", card, files).content_hash == built.task.content_hash


def test_a_table_with_nothing_to_learn_is_refused(tmp_path) -> None:
    table = people()
    table["pay"] = np.random.default_rng(3).normal(0, 1, 240).round(4)
    with pytest.raises(TaskError, match="dummy_below_median"):
        from_data(Request(write(tmp_path / "t.csv", table), "pay"), tmp_path / "out")


def test_a_baseline_becomes_the_median(built, tmp_path) -> None:
    path = write(tmp_path / "people.csv", people())
    real = read_real(Request(path, "pay"))
    hidden = real.rows(True)
    ids = [real.ids[i] for i in hidden]
    # 25 off everywhere: RMSE 25, between the dummy and the best models
    guess = [f"{float(real.values[i]) + 25:.2f}" for i in hidden]
    base = tmp_path / "base.csv"
    base.write_bytes(to_csv({"id": ids, "pay": guess}))
    found = from_data(Request(path, "pay", baseline=base), tmp_path / "out").task.card.milestones
    best = min(one.test for one in built.models)
    assert found.median == pytest.approx(25, abs=1e-3)
    assert found.gold == pytest.approx(best, rel=1e-4)
    assert found.bronze == pytest.approx(25 + (best - 25) / 3, rel=1e-4)
    perfect = to_csv({"id": ids, "pay": [real.values[i] for i in hidden]})
    base.write_bytes(perfect)
    with pytest.raises(UsageError, match="no measured model beats"):
        from_data(Request(path, "pay", baseline=base), tmp_path / "again")
    base.write_bytes(to_csv({"id": ids[1:], "pay": guess[1:]}))
    with pytest.raises(UsageError, match="1 id missing"):
        from_data(Request(path, "pay", baseline=base), tmp_path / "again")


def test_models_see_classes_as_the_metric_wants_them(tmp_path) -> None:
    table = people(120)
    table["rich"] = np.where(np.array(table.pop("pay")) > 130, "yes", "no")
    for metric in ("roc_auc", "log_loss", "accuracy", "log_loss_multiclass"):
        real = read_real(Request(write(tmp_path / "t.csv", table), "rich", metric=metric))
        judge = Judge(real)
        scores = {one.name: one.test for one in measure(real, judge)}
        sign = 1 if real.metric.direction == "max" else -1
        assert sign * scores["linear"] > sign * scores["dummy"], metric


def test_the_csv_of_a_task_is_plain(built) -> None:
    text = built.task.read("public/train.csv").decode()
    assert next(csv.reader(text.splitlines()))[0] == "id"
