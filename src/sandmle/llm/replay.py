"""Replies on disk: what a model said, recorded while it said it, and played again without it."""

import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sandmle.config import PolicySection
from sandmle.errors import ModelError, UsageError
from sandmle.files import sha256
from sandmle.llm.base import LLM, Completion, Message

T = TypeVar("T")

_VERSION = 1  # of the table; in SQLite's `user_version`
_PATIENCE_S = 60.0  # how long to wait for other writers


class Keys:
    """Names the requests of one session: equal requests of equal sessions have equal keys.

    The key is a SHA-256 over the model, how it samples, the seed of the session, the messages, and
    how often the session has sent the same ones before. Messages are compared as `view` shows them:
    it leaves out what differs each time, as do the seconds that something took.
    """

    def __init__(
        self,
        model: str,
        section: PolicySection,
        seed: int | None,
        view: Callable[[str], str] = str,
    ) -> None:
        self.model = model
        self._view = view
        self._sampling = {
            "model": model,
            "temperature": float(section.temperature),
            "turn_tokens": section.turn_tokens,
            "seed": seed,
        }
        self._sent: Counter[str] = Counter()

    def next(self, messages: Sequence[Message]) -> str:
        """Return the key of the next request."""
        shown = [[message.role, self._view(message.content)] for message in messages]
        request = {**self._sampling, "messages": shown}
        same = sha256(_canonical(request))
        number, self._sent[same] = self._sent[same], self._sent[same] + 1
        return sha256(_canonical({**request, "number": number}))


class Store:
    """One SQLite file of replies; safe to use from several threads and processes.

    With `create` it is made if it is not there. Raises `UsageError` if it is not there, cannot be
    opened, or is something else.
    """

    def __init__(self, path: Path, create: bool = False) -> None:
        self.path = path
        self._create = create
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        if not create and not path.is_file():
            raise UsageError(f"{path}: no such file; SANDMLE_RECORD=FILE makes one during a run")
        try:
            with closing(self._connect()) as connection:
                _patiently(lambda: _prepare(connection, create))
        except sqlite3.Error as error:
            raise UsageError(f"{path}: cannot be opened as a file of replies ({error})") from None
        except _Foreign:
            raise UsageError(f"{path}: is no file of replies that this version can read") from None

    def models(self) -> list[str]:
        """Return the names of the models that have replies here, sorted."""
        with self._lock:
            rows = self._open().execute("SELECT DISTINCT model FROM replies ORDER BY model")
            return [name for (name,) in rows.fetchall()]

    def get(self, key: str) -> Completion | None:
        """Return a reply, or None if there is none under this key."""
        with self._lock:
            query = self._open().execute("SELECT reply FROM replies WHERE key = ?", (key,))
            row = query.fetchone()
        return _read(row[0]) if row else None

    def put(self, key: str, model: str, completion: Completion) -> None:
        """Keep a reply; of two under one key the later one, as of an episode played twice."""
        row = (key, model, _canonical(completion._asdict()).decode())
        with self._lock:
            connection = self._open()
            _patiently(
                lambda: connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", row)
            )

    def close(self) -> None:
        """Close the file; may be called twice, and what is asked afterwards opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        mode = "rwc" if self._create else "rw"
        if not self._create and not os.access(self.path.parent, os.W_OK):
            mode += "&immutable=1"  # SQLite has no place for its own files there
        return sqlite3.connect(
            f"file:{quote(str(self.path.absolute()))}?mode={mode}",
            uri=True,
            timeout=_PATIENCE_S,
            isolation_level=None,
            check_same_thread=False,
        )


class Recorder:
    """A model whose replies are kept as it gives them."""

    def __init__(self, llm: LLM, store: Store, keys: Keys) -> None:
        self._llm = llm
        self._store = store
        self._keys = keys

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the model's reply; `ModelError` also if it cannot be kept."""
        key = self._keys.next(messages)
        completion = self._llm.complete(messages)
        try:
            self._store.put(key, self._keys.model, completion)
        except sqlite3.Error as error:
            raise ModelError(f"{self._store.path}: a reply cannot be kept ({error})") from None
        return completion


class Replayer:
    """Gives the replies of a store; nothing else is asked."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return what was recorded; `ModelError` if this was never asked."""
        try:
            completion = self._store.get(self._keys.next(messages))
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise ModelError(f"{self._store.path}: cannot be read ({error})") from None
        if completion is None:
            raise ModelError(
                f"{self._store.path}: no reply of {self._keys.model} to this conversation of "
                f"{len(messages)} messages was recorded; a replay needs the same tasks, the same "
                "settings but policy.name, and programs that print the same as then"
            )
        return completion


class _Foreign(Exception):
    """The file is something else."""


def _prepare(connection: sqlite3.Connection, create: bool) -> None:
    """Check the table, or make it in an empty file; `_Foreign` if something else is there."""
    if create:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE" if create else "BEGIN")
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        if create and version == 0 and not tables:
            connection.execute(
                "CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, "
                "reply TEXT NOT NULL) WITHOUT ROWID"
            )
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION or ("replies",) not in tables:
            raise _Foreign
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _patiently(work: Callable[[], T]) -> T:
    """Do something in a database again while others hold it: SQLite does not always wait itself."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _canonical(value: object) -> bytes:
    """Return equal bytes for equal values; lone surrogates, which models can say, are escaped."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _read(text: str) -> Completion:
    fields = json.loads(text)
    for name in ("ids", "logprobs"):
        fields[name] = tuple(fields[name])
    return Completion(**fields)
