"""The workbench: one task, one workspace, one journal. Every scaffold works on it.

Nothing here raises for what a policy does. After each execution, when every process of it is dead,
the bytes of `submission.csv` are kept and graded out of band; the grade is recorded, never shown.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from sandmle.config import EnvSection
from sandmle.env.flags import verdicts
from sandmle.env.journal import Journal
from sandmle.env.preview import preview
from sandmle.env.protocol import cut, neutralise
from sandmle.errors import SandboxError
from sandmle.files import UnsafeFile, sha256
from sandmle.grading.grader import Grader
from sandmle.sandbox.base import Sandbox, Workspace
from sandmle.tasks.folder import Task
from sandmle.tasks.submission import MAX_BYTES
from sandmle.types import (
    ErrorRecord,
    ExecResult,
    Grade,
    Isolation,
    Limits,
    StopReason,
    Turn,
)

SUBMISSION = "submission.csv"
# what a compact prompt has of the data: characters of a header and of a row, names of other tables
_HEADER, _ROW, _OTHERS = 240, 120, 3
_USUAL = ("train.csv", "test.csv", "sample_submission.csv")


class Snapshot(NamedTuple):
    """The submission as one execution left it; `data` is None if there was no usable file."""

    data: bytes | None
    grade: Grade

    @property
    def digest(self) -> str | None:
        """Return the SHA-256 of the bytes."""
        return sha256(self.data) if self.data is not None else None


class Trial(NamedTuple):
    """What became of a program that had a workspace of its own; no snapshot if it was not run."""

    result: ExecResult
    snapshot: Snapshot | None


class Outcome(NamedTuple):
    """How an episode ended: everything of it that is not about the run it belongs to."""

    turns: tuple[Turn, ...]
    stop_reason: StopReason
    grade: Grade
    submission: bytes | None
    isolation: Isolation
    error: ErrorRecord | None
    planted: tuple[str, ...] = ()  # files in the workspace that are named like verdicts


class Workbench:
    """What a scaffold may do with a task; `turns` is its record, `seed` what its chances come from.

    Raises `TaskError` for a task whose files are not as they were written.
    """

    def __init__(
        self,
        task: Task,
        sandbox: Sandbox,
        config: EnvSection | None = None,
        limits: Limits | None = None,
        journal: Journal | None = None,
        grader: Grader | None = None,
        workspace: Workspace | None = None,
        seed: int = 0,
    ) -> None:
        task.verify()
        self.task = task
        self.config = config or EnvSection()
        self.limits = limits or Limits()
        self.journal = journal or Journal()
        self.turns: list[Turn] = []
        self.seed = seed
        self._sandbox = sandbox
        self._grader = grader or Grader(task)
        self._workspace = workspace or sandbox.open(task.public, self.limits)
        self._snapshots: list[Snapshot] = []
        self._planted: set[str] = set()
        self._started = time.monotonic()
        self._submitted: Snapshot | None = None
        self._outcome: Outcome | None = None

    def preview(self) -> str:
        """Describe the task's public files."""
        return _preview(self.task.public, self.task.content_hash)

    def head(self) -> tuple[str, str]:
        """Return header and first line of the training table, cut; empty if there is no table."""
        path = self.task.public / "train.csv"
        if not path.is_file():
            return "", ""
        with path.open(encoding="utf-8", errors="replace") as stream:
            header, row = stream.readline(10_000), stream.readline(10_000)
        return cut(neutralise(header), _HEADER), cut(neutralise(row), _ROW)

    def other_tables(self) -> list[str]:
        """Return the names of the tables beside those that every task has, the first few."""
        names = sorted(path.name for path in self.task.public.glob("*.csv"))
        return [neutralise(name) for name in names if name not in _USUAL][:_OTHERS]

    def run_code(self, code: str) -> ExecResult:
        """Run a program, then capture and grade what it left as its submission."""
        trial = self._run(self._workspace, code)
        if trial.snapshot is not None:
            self._snapshots.append(trial.snapshot)
        return trial.result

    def trial(self, code: str) -> Trial:
        """Run a program in an empty workspace that is gone afterwards; it stays for no other.

        What it left counts if it is handed to `submit`. Safe to call from several threads.
        """
        workspace = self._sandbox.open(self.task.public, self.limits)
        try:
            return self._run(workspace, code)
        finally:
            workspace.close()

    def submit(self, snapshot: Snapshot) -> None:
        """Make this the submission that counts, whatever `env.finalize` says; the last is it."""
        self._submitted = snapshot

    @property
    def snapshot(self) -> Snapshot | None:
        """Return the submission as the last execution left it; None before the first."""
        return self._snapshots[-1] if self._snapshots else None

    def validity(self) -> str:
        """Return the sentence about the submission's format that the agent may see."""
        return self.told(self.snapshot)

    def told(self, snapshot: Snapshot | None) -> str:
        """Return what the agent may be told of a submission's format; nothing without feedback."""
        if self.config.feedback == "none":
            return ""
        grade = snapshot.grade if snapshot else Grade(status="missing")
        if grade.status == "missing":
            return f"{SUBMISSION}: not there"
        if grade.status == "invalid":
            return f"{SUBMISSION}: not valid: {neutralise(grade.reason)}"
        return f"{SUBMISSION}: valid"

    def seconds_left(self) -> float | None:
        """Return what is left of the episode's wall time; None if it has no limit."""
        if self.config.wall_s is None:
            return None
        return self.config.wall_s - (time.monotonic() - self._started)

    def _may_take(self) -> float | None:
        """Return the seconds of a program that begins now, if the episode's end is before its own.

        Up to the end of the grace, and one second for what was asked for too late.
        """
        left = self.seconds_left()
        if left is None or left + self.config.grace_s >= self.limits.wall_s:
            return None
        return max(left + self.config.grace_s, 1.0)

    def fork(self) -> "Workbench":
        """Return a workbench on the same task with an empty workspace; close it with `finish`."""
        return Workbench(
            self.task,
            self._sandbox,
            self.config,
            self.limits,
            self.journal,
            self._grader,
            self._workspace.fork(),
        )

    def record(self, turn: Turn) -> None:
        """Add a turn to the record."""
        self.turns.append(turn)
        self.journal.event("turn", turn=turn.model_dump(mode="json", exclude={"result"}))

    def finish(self, reason: StopReason, error: ErrorRecord | None = None) -> Outcome:
        """End the episode: choose the submission that counts, close the workspace.

        The first call decides; later ones return the same outcome.
        """
        if self._outcome is None:
            chosen = self._chosen()
            if chosen.grade.status == "grader_error" and error is None:
                reason = "grader_error"
                error = ErrorRecord(
                    boundary="grading", type="GradingError", message=chosen.grade.reason
                )
            self._outcome = Outcome(
                tuple(self.turns),
                reason,
                chosen.grade,
                chosen.data,
                self._sandbox.isolation,
                error,
                tuple(sorted(self._planted)),
            )
            grade = chosen.grade.model_dump(mode="json")
            self.journal.event("end", reason=reason, grade=grade, sha256=chosen.digest)
            self._workspace.close()
        return self._outcome

    def _run(self, workspace: Workspace, code: str) -> Trial:
        wall_s = self._may_take()
        result = workspace.run(code) if wall_s is None else workspace.run(code, wall_s)
        self.journal.event("exec", code=code, result=result.model_dump(mode="json"))
        if result.status == "infra":
            return Trial(result, None)
        snapshot = self._capture(workspace)
        with suppress(SandboxError, OSError):  # a look that fails ends no episode
            self._planted.update(verdicts(workspace.list()))
        grade = snapshot.grade.model_dump(mode="json")
        self.journal.event("hidden_grade", sha256=snapshot.digest, grade=grade)
        return Trial(result, snapshot)

    def _capture(self, workspace: Workspace) -> Snapshot:
        try:
            data = workspace.read(SUBMISSION, MAX_BYTES)
        except FileNotFoundError:
            return Snapshot(None, self._grader.grade(None))
        except (UnsafeFile, OSError) as error:
            return Snapshot(None, Grade(status="invalid", reason=str(error)))
        return Snapshot(data, self._grader.grade(data))

    def _chosen(self) -> Snapshot:
        if self._submitted is not None:
            return self._submitted
        nothing = Snapshot(None, self._grader.grade(None))
        return choose(self._snapshots, self.config.finalize) or nothing


def choose(
    snapshots: Sequence[Snapshot], finalize: Literal["last", "last_valid"]
) -> Snapshot | None:
    """Return the snapshot that counts: the last one, or the last valid one if there is any."""
    if finalize == "last_valid":
        valid = [one for one in snapshots if one.grade.status == "ok"]
        snapshots = valid or snapshots
    return snapshots[-1] if snapshots else None


@lru_cache(maxsize=32)
def _preview(public: Path, content_hash: str) -> str:
    """Describe a task's files; the episodes of a group see the same, which the hash names."""
    return preview(public)
