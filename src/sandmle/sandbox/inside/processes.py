"""Looking at processes through /proc, and ending them."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_SWEEPS = 400
_PAUSE_S = 0.005
_LOOKS, _BETWEEN_S = 25, 0.01  # what helpers of a library take to see that their program is gone
_MANY = 100
_SOCKET_BYTES = 425_984  # what the kernel keeps for one at most, twice net.core.wmem_max
TICK_MS = 30  # between two looks at memory


class Memory(NamedTuple):
    """What a process uses, in bytes: its own pages and their tables, and shared memory."""

    own: int
    shared: int


def memory(pid: int | str) -> Memory | None:
    """Read a process's memory; None if it is gone."""
    found = {"RssAnon": 0, "RssShmem": 0, "VmPTE": 0}
    try:
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] = int(value.split()[0]) * 1024
    except OSError:
        return None
    return Memory(found["RssAnon"] + found["VmPTE"], found["RssShmem"])


def used(pids: list[int], base: int) -> int:
    """Add up what processes use beyond `base` each, which they were born with."""
    found = [one for one in map(memory, pids) if one is not None]
    buffers = _SOCKET_BYTES * len(set().union(*map(sockets, pids)))
    return buffers + sum(max(0, one.own - base) + one.shared for one in found)


def sockets(pid: int) -> set[str]:
    """Return the names of a process's sockets, if it has more descriptors than most."""
    found = set()
    with suppress(OSError):
        names = os.listdir(f"/proc/{pid}/fd")
        for name in names if len(names) > _MANY else ():
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return {name for name in found if name.startswith("socket:")}


def data_segment() -> int:
    """Return what `RLIMIT_DATA` counts of this process, in bytes."""
    text = Path("/proc/self/status").read_text()
    return next(int(x.split()[1]) * 1024 for x in text.splitlines() if x.startswith("VmData"))


def threads() -> int:
    """Return how many threads this process has."""
    return len(os.listdir("/proc/self/task"))


def others() -> list[int]:
    """Return every process of this pid namespace but its first one."""
    return [int(n) for n in os.listdir("/proc") if n.isdigit() and n != "1"]


def of_user(uid: int) -> int:
    """Return how many processes and threads a user has, as `RLIMIT_NPROC` counts them."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children and so on."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                text = Path(f"/proc/{parent}/task/{task}/children").read_text()
                children = [int(word) for word in text.split()]
                found += children
                waiting += children
    return found


def outliving(found: Callable[[], list[int]], base: int, limit: int) -> int:
    """Count the processes that go on when their program has ended.

    Those that end by themselves in a moment, as a tracker of `multiprocessing` does, do not count;
    none gets that moment if together they use more than `limit`.
    """
    left: list[int] = []
    for _ in range(_LOOKS):
        left = [pid for pid in found() if not _dead(pid)]
        if not left or used(left, base) > limit:
            break
        time.sleep(_BETWEEN_S)
    return len(left)


def sweep(pid: int) -> None:
    """Kill everything below a process to which orphans return (a child subreaper).

    All are stopped first, so that none can start another while the rest are killed.
    """
    for _ in range(_SWEEPS):
        if pid == os.getpid():
            _reap()
        left = [one for one in descendants(pid) if not _dead(one)]
        if not left:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for one in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(one, number)
        time.sleep(_PAUSE_S)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _dead(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in (b"Z", b"X")
