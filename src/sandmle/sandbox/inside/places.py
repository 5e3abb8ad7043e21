"""Folders of workspaces: making them, mending what a program did to them, removing them.

Every step works on descriptors and follows no link, since the names were a hostile program's.
"""

import os
import secrets
import shutil
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path

PARTS = ("work", "tmp", "home")
INPUT, PRIVATE, SCRIPT = "input", "private", "script.py"
OURS = (INPUT, PRIVATE, SCRIPT)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64
_MOST_NAMES = 10_000


def copy(source: int, target: str, mode: int = 0o444) -> None:
    """Write what a descriptor holds to a new file, inside the kernel."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    out = os.open(target, flags, 0o600)
    try:
        offset, size = 0, os.fstat(source).st_size
        while offset < size:
            count = os.sendfile(out, source, offset, min(size - offset, 1 << 30))
            if not count:
                break
            offset += count
        os.fchmod(out, mode)
    finally:
        os.close(out)


def ensure_folder(parent: str, name: str) -> None:
    """Make sure that `name` is a real folder; whatever else bears the name is moved aside."""
    folder = os.open(parent, _FOLDER)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(f"{parent}/{name}").st_mode):
                return
            _move_aside(folder, name)
        os.mkdir(name, 0o755, dir_fd=folder)
    finally:
        os.close(folder)


def ensure_file(parent: str, name: str) -> None:
    """Make sure that `name` is a plain file; whatever else bears the name is moved aside."""
    folder = os.open(parent, _FOLDER)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISREG(os.lstat(f"{parent}/{name}").st_mode):
                return
            _move_aside(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(name, flags, 0o444, dir_fd=folder))
    finally:
        os.close(folder)


def ensure_path(path: str, is_file: bool) -> None:
    """Make sure of every step of an absolute path, as the two functions above do."""
    *folders, last = path.strip("/").split("/")
    parent = ""
    for name in folders:
        if not os.path.ismount(f"{parent}/{name}"):
            ensure_folder(parent or "/", name)
        parent += f"/{name}"
    (ensure_file if is_file else ensure_folder)(parent or "/", last)


def mend(root: str, trees: list[str], script: int) -> None:
    """Make a workspace that is a folder usable again, whatever the last program did to it.

    `trees` are the folders in it that `work` shows a fresh copy of; `script` is a descriptor.
    """
    os.chmod(root, 0o711)
    for part in PARTS:
        os.chmod(f"{root}/{part}", 0o700)
    work = f"{root}/work"
    for place in trees:
        renew(work, place)
        copy_tree(f"{root}/{place}", f"{work}/{place}")
    renew(work, SCRIPT)
    copy(script, f"{work}/{SCRIPT}")


def renew(parent: str, name: str) -> None:
    """Make sure that nothing bears the name."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(f"{parent}/{name}").st_mode):
            remove(f"{parent}/{name}")
        else:
            os.unlink(f"{parent}/{name}")


def _move_aside(folder: int, name: str) -> None:
    for number in range(_MOST_NAMES):
        aside = f"{name}.{number}"
        try:
            os.stat(aside, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            return
    raise FileExistsError(f"too many files are called {name}")


def names(root: str) -> list[str]:
    """Return the paths of what lies below `root` and is no folder, without what is ours.

    Looks at 10,000 names at most, to a depth of 64; tells only those that are text.
    """
    found: list[str] = []
    waiting = [("", 0)]
    left = _MOST_NAMES
    while waiting and left:
        inside, depth = waiting.pop()
        with suppress(OSError), os.scandir(f"{root}/{inside}") as entries:
            for entry in islice(entries, left):
                left -= 1
                if (not inside and entry.name in OURS) or not _is_text(entry.name):
                    continue
                path = f"{inside}{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    found.append(path)
                elif depth < _DEEPEST:
                    waiting.append((f"{path}/", depth + 1))
    return sorted(found)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8
        return False
    return True


def remove(root: str) -> None:
    """Remove a folder with everything in it, however deep it is and whatever its modes are.

    Folders below are lifted to the top before they are emptied, so that no path grows long.
    """
    os.chmod(root, 0o700)
    prefix, lifted = f"{root}/.{secrets.token_hex(8)}", 0
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        for entry in list(os.scandir(folder)):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)
            lifted += 1
            place = f"{prefix}.{lifted}"
            os.rename(entry.path, place)
            waiting.append(place)
        if folder != root:
            os.rmdir(folder)
    os.rmdir(root)


def copy_tree(source: str, target: str) -> None:
    """Copy a folder of plain files, read-only for everyone."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder, _, files in os.walk(target):
        for name in files:
            Path(folder, name).chmod(0o444)
        Path(folder).chmod(0o755)
