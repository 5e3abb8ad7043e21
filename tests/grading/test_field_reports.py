"""Failures that people met in graders of this kind, one test each; the numbers are those of the
project's collection of field reports, the sources public issue threads."""

from pathlib import Path

import numpy as np
import pytest
from build import build_task

from sandmle.errors import GradingError
from sandmle.grading.check import check_task
from sandmle.grading.grader import Grader
from sandmle.metrics.kinds import NUMBER
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import read_table
from sandmle.types import MetricRef


def test_fr01_validating_and_grading_read_the_answers_alike(tmp_path: Path) -> None:
    """openai/mle-bench #134: answers that are not CSV broke only the validity check."""
    answers = '{"id": "a", "label": 1}\n{"id": "b", "label": 0}\n'
    task = build_task(
        tmp_path,
        answers,
        classes=("0", "1"),
        answer_name="answer.jsonl",
        sample="id,label\na,1\nb,1\n",
    )
    grader = Grader(task)
    good, bad = b"id,label\nb,0\na,1\n", b"id,label\na,1\n"
    assert grader.validate(good) is None
    assert grader.grade(good).score == 1.0
    assert grader.validate(bad) == grader.grade(bad).reason


def test_fr02_labels_called_none_or_na_are_labels(tmp_path: Path) -> None:
    """VLMEvalKit #1559, pandas #10647: such a class vanished into missing values."""
    answers = "id,label\na1,None\na2,NA\na3,mild\na4,null\n"
    task = build_task(tmp_path, answers, classes=("None", "NA", "mild", "null"))
    assert Grader(task).grade(answers.encode()).score == 1.0
    empty = Grader(task).grade(b"id,label\na1,None\na2,\na3,mild\na4,null\n")
    assert empty.status == "invalid"
    assert "'a2'" in empty.reason
    warning = next(c for c in check_task(task) if c.name == "labels_survive_read_csv")
    assert warning.passed is False
    assert "None" in warning.detail


def test_fr03_leading_zeros_of_ids_are_kept(tmp_path: Path) -> None:
    """PyNIDM #84, skll #539: ids read as numbers match nothing, or each other."""
    answers = "id,label\n007,a\n010,b\n7,a\n"
    task = build_task(tmp_path, answers, classes=("a", "b"))
    assert Grader(task).grade(answers.encode()).score == 1.0
    lossy = Grader(task).grade(b"id,label\n7,a\n10,b\n7,a\n")
    assert lossy.status == "invalid"
    for part in ("'007'", "'010'", "'7'", "more than once", "read the id column as text"):
        assert part in lossy.reason
    check = next(c for c in check_task(task) if c.name == "ids_match_and_survive")
    assert check.passed is False


def test_fr04_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    """pandas #4793, orange3 #7000: the first column was "missing"."""
    task = build_task(tmp_path, "id,label\n1,0.2\n2,0.9\n", "rmse")
    data = b"\xef\xbb\xbfid,label\n1,0.2\n2,0.9\n"
    assert Grader(task).grade(data).score == 0.0
    assert read_table(data).header == ["id", "label"]


def test_fr05_a_trailing_comma_does_not_shift_columns(tmp_path: Path) -> None:
    """pandas #14124: the first column became an index and predictions were graded as ids."""
    task = build_task(tmp_path, "id,label\n1,0.9\n2,0.1\n", "rmse")
    grade = Grader(task).grade(b"id,label\n1,0.9,\n2,0.1,\n")
    assert grade.status == "invalid"
    assert "has 3 fields, the header has 2" in grade.reason


def test_fr06_repeated_ids_do_not_raise_the_score(tmp_path: Path) -> None:
    """hpo_nmt #1: an inner join let easy rows dominate."""
    task = build_task(tmp_path, "id,label\n1,1\n2,0\n", classes=("0", "1"))
    grade = Grader(task).grade(b"id,label\n1,1\n1,1\n1,1\n2,1\n")
    assert grade.status == "invalid"
    assert "1 id more than once: '1'" in grade.reason


def test_fr07_empty_ids_do_not_match_each_other(tmp_path: Path) -> None:
    """pandas #22491: rows without a key were joined in all combinations."""
    task = build_task(tmp_path, "id,label\nx,1\ny,0\n", classes=("0", "1"))
    grade = Grader(task).grade(b"id,label\nx,1\n,0\n,0\n")
    assert grade.status == "invalid"
    assert "empty id" in grade.reason
    with pytest.raises(GradingError, match="an id is empty"):
        Grader(build_task(tmp_path, "id,label\nx,1\n,0\n", classes=("0", "1"), task_id="no-id"))


def test_fr08_row_order_means_nothing_and_ids_everything(tmp_path: Path) -> None:
    """Alchemy #12, G2Net #2: right predictions in another order scored like noise."""
    rows = [f"r{i},{i % 3}" for i in range(20)]
    answers = "\n".join(["id,label", *rows]) + "\n"
    task = build_task(tmp_path, answers, classes=("0", "1", "2"))
    grader = Grader(task)
    backwards = "\n".join(["id,label", *rows[::-1]]) + "\n"
    assert grader.grade(backwards.encode()).score == 1.0
    moved = [f"r{(i + 1) % 20},{i % 3}" for i in range(20)]
    assert grader.grade("\n".join(["id,label", *moved]).encode()).score < 0.2


@pytest.mark.parametrize("cells", [("1", "", ""), ("1", "nan", "inf")])
def test_fr09_nan_predictions_are_invalid(tmp_path: Path, cells: tuple[str, ...]) -> None:
    """gluonts #2560: a nan-mean left the hard rows out."""
    task = build_task(tmp_path, "id,label\na,1\nb,2\nc,3\n", "rmse")
    lines = [f"{i},{cell}" for i, cell in zip("abc", cells, strict=True)]
    grade = Grader(task).grade("\n".join(["id,label", *lines]).encode())
    assert (grade.status, grade.score) == ("invalid", None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_fr09_a_metric_without_a_value_is_our_failure(
    tmp_path: Path, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN score is "not None": graders took it for a valid submission."""
    broken = Metric("broken", lambda *_: value, NUMBER, "min", 0, 1, "broken", "", "")
    METRICS.names()
    monkeypatch.setitem(METRICS._items, "broken", broken)
    task = build_task(tmp_path, "id,label\na,1\n", "rmse")
    card = task.card.model_copy(update={"metric": MetricRef(name="broken")})
    grade = Grader(Task(task.root, card)).grade(b"id,label\na,1\n")
    assert (grade.status, grade.score, grade.reached) == ("grader_error", None, {})


def test_fr10_auc_of_a_single_class_is_our_failure(tmp_path: Path) -> None:
    """scikit-learn #30079: by version an error, 0.0 or NaN."""
    answers = "id,label\n" + "".join(f"r{i},1\n" for i in range(15))
    task = build_task(tmp_path, answers, "roc_auc")
    grade = Grader(task).grade(answers.encode())
    assert grade.status == "grader_error"
    assert "the same" in grade.reason
    assert not next(c for c in check_task(task) if c.name == "sample_valid").passed


def test_fr11_degenerate_predictions_score_and_degenerate_truth_is_refused() -> None:
    """scikit-learn #9624, #14256: 0/0 inside the metric."""
    kappa, spearman, r2 = (METRICS.get(n) for n in ("quadratic_kappa", "spearman", "r2"))
    ones, mixed = np.array(["1", "1", "1"], object), np.array(["1", "2", "3"], object)
    classes = ["1", "2", "3"]
    assert kappa(mixed, ones, classes) == 0.0
    assert spearman(np.array([1.0, 2, 3]), np.array([5.0, 5, 5])) == 0.0
    with pytest.raises(GradingError):
        kappa(ones, ones, classes)
    with pytest.raises(GradingError):
        spearman(np.array([5.0, 5, 5]), np.array([1.0, 2, 3]))
    with pytest.raises(GradingError):
        r2(np.array([1.0]), np.array([1.0]))


def test_fr12_booleans_have_two_spellings_and_no_truthiness(tmp_path: Path) -> None:
    """datacompy #538, pandas #59575: one odd cell made equality false everywhere."""
    answers = "id,label\na,True\nb,False\nc,True\n"
    task = build_task(tmp_path, answers, classes=("True", "False"))
    grader = Grader(task)
    assert grader.grade(b"id,label\na,true\nb,FALSE\nc,TRUE\n").score == 1.0
    odd = grader.grade(b"id,label\na,True\nb,False\nc,yes\n")
    assert odd.status == "invalid"
    assert "row 3" in odd.reason
    assert "value 'yes' is not one of True, False" in odd.reason
    assert grader.grade(b"id,label\na,1\nb,0\nc,1\n").status == "invalid"


def test_fr13_a_sample_that_cannot_be_graded_fails_the_check(tmp_path: Path) -> None:
    """openai/mle-bench #30: a sample without two of eleven target columns."""
    names = tuple(f"finding_{i}" for i in range(11))
    eye = np.eye(11, dtype=int)
    rows = [f"s{i}," + ",".join(map(str, eye[i])) for i in range(11)]
    answers = "\n".join([",".join(("id", *names)), *rows]) + "\n"
    short = "\n".join(line.rsplit(",", 2)[0] for line in answers.splitlines()) + "\n"
    train_ids = answers.replace("\ns", "\nt")
    for number, sample in enumerate((short, train_ids)):
        task = build_task(
            tmp_path, answers, "log_loss_multiclass", names, sample=sample, task_id=f"t{number}"
        )
        check = next(c for c in check_task(task) if c.name == "sample_valid")
        assert check.passed is False
        assert check.detail
