"""Bytes to and from disk: whole files or none, strict JSON, no links followed, templates."""

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jinja2 import Template

LOCK = ".lock"
_LOCK_ATTEMPTS = 20
_LINK = re.compile(
    r"'[^'\n]+' (?:is a link; give the file itself|has \d+ hard links; write a file of its own)"
)


class Locked(Exception):
    """Another process holds the lock of a folder."""


class UnsafeFile(ValueError):
    """A path that is there but is not one plain file that may be read; says why."""


def to_json(value: Any, indent: int | None = None) -> str:
    """Serialise with sorted keys and no bare NaN or Infinity (`ValueError` instead)."""
    return json.dumps(value, indent=indent, sort_keys=True, allow_nan=False, ensure_ascii=False)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, reading it in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    blob = data.encode() if isinstance(data, str) else data
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(blob)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; the system frees it when the process ends, however it does.

    Raises `Locked` if another process still holds it after two seconds: one that was killed just
    now may have a child that is only beginning, and holds the lock until it has begun.
    """
    with (folder / LOCK).open("a") as stream:
        for attempt in range(_LOCK_ATTEMPTS):
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == _LOCK_ATTEMPTS - 1:
                    raise Locked(str(folder)) from None
                time.sleep(0.1)
        yield


def append_line(path: Path, line: str) -> None:
    """Append one line and force it to disk; a torn line left by an earlier crash is cut first."""
    with path.open("ab+") as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - 1))
        if end and stream.read(1) != b"\n":
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)
        stream.write(line.encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def read_lines(path: Path) -> Iterator[str]:
    """Yield the complete lines of a file; a last line without its newline was never finished."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            if line.endswith("\n"):
                yield line[:-1]


def safe_read(root: Path, name: str, limit: int, only_name: bool = True) -> bytes:
    """Read one plain file below `root` that somebody else may have tampered with.

    Every step of `name` is opened without following links; the file must be regular and hold at
    most `limit` bytes, also when it grows while it is read. With `only_name` it must have no other
    name: a hard link could point at a file that was never meant to be shown.

    Raises `FileNotFoundError` if nothing is there and `UnsafeFile` if what is there is not that.
    """
    return read_limited(safe_open(root, name, only_name), name, limit)


def safe_open(root: Path, name: str, only_name: bool = True) -> int:
    """Open a file as `safe_read` does and return its descriptor, for `read_limited`."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or "\0" in name:
        raise UnsafeFile(f"{name!r} is not a path below the workspace")
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts[:-1]:
            inner = _open_plainly(folder, part, os.O_DIRECTORY)
            os.close(folder)
            folder = inner
        return _open_regular(folder, parts[-1], only_name)
    except UnsafeFile as error:
        raise UnsafeFile(f"{name!r} {error}") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        what = "a link" if error.errno == errno.ELOOP else f"no plain file ({error.strerror})"
        raise UnsafeFile(f"{name!r} is {what}; give the file itself") from error
    finally:
        if folder >= 0:
            os.close(folder)


def _open_plainly(folder: int, name: str, flags: int = 0) -> int:
    flags |= os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(name, flags, dir_fd=folder)


def _open_regular(folder: int, name: str, only_name: bool) -> int:
    handle = _open_plainly(folder, name)
    try:
        opened = os.fstat(handle)
        if not stat.S_ISREG(opened.st_mode):
            raise UnsafeFile("is not a regular file")
        # one answer, about the name: what it is now, and how many names that has
        named = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino):
            raise UnsafeFile("was replaced while it was opened")
        if only_name and named.st_nlink != 1:
            raise UnsafeFile(f"has {named.st_nlink} hard links; write a file of its own")
    except BaseException:
        os.close(handle)
        raise
    return handle


def is_link_refusal(reason: str) -> bool:
    """Return whether `safe_read` said this of a file that was a link, symbolic or hard.

    >>> is_link_refusal("'a.csv' has 2 hard links; write a file of its own")
    True
    >>> is_link_refusal("'a.csv' is not a regular file")
    False
    """
    return _LINK.fullmatch(reason) is not None


def read_limited(handle: int, name: str, limit: int) -> bytes:
    """Read a descriptor to its end and close it; `UnsafeFile` above `limit` bytes."""
    with os.fdopen(handle, "rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise UnsafeFile(f"{name!r} is larger than the limit of {limit:,} bytes")
    return data


class Entry(NamedTuple):
    """What is at one path below a folder: the path from there, and its `lstat`."""

    name: str
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        """Return whether it is a file, and no link to one."""
        return stat.S_ISREG(self.status.st_mode)


def walk(folder: Path) -> list[Entry]:
    """Return everything below a folder, folders before their contents; no link is followed."""
    found: list[Entry] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                found.append(Entry(f"{below}{entry.name}", entry.stat(follow_symlinks=False)))
                if found[-1].is_folder:
                    waiting.append(f"{found[-1].name}/")
    return sorted(found)


def render(package: str, name: str, **values: Any) -> str:
    """Fill a template that lies beside the modules of `package`; an unknown name is an error."""
    return str(_template(package, name).render(**values))


@cache
def _template(package: str, name: str) -> "Template":
    from jinja2 import StrictUndefined, Template

    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    template: Template = Template(text, undefined=StrictUndefined, keep_trailing_newline=True)
    return template
