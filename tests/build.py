"""Small hand-made tasks for tests: real folders, written by the real writer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandmle.files import to_json
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import threshold_keys
from sandmle.metrics.registry import METRICS
from sandmle.tasks.folder import Task, write_task
from sandmle.types import MetricRef, Milestones, Rung, SubmissionSchema, TaskCard

SEED, FAMILY = 2, "interaction"  # of the corpus that tests share: one wants labels, one scores


def milestones(
    direction: str = "max", levels: Sequence[float] = (0.2, 0.4, 0.6, 0.8)
) -> Milestones:
    names = ("median", "bronze", "silver", "gold")
    ordered = levels if direction == "max" else [-level for level in levels]
    return Milestones(direction=direction, **dict(zip(names, ordered, strict=True)))


def build_task(
    parent: Path,
    answers: str,
    metric: str = "accuracy",
    classes: Sequence[str] = (),
    target: str = "label",
    id_column: str | None = "id",
    schema: SubmissionSchema | None = None,
    params: dict[str, Any] | None = None,
    levels: Sequence[float] = (0.2, 0.4, 0.6, 0.8),
    ladder: Sequence[Rung] = (),
    sample: str | None = None,
    answer_name: str = "answer.csv",
    task_id: str = "small-task",
    solutions: dict[str, str] | None = None,
) -> Task:
    """Write a task whose hidden answers are `answers`; the public files follow from them."""
    sort = METRICS.get(metric)
    lines = [line for line in answers.splitlines() if line.strip()]
    n_rows = len(lines) - (answer_name == "answer.csv")
    schema = schema or sort.schema(id_column, target, tuple(classes), n_rows, params)
    card = TaskCard(
        id=task_id,
        title="A small task",
        modality="tabular",
        metric=MetricRef(name=metric, params=params or {}),
        submission=schema,
        milestones=milestones(sort.direction, levels),
        ladder=tuple(ladder),
        files={},
    )
    ids = [line.split(",")[0] for line in lines]
    names = [c for c in (schema.id_column, *(c.name for c in schema.columns)) if c is not None]
    files = {
        "public/description.md": f"Predict. Columns: {', '.join(names)}.\n",
        "public/train.csv": "id,x,label\nt1,0.5,a\n",
        "public/test.csv": "\n".join([f"{schema.id_column},x", *(f"{i},0.1" for i in ids[1:])])
        + "\n",
        "public/sample_submission.csv": sample if sample is not None else answers,
        f"private/{answer_name}": answers,
        "private/threshold.json": to_json(threshold_keys(card.milestones)),
        "private/evaluator.py": render_evaluator(card),
        **{f"private/solutions/{name}.py": code for name, code in (solutions or {}).items()},
    }
    return write_task(parent, card, {name: text.encode() for name, text in files.items()})
