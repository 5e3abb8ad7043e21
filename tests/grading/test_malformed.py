"""Whatever is wrong with a submission: one of two statuses, a reason to act on, never a score."""

from pathlib import Path

import pytest
from build import build_task
from conformance.test_metrics import load

from grading.malformed import HARMLESS, SORTS, Sort, malformed
from sandmle.grading.grader import Grader
from sandmle.metrics.registry import METRICS
from sandmle.tasks.folder import Task

CASES = list(malformed())


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    folder = tmp_path_factory.mktemp("tasks")
    return {name: make(folder, name, sort) for name, sort in SORTS.items()}


def make(folder: Path, name: str, sort: Sort) -> Task:
    schema = METRICS.get(sort.metric).schema("id", "label", sort.classes, 4, **sort.form)
    return build_task(folder, sort.answers, sort.metric, schema=schema, task_id=name)


def test_there_are_enough() -> None:
    assert len(CASES) >= 150


@pytest.mark.parametrize(("sort", "fault", "data"), CASES, ids=[f"{s}-{f}" for s, f, _ in CASES])
def test_malformed(
    tasks: dict[str, Task], tmp_path: Path, sort: str, fault: str, data: bytes
) -> None:
    grader = Grader(tasks[sort])
    grade = grader.grade(data)
    assert grade.status == "invalid", (fault, grade)
    assert grade.score is None
    assert grade.reached == {}
    assert 10 < len(grade.reason) < 500
    assert grade.reason.isprintable(), "a reason must not carry control characters to a terminal"
    assert grader.validate(data) == grade.reason, "validating and grading must agree"

    path = tmp_path / "submission.csv"
    path.write_bytes(data)
    verdict = load(tasks[sort].private / "evaluator.py").evaluate(path)
    assert verdict["status"] == "invalid"
    if fault != "over_the_size_limit":  # there the file is refused before it is read
        assert verdict["error"] == grade.reason


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("change", HARMLESS)
def test_harmless(tasks: dict[str, Task], sort: str, change: str) -> None:
    good = SORTS[sort].good
    rows = [line.split(",") for line in good.splitlines()]
    grader = Grader(tasks[sort])
    expected = grader.grade(good.encode())
    assert expected.status == "ok"
    assert grader.grade(HARMLESS[change](rows)) == expected
    assert grader.validate(HARMLESS[change](rows)) is None


def test_no_file_is_missing_not_invalid(tasks: dict[str, Task]) -> None:
    grade = Grader(tasks["label"]).grade(None)
    assert (grade.status, grade.score) == ("missing", None)
    assert grade.reason


REASONS = [
    ("label", "label_unknown", "row 2 (line 3, id '010'), column 'label': value 'horse'"),
    ("label", "label_unknown", "not one of cat, dog, owl"),
    ("label", "trailing_comma", "row 1 (line 2) has 3 fields, the header has 2"),
    ("label", "semicolon", "separated by ';', use commas"),
    ("label", "leading_zeros_lost", "read the id column as text"),
    ("label", "index_column", "index=False"),
    ("label", "id_missing", "1 id missing: '010'"),
    ("label", "id_twice", "1 id more than once: '007'"),
    ("label", "unknown_id_added", "1 unknown id: 'zzz'"),
    ("label", "header_only", "4 rows expected"),
    ("label", "id_renamed", "blanks and case included"),
    ("label", "gzip", "the file is gzip"),
    ("number", "value_nan", "value 'nan' is not a finite number"),
    ("number", "value_empty", "an empty cell"),
    ("number", "value_huge", "is larger than 1e+100"),
    ("probability", "above_one", "is outside [0, 1]"),
    ("probabilities", "row_sums_to_two", "add up to 2, not to 1"),
    ("lists", "list_too_many", "has more than 5 labels"),
    ("lists", "list_repeated", "names a label twice"),
    ("masks", "mask_odd", "row 2 (line 3, id '010'), column 'label': value '1' holds 1 number;"),
    ("masks", "mask_odd", "a run is two, start and length"),
    ("masks", "mask_outside", "holds the run '12 2', which leaves the picture"),
    ("masks", "mask_from_zero", "its pixels are 1 to 12"),
    ("masks", "mask_no_length", "holds the run '4 0', which has no pixel"),
    ("masks", "mask_overlap", "the run '3 2', which starts before the run before it ends"),
    ("masks", "mask_fraction", "holds '1.0', not a whole number"),
    ("masks", "mask_many", "has 100,000 characters, the limit is 39"),
    ("masks", "mask_megabyte", "field larger than field limit"),
    ("boxes", "box_four", "holds 4 numbers; a box is five, confidence x y width height"),
    ("boxes", "box_three_boxes", "has more than 2 boxes"),
    ("boxes", "box_nan", "holds 'nan', not a number of at most 1,000,000 in size"),
    ("boxes", "box_unsure", "the box '1.1 2 3 4 5', whose confidence is outside [0, 1]"),
    ("boxes", "box_no_height", "the box '1 2 3 4 0', whose size is not above 0"),
    ("texts", "text_long", "has 2,001 characters, the limit is 2,000"),
    ("columns", "above_one", "is outside [0, 1]"),
    ("shares", "row_sums_to_two", "add up to 2, not to 1"),
]


@pytest.mark.parametrize(("sort", "fault", "expected"), REASONS)
def test_reasons_say_where_and_what(
    tasks: dict[str, Task], sort: str, fault: str, expected: str
) -> None:
    data = next(data for s, f, data in CASES if (s, f) == (sort, fault))
    assert expected in Grader(tasks[sort]).grade(data).reason
