"""The run folder: the other contract on disk (`docs/formats.md`).

The folder is the state of the run: the same command finds in it what is finished and does the rest.
"""

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sandmle.config import Config, dump_config
from sandmle.errors import TaskError, UsageError
from sandmle.files import LOCK, Locked, append_line, lock, read_lines, to_json, write_atomic
from sandmle.outcome import UNSCORABLE
from sandmle.rollout.record import EpisodeKey, versions
from sandmle.types import RunManifest, Trajectory, first_fault

# what a run that was killed while it started may have left
_STARTED = {"journal", "submissions", "tokens", "config.toml", LOCK}


class RunFolder:
    """A run on disk; safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()

    @property
    def trajectories_path(self) -> Path:
        """Return the file with one finished trajectory a line."""
        return self.root / "trajectories.jsonl"

    def journal_path(self, episode_id: str) -> Path:
        """Return where the events of an episode are written as they happen."""
        return self.root / "journal" / f"{episode_id}.jsonl"

    def tokens_path(self, episode_id: str) -> Path:
        """Return where the token ledger of an episode is kept."""
        return self.root / "tokens" / f"{episode_id}.npz"

    @contextmanager
    def writing(self, config: Config, corpus_hash: str, command: str) -> Iterator[None]:
        """Hold the folder while a run is written to it: create it, or go on with the same run.

        Raises `UsageError` if it holds something else, cannot be written, or another process is
        writing to it. What may differ between two parts of a run is `concurrency`, where the corpus
        lies, and how much may be asked of a model's server.
        """
        with ExitStack() as held:
            try:
                self._refuse_foreign()
                for name in ("journal", "submissions", "tokens"):
                    (self.root / name).mkdir(parents=True, exist_ok=True)
                held.enter_context(lock(self.root))
            except Locked:
                raise UsageError(f"{self.root}: another process is writing to it") from None
            except OSError as error:
                raise UsageError(f"{self.root}: cannot be written ({error.strerror})") from None
            self._begin(config, corpus_hash, command)
            yield

    def _refuse_foreign(self) -> None:
        with suppress(FileNotFoundError):
            foreign = [path for path in self.root.iterdir() if path.name not in _STARTED]
            if foreign and not (self.root / "run.json").exists():
                raise UsageError(
                    f"{self.root}: is not empty and holds no run; choose another folder"
                )

    def _begin(self, config: Config, corpus_hash: str, command: str) -> None:
        if (self.root / "run.json").exists():
            self._check_same(config, corpus_hash)
            return
        write_atomic(self.root / "config.toml", dump_config(config))
        manifest = RunManifest(
            id=self.root.resolve().name,
            command=command,
            config=config.model_dump(mode="json"),
            corpus_hash=corpus_hash,
            versions=versions(),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            host={"system": platform.platform(), "cores": os.cpu_count()},
        )
        write_atomic(self.root / "run.json", to_json(manifest.model_dump(), indent=2) + "\n")

    def add(self, trajectory: Trajectory, submission: bytes | None) -> None:
        """Write one finished episode: its submission, then its line."""
        if submission is not None:
            write_atomic(self.root / "submissions" / f"{trajectory.id}.csv", submission)
        with self._lock:
            append_line(self.trajectories_path, to_json(trajectory.model_dump(mode="json")))

    def trajectories(self) -> list[Trajectory]:
        """Return the finished episodes by id; of one that was played again, the last."""
        latest = {trajectory.id: trajectory for trajectory in self._read()}
        return [latest[name] for name in sorted(latest)]

    def finished(self) -> set[str]:
        """Return the keys (as JSON) of the episodes that need not be played again."""
        done = [t for t in self.trajectories() if t.stop_reason not in UNSCORABLE]
        fields = EpisodeKey.model_fields
        return {key_text(EpisodeKey(**{f: getattr(t, f) for f in fields})) for t in done}

    def _read(self) -> Iterator[Trajectory]:
        number = 0
        try:
            for line in read_lines(self.trajectories_path):
                number += 1
                yield Trajectory.model_validate_json(line)
        except ValueError as error:
            reason = first_fault(error) if isinstance(error, ValidationError) else str(error)
            raise TaskError(f"{self.trajectories_path}, line {number}: {reason}") from None

    def _check_same(self, config: Config, corpus_hash: str) -> None:
        try:
            text = (self.root / "run.json").read_bytes()
            manifest = RunManifest.model_validate_json(text)
            # a run of an earlier version knows nothing of keys that have come since
            configured = Config.model_validate(manifest.config).model_dump(mode="json")
        except ValidationError as error:
            raise TaskError(f"{self.root / 'run.json'}: {first_fault(error)}") from None
        if manifest.corpus_hash != corpus_hash:
            raise UsageError(f"{self.root}: holds a run on other tasks; choose another --out")
        before, now = _essence(configured), _essence(config.model_dump(mode="json"))
        changed = sorted(key for key in now if now[key] != before.get(key))
        if changed:
            raise UsageError(
                f"{self.root}: holds a run with another {', '.join(changed)}; "
                f"choose another --out, or go on with --config {self.root / 'config.toml'}"
            )


def _essence(config: dict[str, Any]) -> dict[str, Any]:
    """Return what two parts of one run must have in common."""
    corpus = {key: value for key, value in config["corpus"].items() if key != "path"}
    sandbox = {key: config["sandbox"][key] for key in ("backend", "limits")}
    policy = {key: config["policy"][key] for key in ("name", "temperature", "turn_tokens")}
    return {
        **config, "corpus": corpus, "sandbox": sandbox, "policy": policy, "concurrency": None,
        "sft": None,
    }  # fmt: skip


def key_text(key: EpisodeKey) -> str:
    """Return a key as text that can be compared."""
    return to_json(key.model_dump(mode="json"))
