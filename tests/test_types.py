import pytest
from pydantic import ValidationError

from sandmle.tasks.folder import Task
from sandmle.types import (
    Column,
    Grade,
    Limits,
    Milestones,
    Mutation,
    SubmissionSchema,
    TaskCard,
    TaskSpec,
)


def test_records_are_frozen_and_closed() -> None:
    limits = Limits()
    with pytest.raises(ValidationError):
        limits.wall_s = 1  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Limits(wall=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        Limits(wall_s=float("nan"))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "y", "kind": "label"},
        {"name": "y", "kind": "label", "choices": ()},
        {"name": "y", "kind": "label", "choices": ("a", "a")},
        {"name": "y", "kind": "label", "choices": ("a", "")},
        {"name": "y", "kind": "labels", "choices": ("a",)},
        {"name": "", "kind": "number"},
        {"name": "y", "kind": "image"},
        {"name": "y", "kind": "boxes"},
        {"name": "y", "kind": "mask"},
        {"name": "y", "kind": "mask", "shape": (0, 4)},
        {"name": "y", "kind": "mask", "shape": (4, 10_000)},
    ],
)
def test_columns_are_complete(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Column.model_validate(fields)


def test_column_names_are_unique() -> None:
    y = Column(name="y", kind="number")
    with pytest.raises(ValidationError, match="share a name"):
        SubmissionSchema(id_column="id", columns=(y, y), n_rows=1)
    with pytest.raises(ValidationError, match="share a name"):
        SubmissionSchema(id_column="y", columns=(y,), n_rows=1)


def test_a_grade_has_a_score_exactly_when_it_is_ok() -> None:
    with pytest.raises(ValidationError, match="exactly when"):
        Grade(status="ok")
    for status in ("missing", "invalid", "grader_error"):
        with pytest.raises(ValidationError, match="exactly when"):
            Grade(status=status, score=0.0)
    reached = dict.fromkeys(("median", "bronze", "silver", "gold"), False)
    assert Grade(status="ok", score=0.5, reached=reached)
    with pytest.raises(ValidationError):
        Grade(status="ok", score=float("nan"), reached=reached)
    with pytest.raises(ValidationError, match="exactly when"):
        Grade(status="ok", score=0.5)


def test_mutations_are_at_most_three(task: Task) -> None:
    one = Mutation(name="noise", parameters={}, recovery="average it away")
    fields = task.spec.model_dump()
    assert TaskSpec.model_validate({**fields, "mutations": [one] * 3})
    with pytest.raises(ValidationError, match="at most 3"):
        TaskSpec.model_validate({**fields, "mutations": [one] * 4})


@pytest.mark.parametrize("task_id", ["", "a/b", "..", ".hidden", "a b", "x" * 90, "ä"])
def test_task_ids_are_safe_folder_names(task_id: str) -> None:
    y = Column(name="y", kind="number")
    with pytest.raises(ValidationError):
        TaskCard(
            id=task_id,
            title="T",
            modality="tabular",
            metric={"name": "rmse"},
            submission=SubmissionSchema(id_column="id", columns=(y,), n_rows=1),
            milestones=Milestones(direction="min", median=4, bronze=3, silver=2, gold=1),
            files={},
        )
