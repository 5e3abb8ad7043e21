"""Small hand-made tasks for tests, written by the real writer; and what several tests look at."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandmle.factory.family import FAMILIES, Family
from sandmle.factory.mix import read_mix, stratum
from sandmle.factory.slot import Job
from sandmle.files import to_json
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import Grader, threshold_keys
from sandmle.metrics.registry import METRICS
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.folder import Task, write_task
from sandmle.types import Limits, MetricRef, Milestones, Rung, SubmissionSchema, TaskCard

SEED, FAMILY = 2, "interaction"  # of the corpus that tests share: one wants labels, one scores

PUBLISHED = Path(__file__).parents[1] / "docs" / "corpora" / "sandmle-912.json"


def published_job() -> Job:
    """Return what the published corpus is made of."""
    record = json.loads(PUBLISHED.read_text())
    return Job(seed=record["seed"], mix=read_mix(record["mix"]).resolve())


def published_families() -> list[type[Family]]:
    """Return the families of the first tasks of the published corpus."""
    job, n = published_job(), len(json.loads(PUBLISHED.read_text())["first"])
    return [FAMILIES.get(stratum(job.mix, job.seed, slot).family) for slot in range(n)]


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
    modality: str = "tabular",
) -> Task:
    """Write a task whose hidden answers are `answers`; the public files follow from them."""
    sort = METRICS.get(metric)
    lines = [line for line in answers.splitlines() if line.strip()]
    n_rows = len(lines) - (answer_name == "answer.csv")
    schema = schema or sort.schema(id_column, target, tuple(classes), n_rows, params)
    card = TaskCard(
        id=task_id,
        title="A small task",
        modality=modality,
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


def check_rungs(task: Task, sandbox: Sandbox) -> None:
    """Run every third script of a ladder, the reference first: it scores what the card says."""
    grader = Grader(task)
    for rung, solution in list(zip(task.card.ladder, task.solutions(), strict=True))[::-3]:
        workspace = sandbox.open(task.public, Limits())
        result = workspace.run(solution.code)
        assert result.status == "ok", result.stderr
        grade = grader.grade(workspace.read("submission.csv", 10**6))
        workspace.close()
        assert grade.score is not None
        assert abs(grade.score - rung.test) <= 1e-4 * abs(rung.test)
        assert grade.reached["gold"] is (rung.kind == "reference")
