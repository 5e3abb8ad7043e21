"""Which file an episode was graded on: the bytes that the run folder keeps, and who wrote them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sandmle.files import UnsafeFile, safe_read, sha256
from sandmle.outcome import UNSCORABLE
from sandmle.report.runs import Run
from sandmle.report.tables import Grid
from sandmle.tasks.submission import MAX_BYTES
from sandmle.types import Trajectory


class Graded(NamedTuple):
    """The graded file: the turn (from 1) that first left these bytes, if any, and its bytes."""

    turn: int | None
    sha256: str
    size: int


def graded_file(root: Path, t: Trajectory) -> Graded | None:
    """Return the file that an episode of the run folder `root` was graded on; None without one."""
    try:
        data = safe_read(root, f"submissions/{t.id}.csv", MAX_BYTES)
    except (UnsafeFile, OSError):
        return None
    digest = sha256(data)
    turn = next((u.index + 1 for u in t.turns if u.submission_sha256 == digest), None)
    return Graded(turn, digest, len(data))


def lost(t: Trajectory) -> str:
    """Say that a valid submission was there and is not at the end; empty if that is not so."""
    valid = [u.index + 1 for u in t.turns if u.hidden_grade and u.hidden_grade.status == "ok"]
    if t.grade.status == "ok" or not valid or t.stop_reason in UNSCORABLE:
        return ""
    return f"A valid submission was there after turn {valid[-1]}, but not at the end."


def graded_text(root: Path, t: Trajectory) -> str:
    """Say which file the grade of an episode belongs to, and whether a valid one was lost."""
    found = graded_file(root, t)
    if found is None:
        return lost(t)
    who = f"the file that turn {found.turn} wrote" if found.turn else "a file of no turn"
    said = f"Graded: {who} (SHA-256 {found.sha256[:12]}…, {found.size:,} bytes)."
    return f"{said} {lost(t)}".rstrip()


def graded_table(runs: Sequence[Run]) -> Grid:
    """Return the table of every episode: how it ended, and the file that it was graded on."""
    rows = []
    for run in runs:
        for t in run.trajectories:
            found = graded_file(run.root, t)
            score = "–" if t.grade.score is None else f"{t.grade.score:.5g}"
            which = ("–", "–", "–")
            if found is not None:
                which = (str(found.turn or "–"), found.sha256[:12], str(found.size))
            rows.append([t.id, run.manifest.id, t.stop_reason, t.grade.status, score, *which])
            rows[-1].append("valid earlier, not at the end" if lost(t) else "")
    header = ["Episode", "Run", "Ended", "Grade", "Score", "Turn", "SHA-256", "Bytes", "Note"]
    return Grid(
        "episodes", "Every episode and the file it was graded on", header, rows,
        "The file at the end of an episode, or the one that a search chose by its own validation; "
        "with finalize last_valid the last valid one.",
    )  # fmt: skip
