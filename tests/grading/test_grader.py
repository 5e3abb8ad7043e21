import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from build import build_task
from conformance.cases import csv_text, make_case
from conformance.test_metrics import load

from sandmle.errors import GradingError, TaskError, UsageError
from sandmle.grading.check import check_task
from sandmle.grading.evaluator import cut, render_evaluator
from sandmle.grading.grader import Grader, grade
from sandmle.metrics.registry import METRICS
from sandmle.tasks.folder import Task
from sandmle.types import MetricRef

ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"


@pytest.fixture
def small(tmp_path: Path) -> Task:
    return build_task(tmp_path, ANSWERS, classes=("0", "1"))


def stranger(task: Task, *arguments: str, cwd: Path) -> dict:
    """Run the evaluator as a script where the package cannot be imported."""
    site = next(path for path in sys.path if path.endswith("site-packages"))
    code = (
        f"import sys; sys.path.append({site!r}); sys.modules['sandmle'] = None\n"
        f"import runpy; sys.argv = ['evaluator.py', *{list(arguments)!r}]\n"
        f"runpy.run_path({str(task.private / 'evaluator.py')!r}, run_name='__main__')"
    )
    process = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0
    assert process.stderr == ""
    return json.loads(process.stdout)


def test_milestones_reached(small: Task) -> None:
    verdict = Grader(small).grade(b"id,label\na,1\nb,0\nc,0\nd,1\n")
    assert verdict.score == 0.5
    assert verdict.reached == {"median": True, "bronze": True, "silver": False, "gold": False}


def test_lower_is_better_turns_the_milestones(tmp_path: Path) -> None:
    task = build_task(tmp_path, "id,label\na,1\nb,0\n", "rmse", levels=(-4, -3, -2, -1))
    verdict = Grader(task).grade(b"id,label\na,3\nb,2\n")
    assert verdict.score == 2.0
    assert verdict.reached == {"median": True, "bronze": True, "silver": True, "gold": False}


def test_the_score_is_not_rounded(tmp_path: Path) -> None:
    task = build_task(tmp_path, "id,label\na,1\nb,0\nc,0\n", "mae")
    assert Grader(task).grade(b"id,label\na,1\nb,0\nc,1\n").score == 1 / 3


def test_the_evaluator_runs_without_the_package(small: Task, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,label\nd,0\na,1\nb,1\nc,1\n")
    verdict = stranger(small, "--submission_path", "mine.csv", cwd=tmp_path)
    assert verdict == {
        "score": 0.75,
        "median_threshold": 0.2,
        "bronze_threshold": 0.4,
        "silver_threshold": 0.6,
        "gold_threshold": 0.8,
        "is_lower_better": False,
    }
    assert stranger(small, cwd=small.public)["score"] == 1.0, "the default is the sample"


@pytest.mark.parametrize(
    ("name", "status"),
    [("nothing.csv", "missing"), ("bad.csv", "invalid"), ("link.csv", "invalid"), (".", "invalid")],
)
def test_the_evaluator_never_fails_loudly(
    small: Task, tmp_path: Path, name: str, status: str
) -> None:
    (tmp_path / "bad.csv").write_text("id,label\na,1\n")
    (tmp_path / "link.csv").symlink_to(small.private / "answer.csv")
    verdict = stranger(small, "--submission_path", name, cwd=tmp_path)
    assert verdict["status"] == status
    assert verdict["error"]
    assert "score" not in verdict


def test_the_evaluator_reports_its_own_failure(small: Task, tmp_path: Path) -> None:
    (small.private / "answer.csv").write_text("id,label\na,7\n")
    (tmp_path / "mine.csv").write_text(ANSWERS)
    verdict = stranger(small, "--submission_path", "mine.csv", cwd=tmp_path)
    assert verdict["status"] == "grader_error"


def test_grade_takes_a_path_or_bytes(small: Task, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(ANSWERS)
    assert grade(small, path) == grade(small, ANSWERS.encode())
    assert grade(small, tmp_path / "nothing.csv") == grade(small, None)
    assert grade(small, None).status == "missing"
    (tmp_path / "link.csv").symlink_to(path)
    refused = grade(small, tmp_path / "link.csv")
    assert refused.status == "invalid"
    assert "'link.csv' is a link" in refused.reason


def test_a_line_of_100_mb_is_refused_and_never_held_whole(small: Task, tmp_path: Path) -> None:
    """Both graders stop reading at the limit: a program may leave as much as its disk can hold."""
    size = 100_000_000
    path = tmp_path / "huge.csv"
    path.write_bytes(b"x" * size)
    evaluate = load(small.private / "evaluator.py").evaluate
    tracemalloc.start()
    reasons = {grade(small, path).reason, evaluate(path)["error"]}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reasons == {"'huge.csv' is larger than the limit of 67,108,864 bytes"}
    assert peak < size
    verdict = stranger(small, "--submission_path", "huge.csv", cwd=tmp_path)
    assert verdict == {"status": "invalid", "error": reasons.pop()}


def test_100_mb_that_are_in_memory_are_refused_by_their_size(small: Task) -> None:
    refused = Grader(small).grade(b"x" * 100_000_000)
    assert refused.status == "invalid"
    assert refused.reason == "the file has 100,000,000 bytes, the limit is 67,108,864"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("id,label\na,1\nb,0\nc,1\n", "3 rows, the schema says 4"),
        ("id,label\na,1\na,0\nc,1\nd,0\n", "occurs twice"),
        ("id,label\na,1\n,0\nc,1\nd,0\n", "is empty"),
        ("id,label\na,1\nb,2\nc,1\nd,0\n", "'2' is no answer"),
        ("id,label\na,1\nb,\nc,1\nd,0\n", "'' is no answer"),
        ("id,y\na,1\nb,0\nc,1\nd,0\n", "no column 'label'"),
        ("", "the file is empty"),
    ],
)
def test_broken_answers_are_our_fault(small: Task, answers: str, message: str) -> None:
    (small.private / "answer.csv").write_text(answers)
    with pytest.raises(GradingError, match=message):
        Grader(small)


def test_a_direction_that_contradicts_the_metric_is_refused(small: Task) -> None:
    wrong = small.card.milestones.model_copy(update={"direction": "min"})
    task = Task(small.root, small.card.model_copy(update={"milestones": wrong}))
    with pytest.raises(TaskError, match="accuracy is 'max'"):
        Grader(task)


def test_an_unknown_metric_names_the_nearest(small: Task) -> None:
    task = Task(small.root, small.card.model_copy(update={"metric": MetricRef(name="acuracy")}))
    with pytest.raises(UsageError, match="did you mean 'accuracy'"):
        Grader(task)


def test_an_unknown_parameter_is_refused_at_once(small: Task) -> None:
    ref = MetricRef(name="accuracy", params={"k": 3})
    with pytest.raises(UsageError, match="accuracy has no parameter 'k'"):
        Grader(Task(small.root, small.card.model_copy(update={"metric": ref})))


@pytest.mark.parametrize(
    "metric", ["rmse", "roc_auc", "map", "dice", "ap50", "exact_match", "kl_divergence"]
)
def test_a_schema_that_the_metric_cannot_score_is_refused(small: Task, metric: str) -> None:
    card = small.card.model_copy(update={"metric": MetricRef(name=metric)})
    direction = METRICS.get(metric).direction
    turned = card.milestones.model_copy(update={"direction": direction})
    with pytest.raises(TaskError, match=f"{metric} cannot score 'label'"):
        Grader(Task(small.root, card.model_copy(update={"milestones": turned})))


def test_linked_answers_are_not_read(small: Task, tmp_path: Path) -> None:
    (small.private / "answer.csv").rename(tmp_path / "answer.csv")
    (small.private / "answer.csv").symlink_to(tmp_path / "answer.csv")
    with pytest.raises(TaskError, match=r"answer\.csv"):
        Grader(small)


def test_repeated_labels_among_the_answers_are_our_fault(tmp_path: Path) -> None:
    task = build_task(tmp_path, "id,label\na,cat cat\n", "map", ("cat", "dog"))
    with pytest.raises(GradingError, match="'cat cat' is no answer"):
        Grader(task)


@pytest.mark.parametrize(
    ("metric", "answers", "message"),
    [
        ("dice", "id,label\na,5 0\n", "a cell of column 'label' holds the run '5 0'"),
        ("ap50", "id,label\na,1 2 3\n", "a cell of column 'label' holds 3 numbers"),
        ("exact_match", f"id,label\na,{'x' * 2001}\n", "a cell of column 'label' has 2,001"),
    ],
)
def test_cells_of_answers_are_read_as_those_of_submissions(
    tmp_path: Path, metric: str, answers: str, message: str
) -> None:
    schema = METRICS.get(metric).schema("id", "label", (), 1, shape=(4, 4), max_items=3)
    with pytest.raises(GradingError, match=message):
        Grader(build_task(tmp_path, answers, metric, schema=schema))


@pytest.mark.parametrize(
    ("metric", "answers", "message"),
    [
        ("mean_log_loss", "id,a,b\nx,1,0.5\n", "must be 0 or 1"),
        ("kl_divergence", "id,a,b\nx,0.7,0.2\n", "add up to 1"),
        ("kl_divergence", "id,a,b\nx,1.2,-0.2\n", "must not be negative"),
    ],
)
def test_answers_that_make_no_sense_for_the_kind_are_our_fault(
    tmp_path: Path, metric: str, answers: str, message: str
) -> None:
    grade = Grader(build_task(tmp_path, answers, metric, ("a", "b"))).grade(b"id,a,b\nx,0.7,0.3\n")
    assert grade.status == "grader_error"
    assert message in grade.reason


def test_a_task_without_answers_is_told(small: Task) -> None:
    (small.private / "answer.csv").unlink()
    with pytest.raises(TaskError, match=r"answer\.csv: missing"):
        Grader(small)


def test_rows_without_ids_are_matched_by_order(tmp_path: Path) -> None:
    task = build_task(tmp_path, "label\n1\n0\n0\n", classes=("0", "1"), id_column=None)
    grader = Grader(task)
    assert grader.ids is None
    assert grader.grade(b"label\n1\n0\n1\n").score == pytest.approx(2 / 3)
    assert grader.grade(b"label\n1\n0\n").status == "invalid"


def test_a_cut_refuses_two_definitions_of_one_name() -> None:
    from sandmle.grading import evaluator
    from sandmle.sandbox import bare

    with pytest.raises(UsageError, match="both"):
        cut(bare._kill_group, evaluator._source, bare.bare, evaluator.cut, _source)


def _source() -> None:
    """Share a name with another module's function."""


def test_titles_cannot_break_the_evaluator(small: Task) -> None:
    card = small.card.model_copy(update={"title": 'A """ quote \\ and \\N and \0 \n'})
    compile(render_evaluator(card), "evaluator.py", "exec")


def test_checks_of_a_good_task(task: Task) -> None:
    checks = check_task(task)
    assert [check.name for check in checks if check.passed is not True] == []
    assert len(checks) >= 12


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (lambda root: (root / "public/answer.csv").write_text("x"), "public_holds_no_answers"),
        (lambda root: (root / "public/train.csv").write_text("x"), "files_unchanged"),
        (lambda root: (root / "private/threshold.json").write_text("{}"), "thresholds_agree"),
        (
            lambda root: (root / "public/sample_submission.csv").write_text("id\na\n"),
            "sample_valid",
        ),
        (
            lambda root: (root / "public/test.csv").write_text("id,x\na,1\n"),
            "ids_match_and_survive",
        ),
        (lambda root: (root / "public/description.md").write_text("Hello."), "columns_described"),
        (lambda root: (root / "private/answer.csv").write_text("x"), "answers_readable"),
        (lambda root: (root / "public/description.md").unlink(), "columns_described"),
        (lambda root: (root / "public/test.csv").write_bytes(b"\xff"), "ids_match_and_survive"),
        (lambda root: (root / "public/test.csv").write_text("id,x\na"), "ids_match_and_survive"),
        (lambda root: (root / "private/threshold.json").write_text("[" * 9999), "thresholds_agree"),
        (lambda root: (root / "public/sample_submission.csv").unlink(), "sample_valid"),
    ],
)
def test_each_check_fails_for_its_own_reason(small: Task, damage, name: str) -> None:
    assert next(check for check in check_task(small) if check.name == name).passed
    damage(small.root)
    found = next(check for check in check_task(small) if check.name == name)
    assert found.passed is False
    assert found.detail


@pytest.mark.parametrize(
    ("levels", "passed"),
    [((0.2, 0.4, 0.6, 0.8), True), ((0.2, 0.4, 0.4, 0.8), False), ((0.2, 0.6, 0.4, 0.8), False)],
)
def test_the_papers_order_is_a_check(tmp_path: Path, levels, passed: bool) -> None:
    task = build_task(tmp_path, ANSWERS, classes=("0", "1"), levels=levels)
    assert next(c for c in check_task(task) if c.name == "paper_monotone").passed is passed


def test_a_foreign_evaluator_is_not_judged(small: Task) -> None:
    (small.private / "evaluator.py").write_text("print('mine')")
    found = next(c for c in check_task(small) if c.name == "evaluator_is_the_grader")
    assert found.passed is None


@pytest.mark.parametrize("name", METRICS.names())
def test_behaviour_checks_hold_for_every_metric(name: str, tmp_path: Path) -> None:
    metric = METRICS.get(name)
    case = make_case(metric, 1, 12)
    best = metric.best if metric.direction == "max" else 0.0
    levels = tuple(best - far for far in (0.8, 0.6, 0.4, 0.2))
    task = build_task(tmp_path, csv_text(case.answers), name, schema=case.schema, levels=levels)
    verdicts = {check.name: check.passed for check in check_task(task)}
    for check in ("perfect_is_best", "row_order_means_nothing", "ids_mean_something"):
        assert verdicts[check] is True, check
