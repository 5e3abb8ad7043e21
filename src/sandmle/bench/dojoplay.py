"""`bench mle-dojo`: a policy on competitions of MLE-Dojo's layout, and their HumanRanks.

A competition becomes a task folder: what is in `public/` (its description.txt as description.md),
the answers apart, and milestones by MLE-bench's medal rule on the private board (the public one
where there is no other). What the agent is told is `env.feedback`: the format of its submission.
MLE-Dojo itself tells it score and places after each execution.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from sandmle.bench.humanrank import Variant, require_direction
from sandmle.bench.medals import thresholds
from sandmle.bench.mlebench import Entry, read_submissions
from sandmle.bench.mledojo import (
    BOARDS,
    VARIANTS,
    DojoCompetition,
    DojoGrade,
    form_of,
    grade_dojo,
    metric_of,
    open_competition,
    rank_score,
)
from sandmle.bench.play import Prepared, public_files
from sandmle.errors import GradingError, TaskError, UsageError
from sandmle.files import to_json, write_atomic
from sandmle.grading.evaluator import render_evaluator
from sandmle.grading.grader import threshold_keys
from sandmle.rollout.folder import RunFolder
from sandmle.tasks.folder import Task, open_task, write_task
from sandmle.types import Direction, MetricRef, Milestones, TaskCard

RANKS = "human_rank.json"
_NO_BOARD = "has no leaderboard, so there is no HumanRank"


def lay_out(
    data_dir: Path, names: Sequence[str], out: Path, metrics: Mapping[str, str] | None = None
) -> Prepared:
    """Lay competitions out as task folders below `out`; those that are there are kept.

    `metrics` names metrics by competition, where they are not known or others are wanted. Raises
    `UsageError` if not a single competition can be played.
    """
    tasks, left_out = [], {}
    for name in names:
        try:
            one = open_competition(data_dir / name)
            tasks.append(_task(one, metric_of(name, metrics), out))
        except (UsageError, TaskError, GradingError) as error:
            left_out[name] = str(error)
    if not tasks:
        reasons = "".join(f"\n  {name}: {why}" for name, why in left_out.items())
        raise UsageError(f"{data_dir}: no competition can be played{reasons}")
    return Prepared(tasks, left_out)


def _task(one: DojoCompetition, ref: MetricRef, out: Path) -> Task:
    if (out / one.name).exists():
        made = open_task(out / one.name)
        if made.card.metric != ref:
            raise UsageError(f"{made.root}: was made for {made.card.metric.name}; remove it")
        return made
    form = form_of(one, ref)
    card = TaskCard(
        id=one.name, title=one.name, modality="imported", metric=ref, submission=form.schema,
        milestones=_milestones(one, form.metric.direction), files={},
    )  # fmt: skip
    files = public_files(one.root / "public")
    files["public/description.md"] = files.pop("public/description.txt")
    files["private/answer.csv"] = form.answers
    files["private/threshold.json"] = json.dumps(threshold_keys(card.milestones)).encode()
    files["private/evaluator.py"] = render_evaluator(card).encode()
    return write_task(out, card, files)


def _milestones(one: DojoCompetition, direction: Direction) -> Milestones:
    boards = one.boards()
    which = next((name for name in BOARDS if name in boards), None)
    if which is None:
        raise UsageError(f"{one.name}: {_NO_BOARD}")
    require_direction(boards[which], direction, f"{one.name}, {which} leaderboard")
    levels = thresholds(sorted(boards[which], reverse=direction == "max"))
    return Milestones(
        direction=direction,
        median=levels.median, bronze=levels.bronze, silver=levels.silver, gold=levels.gold,
    )  # fmt: skip


def write_ranks(run: Path, data_dir: Path, tasks: Path) -> dict[str, dict[str, float]]:
    """Write the HumanRanks of a run, by trajectory id and variant, and return them.

    `tasks` is where the competitions were laid out. An episode without a score is behind everybody,
    also where the failure was ours.
    """
    found = {}
    for t in RunFolder(run).trajectories():
        one = open_competition(data_dir / t.task_id)
        direction = open_task(tasks / t.task_id).card.milestones.direction
        grades = {v: rank_score(t.grade.score, one, direction, v) for v in VARIANTS}
        found[t.id] = _ranks(one, grades)
    write_atomic(run / RANKS, to_json(found, indent=2) + "\n")
    return found


def _ranks(one: DojoCompetition, grades: Mapping[Variant, DojoGrade]) -> dict[str, float]:
    ranks: dict[str, float] = {}
    for variant, grade in grades.items():
        if grade.human_rank is None:
            raise UsageError(f"{one.name}: {_NO_BOARD}")
        ranks[variant] = grade.human_rank
    return ranks


def mean_ranks(ranks: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    """Return the mean HumanRank of each variant; None without any."""
    return {v: fmean(one[v] for one in ranks) if ranks else None for v in VARIANTS}


def grade_file(
    submissions: Path, data_dir: Path, out: Path, metrics: Mapping[str, str] | None = None
) -> tuple[Path, dict[str, Any]]:
    """Grade every line of a file of submissions, as for MLE-bench; write and return the report.

    Nothing is written unless all could be graded.
    """
    reports = [_report(entry, data_dir, metrics) for entry in read_submissions(submissions)]
    valid = sum(one["valid_submission"] for one in reports)
    means = mean_ranks([one["human_rank"] for one in reports])
    report = {
        "total_runs": len(reports), "total_valid_submissions": valid, "human_rank": means,
        "competition_reports": reports,
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-GMT")
    path = out / f"{stamp}_human_rank_report.json"
    write_atomic(path, to_json(report, indent=2) + "\n")
    return path, report


def _report(entry: Entry, data_dir: Path, metrics: Mapping[str, str] | None) -> dict[str, Any]:
    one = open_competition(data_dir / entry.competition_id)
    ref = metric_of(one.name, metrics)
    data = entry.path.read_bytes() if entry.path.is_file() else None
    grades = {variant: grade_dojo(data, one, ref, variant) for variant in VARIANTS}
    first = grades["code"]
    return {
        "competition_id": one.name,
        "submission_path": str(entry.path),
        "metric": ref.name,
        "score": first.score,
        "valid_submission": first.score is not None,
        "positions": {variant: grade.positions for variant, grade in grades.items()},
        "human_rank": _ranks(one, grades),
        "reason": first.reason,
    }
