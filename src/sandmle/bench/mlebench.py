"""`bench grade --benchmark mle-bench`: many submissions to one report with MLE-bench's keys.

Two modes. `strict` checks the form of a submission first (`sandmle.bench.strict`); `upstream` calls
the user's installed grader bug for bug, and the report keeps what it writes, a bare `NaN` included.
A strict report has null in the place of NaN; why a score is missing stands in the notes.
"""

import json
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sandmle.bench.boards import read_board
from sandmle.bench.facts import Competition, competition
from sandmle.bench.medals import DIGITS, Thresholds, rank, thresholds
from sandmle.bench.strict import Scored, strict_score
from sandmle.bench.upstream import package_boards, require_upstream, upstream_score
from sandmle.errors import UsageError
from sandmle.files import write_atomic

Mode = Literal["strict", "upstream"]
MODES: tuple[Mode, ...] = ("strict", "upstream")
_TOTALS = {
    "total_runs_with_submissions": "submission_exists",
    "total_valid_submissions": "valid_submission",
    "total_medals": "any_medal",
    "total_gold_medals": "gold_medal",
    "total_silver_medals": "silver_medal",
    "total_bronze_medals": "bronze_medal",
    "total_above_median": "above_median",
}


class Entry(NamedTuple):
    """One line of a submissions file; a path that is null is a submission that is not there."""

    competition_id: str
    path: Path


class Result(NamedTuple):
    """A competition's report as MLE-bench writes it, and why there is no score."""

    report: dict[str, Any]
    reason: str


class Data:
    """A prepared data directory with the boards that belong to it."""

    def __init__(self, root: Path, boards: Path | None = None) -> None:
        self.root = root
        self._boards = boards or package_boards()

    def answers(self, one: Competition) -> Path:
        """Return the answers of a competition; `UsageError` if it is not prepared."""
        path = self.root / one.id / one.answers_file
        if not path.is_file():
            raise UsageError(
                f"{path}: missing; `mlebench prepare -c {one.id} --data-dir {self.root}` makes it"
            )
        return path

    def levels(self, one: Competition) -> Thresholds:
        """Return the thresholds of a competition's board, from the user's own copy."""
        if self._boards is None:
            raise UsageError(
                "no leaderboards: name their folder with --boards (mlebench/competitions of a "
                "checkout of openai/mle-bench after `git lfs pull`)"
            )
        places = (self._boards / one.id / "leaderboard.csv", self._boards / f"{one.id}.csv")
        path = next((p for p in places if p.is_file()), places[0])
        return thresholds(read_board(path, one.teams))


def read_submissions(path: Path) -> list[Entry]:
    """Read a submissions file: one JSON object a line; blank lines, # and // are skipped."""
    entries = []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.strip().startswith(("#", "//")):
            continue
        try:
            found = json.loads(line)
            name, where = found["competition_id"], found["submission_path"]
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                f'{path}, line {number}: write {{"competition_id": ..., "submission_path": ...}}'
            ) from None
        entries.append(Entry(str(name), Path(str(where))))
    if not entries:
        raise UsageError(f"{path}: there is no submission in it")
    return entries


def grade_one(entry: Entry, data: Data, mode: Mode = "strict") -> Result:
    """Grade one submission.

    Raises `UsageError` for a competition that is unknown, not prepared or without a board, and
    `GradingError` if the answers or the grader are at fault: that is never a submission's score.
    """
    one = competition(entry.competition_id)
    answers, levels = data.answers(one), data.levels(one)
    exists = entry.path.is_file() and entry.path.suffix.lower() == ".csv"
    scored = Scored(None, f"{entry.path}: there is no such .csv file")
    if exists:
        content = entry.path.read_bytes()
        scored = (
            strict_score(content, one, answers)
            if mode == "strict"
            else upstream_score(one.id, answers, content)
        )
    score = None if scored.score is None else round(scored.score, DIGITS)
    undefined = score is not None and not math.isfinite(score)
    reason = f"the grader gives {score}" if undefined else scored.reason
    if undefined and mode == "strict":
        score = None
    return Result(_report(entry, score, exists, levels), reason)


def _report(entry: Entry, score: float | None, exists: bool, levels: Thresholds) -> dict[str, Any]:
    medal = rank(score, levels)
    return {
        "competition_id": entry.competition_id,
        "score": score,
        "gold_threshold": levels.gold,
        "silver_threshold": levels.silver,
        "bronze_threshold": levels.bronze,
        "median_threshold": levels.median,
        "any_medal": medal.any,
        "gold_medal": medal.gold,
        "silver_medal": medal.silver,
        "bronze_medal": medal.bronze,
        "above_median": medal.above_median,
        "submission_exists": exists,
        "valid_submission": score is not None,
        "is_lower_better": levels.lower_is_better,
        "created_at": datetime.now().isoformat(),  # local and without a zone, as there
        "submission_path": str(entry.path),
    }


def totals(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return MLE-bench's grading report over some competition reports."""
    counts = {name: sum(bool(r[key]) for r in reports) for name, key in _TOTALS.items()}
    return {"total_runs": len(reports), **counts, "competition_reports": list(reports)}


def grade_file(
    submissions: Path, data: Data, out: Path, mode: Mode = "strict"
) -> tuple[Path, dict[str, Any], list[dict[str, str]]]:
    """Grade every line of a file; write the report, and notes on scores that are missing.

    Returns where the report is, the report, and the notes. Nothing is written unless all could be
    graded.
    """
    results = list(_graded(read_submissions(submissions), data, mode))
    report = totals([one.report for one in results])
    notes = [
        {
            "competition_id": one.report["competition_id"],
            "submission_path": one.report["submission_path"],
            "reason": one.reason,
        }
        for one in results
        if one.reason
    ]
    out.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-GMT")
    path = out / f"{stamp}_grading_report.json"
    strict = mode == "strict"
    write_atomic(path, json.dumps(report, indent=2, allow_nan=not strict) + "\n")
    told = {"mode": mode, "notes": notes}
    write_atomic(out / f"{stamp}_grading_notes.json", json.dumps(told, indent=2) + "\n")
    return path, report, notes


def _graded(entries: Sequence[Entry], data: Data, mode: Mode) -> Iterator[Result]:
    if mode == "upstream":
        require_upstream()
    for entry in entries:  # all of them are looked up before the first is graded
        one = competition(entry.competition_id)
        data.answers(one)
        data.levels(one)
    for entry in entries:
        yield grade_one(entry, data, mode)
