import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandmle.files import (
    Locked,
    UnsafeFile,
    append_line,
    lock,
    read_lines,
    safe_read,
    sha256,
    sha256_file,
    to_json,
    write_atomic,
)


def test_json_is_strict_and_sorted() -> None:
    assert to_json({"b": 1, "a": "é"}) == '{"a": "é", "b": 1}'
    with pytest.raises(ValueError, match="Out of range"):
        to_json({"a": float("nan")})


def test_hashes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(b"abc") == sha256_file(tmp_path / "f") == expected


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "f"
    write_atomic(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_torn_last_line_is_cut_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append_line(path, "one")
    with path.open("a") as stream:
        stream.write('{"half": ')
    assert list(read_lines(path)) == ["one"]
    append_line(path, "two")
    assert list(read_lines(path)) == ["one", "two"]
    assert path.read_text() == "one\ntwo\n"


def test_a_torn_first_line_is_cut_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("half")
    append_line(path, "one")
    assert path.read_text() == "one\n"
    assert list(read_lines(tmp_path / "nothing")) == []


def test_unicode_line_ends_do_not_split_a_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append_line(path, to_json({"a": "x\u2028y\x85z\r"}))
    assert len(list(read_lines(path))) == 1


def test_a_lock_keeps_others_out_and_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom sandmle.files import lock\n"
        f"with lock(Path({str(tmp_path)!r})):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Locked), lock(tmp_path):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with lock(tmp_path):
        pass


def test_safe_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f").write_bytes(b"abc")
    assert safe_read(tmp_path, "sub/f", 3) == b"abc"
    with pytest.raises(UnsafeFile, match="larger than the limit of 2 bytes"):
        safe_read(tmp_path, "sub/f", 2)
    with pytest.raises(FileNotFoundError):
        safe_read(tmp_path, "sub/nothing", 3)


def test_hard_links_are_fine_where_nobody_can_have_planted_them(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "g").hardlink_to(tmp_path / "f")
    assert safe_read(tmp_path, "g", 3, only_name=False) == b"abc"
    with pytest.raises(UnsafeFile, match="2 hard links"):
        safe_read(tmp_path, "g", 3)


def test_a_name_swapped_between_two_calls_is_not_read(tmp_path: Path, monkeypatch) -> None:
    """The hard link is gone when the handle is asked, so the handle must not be what is asked."""
    (tmp_path / "secret").write_bytes(b"secret")
    path = tmp_path / "submission.csv"
    path.hardlink_to(tmp_path / "secret")
    opened = os.open

    def swap(name, flags, *more, **options):
        handle = opened(name, flags, *more, **options)
        if name == "submission.csv":
            path.unlink()
            path.write_bytes(b"mine")
        return handle

    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(UnsafeFile, match="replaced"):
        safe_read(tmp_path, "submission.csv", 100)


def unsafe(kind: str, root: Path) -> str:
    secret = root.parent / "secret"
    secret.write_text("answers")
    path = root / "f"
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "dangling link":
        path.symlink_to(root / "nothing")
    elif kind == "hard link":
        path.hardlink_to(secret)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "linked folder":
        (root / "sub").symlink_to(root.parent)
        return "sub/secret"
    elif kind == "file as folder":
        path.write_text("x")
        return "f/secret"
    elif kind == "root is a file":
        root.rmdir()
        root.write_text("x")
    elif kind == "parent":
        return "../secret"
    elif kind == "absolute":
        return str(secret)
    elif kind == "nothing":
        return ""
    return "f"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "kind",
    [
        "link", "dangling link", "hard link", "fifo", "folder", "linked folder", "file as folder",
        "root is a file", "parent", "absolute", "nothing",
    ],
)  # fmt: skip
def test_what_is_not_a_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    name = unsafe(kind, root)
    before = open_files()
    with pytest.raises(UnsafeFile):
        safe_read(root, name, 100)
    assert open_files() == before, "no descriptor may be left open"
