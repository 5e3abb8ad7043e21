"""`bench mle-bench`: a policy on competitions of a prepared data directory, and MLE-bench's report.

A competition is laid out as a task folder (public files, answers apart, milestones from the user's
board) and played like any other; what the episodes submitted is then graded as a file of
submissions is. The recipe is the paper's (appendix A.2).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.bench.facts import Competition, competition, split
from sandmle.bench.mlebench import Data
from sandmle.bench.strict import as_read, read_answer_table, targets
from sandmle.errors import TaskError, UsageError
from sandmle.files import write_atomic
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import threshold_keys
from sandmle.metrics.registry import METRICS
from sandmle.tasks.folder import Task, open_task, write_task
from sandmle.tasks.submission import to_csv
from sandmle.types import Column, MetricRef, Milestones, SubmissionSchema, TaskCard

MAX_MB = 2000  # of public files: a task folder is hashed whole
_NOT_PLAYED = (".zip", ".7z", ".tar", ".gz")


class Prepared(NamedTuple):
    """Competitions that can be played, and why others of the split cannot."""

    tasks: list[Task]
    left_out: dict[str, str]


def lay_out(data: Data, names: Sequence[str], out: Path) -> Prepared:
    """Lay competitions out as task folders below `out`; those that are there are kept.

    Raises `UsageError` if not a single one can be played.
    """
    tasks, left_out = [], {}
    for name in names:
        try:
            tasks.append(_task(data, competition(name), out))
        except (UsageError, TaskError) as error:
            left_out[name] = str(error)
    if not tasks:
        reasons = "".join(f"\n  {name}: {why}" for name, why in left_out.items())
        raise UsageError(f"{data.root}: no competition can be played{reasons}")
    return Prepared(tasks, left_out)


def names_of(chosen: str, only: Sequence[str] = ()) -> Sequence[str]:
    """Return the competitions of a split, or those that are named."""
    return list(only) if only else split(chosen)


def _task(data: Data, one: Competition, out: Path) -> Task:
    if (out / one.id).exists():
        return open_task(out / one.id)
    if not one.same_score or one.metric is None:
        raise UsageError("its metric was not held against MLE-bench's grader; grade its files")
    answers = read_answer_table(data.answers(one))
    levels = data.levels(one)
    metric, names = METRICS.get(one.metric), targets(one, answers)
    if levels.lower_is_better != (metric.direction == "min"):
        raise UsageError("its board and its metric disagree about which way is better")
    public = data.root / one.id / "prepared" / "public"
    files = public_files(public)
    key = one.id_columns[0]
    files.setdefault("public/description.md", f"# {one.id}\n".encode())
    cells = {name: answers.column(name) for name in names}
    if metric.kind.name == "label":
        classes = tuple(sorted({*cells[names[0]]}))
    else:
        classes = tuple(names) if metric.kind.several else ()
    schema = metric.schema(key, names[0], classes, len(answers.rows), one.params)
    files["private/answer.csv"] = to_csv({key: answers.column(key), **as_read(cells, schema)})
    files["public/sample_submission.csv"] = _sample(schema, answers.column(key))
    milestones = Milestones(
        direction=metric.direction,
        median=levels.median, bronze=levels.bronze, silver=levels.silver, gold=levels.gold,
    )  # fmt: skip
    card = TaskCard(
        id=one.id, title=one.id, modality="imported",
        metric=MetricRef(name=metric.name, params=one.params), submission=schema,
        milestones=milestones, files={},
    )  # fmt: skip
    files["private/threshold.json"] = json.dumps(threshold_keys(milestones)).encode()
    files["private/evaluator.py"] = render_evaluator(card).encode()
    return write_task(out, card, files)


def public_files(folder: Path) -> dict[str, bytes]:
    """Read the public files; only those: a sample that lies in the private folder stays there."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: missing; the benchmark's own preparation makes it")
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
    paths = [p for p in paths if p.suffix not in _NOT_PLAYED]
    size = sum(p.stat().st_size for p in paths) / 1e6
    if size > MAX_MB:
        raise UsageError(f"{folder}: {size:,.0f} MB of public files, the limit is {MAX_MB:,}")
    return {f"public/{p.relative_to(folder).as_posix()}": p.read_bytes() for p in paths}


def _sample(schema: SubmissionSchema, ids: Sequence[str]) -> bytes:
    """Return a valid submission that means nothing."""

    def value(column: Column) -> str:
        if column.choices:
            return column.choices[0]
        if schema.row_sum is not None:
            return f"{schema.row_sum / len(schema.columns):.6g}"
        return "0.5" if column.maximum == 1 else "0"

    cells = {column.name: [value(column)] * len(ids) for column in schema.columns}
    return to_csv({str(schema.id_column): list(ids), **cells})


def write_submissions(run: Path, tasks: Sequence[Task]) -> Path:
    """Write `submissions.jsonl` of a run: a line an episode, for `bench grade`."""
    known = {task.id for task in tasks}
    lines = []
    for text in (run / "trajectories.jsonl").read_text(encoding="utf-8").splitlines():
        found: dict[str, Any] = json.loads(text)
        if found["task_id"] not in known:
            continue
        path = run / "submissions" / f"{found['id']}.csv"
        where = str(path) if path.is_file() else None
        lines.append({"competition_id": found["task_id"], "submission_path": where})
    out = run / "submissions.jsonl"
    write_atomic(out, "".join(json.dumps(line) + "\n" for line in lines))
    return out
