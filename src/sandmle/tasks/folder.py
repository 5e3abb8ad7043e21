"""The task folder: one of the two contracts on disk (`docs/formats.md`).

    <task_id>/
      task.json    what may be known of the task, and the SHA-256 of every other file
      public/      the agent's whole world
      private/     never where agent code runs

A folder is written beside its final place and renamed into it, so a folder with a `task.json` is
whole. Opening reads `task.json` only; the rest is read when asked for. A folder may come from
anybody: links in it are refused, never followed.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pydantic import ValidationError

from sandmle.display import facts_table
from sandmle.errors import TaskError, UsageError
from sandmle.files import UnsafeFile, safe_read, sha256, sha256_file, to_json
from sandmle.types import MILESTONES, TaskCard, TaskSpec, first_fault

CARD = "task.json"
_MAX_FILE = 1 << 30
_FEW = 50  # files that are flushed to disk one by one


class Solution(NamedTuple):
    """A script of the ladder: `NN-name.py`, easiest first, reading only `input/`."""

    name: str
    code: str


class Task:
    """One task folder, read lazily; equal content means equal `content_hash`, wherever it lies."""

    def __init__(self, root: Path, card: TaskCard) -> None:
        self.root = root
        self.card = card

    @property
    def id(self) -> str:
        """Return the id, which is also the folder's name."""
        return self.card.id

    @property
    def public(self) -> Path:
        """Return the folder that agent code may see."""
        return self.root / "public"

    @property
    def private(self) -> Path:
        """Return the folder that agent code must never see."""
        return self.root / "private"

    @property
    def answer_path(self) -> Path:
        """Return the hidden answers: `answer.csv`, or `answer.jsonl` of an imported task."""
        for name in ("answer.csv", "answer.jsonl"):
            if (self.private / name).is_file():
                return self.private / name
        raise TaskError(f"{self.private / 'answer.csv'}: missing; the task cannot be graded")

    @property
    def description(self) -> str:
        """Return the text of `public/description.md`."""
        return self.text("public/description.md")

    @cached_property
    def content_hash(self) -> str:
        """Return the SHA-256 of the card, which holds the hashes of all files."""
        return sha256(to_json(self.card.model_dump(mode="json")).encode())

    @cached_property
    def spec(self) -> TaskSpec | None:
        """Return the hidden specification; None for a task that came without one."""
        if not (self.private / "spec.json").exists():
            return None
        try:
            return TaskSpec.model_validate_json(self.read("private/spec.json"))
        except ValidationError as error:
            raise TaskError(f"{self.private / 'spec.json'}: {first_fault(error)}") from None

    def solutions(self) -> list[Solution]:
        """Return the ladder's scripts, easiest first."""
        paths = sorted((self.private / "solutions").glob("[0-9][0-9]-*.py"))
        names = [path.relative_to(self.root).as_posix() for path in paths]
        return [Solution(Path(name).stem[3:], self.text(name)) for name in names]

    def faults(self) -> list[str]:
        """Compare every file with its recorded hash; return what differs, one line each."""
        found = {p for p in self.root.rglob("*") if p.is_file() or p.is_symlink()}
        names = {p.relative_to(self.root).as_posix(): p for p in found}
        names.pop(CARD, None)
        lines = [
            f"{name}: not listed in {CARD}" for name in sorted(set(names) - set(self.card.files))
        ]
        for name, digest in self.card.files.items():
            path = names.get(name)
            if path is None:
                lines.append(f"{name}: missing")
            elif path.is_symlink():
                lines.append(f"{name}: a link; a task folder holds plain files only")
            elif sha256_file(path) != digest:
                lines.append(f"{name}: changed since {CARD} was written")
        return lines

    def verify(self) -> None:
        """Raise `TaskError` unless every file is as it was written; looked at once."""
        faults = self._faults
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise TaskError(f"{self.root}: {faults[0]}{more}")

    @cached_property
    def _faults(self) -> list[str]:
        return self.faults()

    def read(self, name: str) -> bytes:
        """Read a file of the task by its path in the folder; `TaskError` if that cannot be."""
        try:
            return safe_read(self.root, name, _MAX_FILE, only_name=False)
        except FileNotFoundError:
            raise TaskError(f"{self.root / name}: missing") from None
        except (OSError, UnsafeFile) as error:
            raise TaskError(f"{self.root / name}: cannot be read ({error})") from None

    def text(self, name: str) -> str:
        """Read a file of the task as UTF-8 text."""
        try:
            return self.read(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TaskError(f"{self.root / name}: not UTF-8 text ({error.reason})") from None

    def __repr__(self) -> str:
        return f"Task({self.id!r}, metric={self.card.metric.name!r}, root={str(self.root)!r})"

    def _repr_html_(self) -> str:
        levels = self.card.milestones
        better = "higher" if levels.direction == "max" else "lower"
        facts = {
            "title": self.card.title,
            "modality": self.card.modality,
            "metric": f"{self.card.metric.name}, {better} is better",
            "milestones": ", ".join(f"{n} {getattr(levels, n):.4g}" for n in MILESTONES),
            "answer": f"{self.card.submission.n_rows} rows",
            "ladder": ", ".join(f"{rung.name} {rung.test:.4g}" for rung in self.card.ladder),
            "folder": self.root,
        }
        return facts_table(f"Task {self.id}", facts)


def open_task(path: Path | str) -> Task:
    """Open a task folder.

    Raises `TaskError` with path and reason if it is broken, `UsageError` if nothing is there.
    """
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder")
    try:
        card = TaskCard.model_validate_json(safe_read(root, CARD, _MAX_FILE, only_name=False))
    except (OSError, UnsafeFile) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise TaskError(f"{root / CARD}: cannot be read ({reason})") from None
    except ValidationError as error:
        raise TaskError(f"{root / CARD}: {first_fault(error)}") from None
    if card.id != root.absolute().name:
        raise TaskError(f"{root}: the folder's name is not the task's id; rename it to {card.id}")
    for name in ("public", "private"):
        if not (root / name).is_dir() or (root / name).is_symlink():
            raise TaskError(f"{root / name}: missing, or not a plain folder")
    return Task(root, card)


def write_task(parent: Path, card: TaskCard, files: Mapping[str, bytes]) -> Task:
    """Write a task folder below `parent`, whole or not at all.

    `files` maps paths such as `public/train.csv` to content; `card.files` is filled in. Raises
    `UsageError` if the folder is there already.
    """
    root = parent / card.id
    if root.exists():
        raise UsageError(f"{root}: is there already; choose another folder or remove it")
    card = card.model_copy(update={"files": {name: sha256(files[name]) for name in sorted(files)}})
    parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=parent, prefix=f".{card.id}."))
    try:
        each = len(files) <= _FEW
        for name, content in files.items():
            _write(draft, name, content, each)
        if not each:  # hundreds of pictures: one flush of everything is far faster than one a file
            os.sync()
        # last, and the rename comes after it: without a card, or under a dotted name, nothing loads
        _write(draft, CARD, (to_json(card.model_dump(mode="json"), indent=2) + "\n").encode())
        draft.chmod(0o755)
        draft.rename(root)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Task(root, card)


def _write(root: Path, name: str, content: bytes, flush: bool = True) -> None:
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise UsageError(f"{name!r} is not a path below the task folder")
    path = root / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as stream:
        stream.write(content)
        if flush:
            stream.flush()
            os.fsync(stream.fileno())
