"""What the sandbox leaves behind: overshoot, memory, leaks, and an end of its harness by force."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from measure import LONG, Table, Warm, p50, resident, rollup, started_at

from sandmle.sandbox.inside import processes, rootfs
from sandmle.sandbox.modes import MODES

_LIMIT_S = 1.0
_LOOP = "while True: pass"
_BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
_USE = "open('submission.csv', 'w').write('id,y\\n'); print(6 * 7)"
_SLEEP = "import time; time.sleep({})"
_DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
open("begun", "w").close()
while True:
    pass
"""
# a harness with two workers, each of them at a program that has left its group
_HARNESS = """
import pathlib, sys, threading, time
sys.path.insert(0, sys.argv[1])
from measure import Warm
warm = Warm(pathlib.Path(sys.argv[2]), sys.argv[3], workers=2)
open_ones = [warm.sandbox.open(warm.public, warm.workspace.limits) for _ in range(2)]
for one in open_ones:
    threading.Thread(target=one.run, args=[sys.argv[4]]).start()
while any("begun" not in one.list() for one in open_ones):
    time.sleep(0.05)
time.sleep(0.3)
print("ready", flush=True)
time.sleep(600)
"""


def overshoot(table: Table, public: Path, rounds: int) -> None:
    """Time how long after its limit a program is over; the worst of all rounds."""
    warm = Warm(public)
    limits = LONG.model_copy(update={"wall_s": _LIMIT_S})
    for label, code, bound in (("plain loop", _LOOP, 0.5), ("fork bomb", _BOMB, 3.0)):
        workspace, worst = warm.sandbox.open(public, limits), 0.0
        for _ in range(rounds):
            started = time.perf_counter()
            assert workspace.run(code).status == "timeout"
            worst = max(worst, time.perf_counter() - started - _LIMIT_S)
        workspace.close()
        table.add(f"{label} ends after its limit, worst of {rounds}", worst, bound, "s")
    warm.close()


def memory(table: Table, public: Path, rounds: int) -> None:
    """Weigh one program, then eight idle workers against one."""
    warm = Warm(public)
    own = []
    for _ in range(rounds):
        thread = threading.Thread(target=warm.run, args=(_SLEEP.format(0.6),))
        thread.start()
        time.sleep(0.4)
        program = processes.descendants(warm.lasting()["worker"])[0]
        own.append(rollup(program)["Private_Dirty"])
        thread.join()
    keeper = rollup(warm.lasting()["keeper"])["Rss"]
    warm.close()
    note = f"{p50(own) / 1e6:.1f} of {keeper / 1e6:.0f} MB"
    share = p50(own) / keeper
    table.add("private dirty memory of a no-op / the keeper", share, 0.05, "%", note=note)
    one, eight = _pss(public, 1), _pss(public, 8)
    note = f"{eight / 1e6:.0f} and {one / 1e6:.0f} MB"
    table.add("8 idle workers / 1, memory", eight / one, 1.6, note=note)


def _pss(public: Path, workers: int) -> int:
    """Return the memory of a whole sandbox whose workers have all run once.

    Pages that several processes share count once, except where only root may look.
    """
    warm = Warm(public, workers=workers)
    open_ones = [warm.sandbox.open(public, LONG) for _ in range(workers)]
    threads = [threading.Thread(target=one.run, args=(_SLEEP.format(1),)) for one in open_ones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(1)
    total = 0
    for pid in warm.family():
        try:
            total += rollup(pid)["Pss"]
        except PermissionError:
            total += resident(pid)
    warm.close()
    return total


class State(NamedTuple):
    """What there is of a sandbox at one moment; memory by process."""

    rss: dict[str, int]
    processes: int
    descriptors: int
    mounts: int
    files: int


def _state(warm: Warm) -> State:
    time.sleep(1)
    sandbox = warm.lasting()
    lasting = {"harness": os.getpid(), **sandbox}
    return State(
        {name: resident(pid) for name, pid in lasting.items()},
        len(warm.family()),
        sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in lasting.values()),
        sum(len(Path(f"/proc/{p}/mountinfo").read_bytes().splitlines()) for p in sandbox.values()),
        _files(warm),
    )


def _files(warm: Warm) -> int:
    """Count the files and folders that the keeper holds, and those in the temporary folder."""
    keeper, folder = warm.lasting()["keeper"], warm.sandbox._keeper.folder
    writable = (rootfs.WORKSPACES, rootfs.TREES, rootfs.HOME, rootfs.TEMPORARY, "/dev/shm")
    inner = [f"/proc/{keeper}/root{path}" for path in writable]
    roots = inner if folder is None else [str(folder)]
    inside = sum(len(folders) + len(files) for root in roots for _, folders, files in os.walk(root))
    return inside + len(list(Path(tempfile.gettempdir()).glob("sandmle-*")))


def soak(table: Table, public: Path, executions: int, workspaces: int) -> None:
    """Use one worker for long, and see that nothing has grown."""
    warm = Warm(public)
    for _ in range(30):
        warm.run(_USE)
    _use_workspaces(warm, 5)
    before, started = _state(warm), time.perf_counter()
    for _ in range(executions):
        warm.run(_USE)
    _use_workspaces(warm, workspaces)
    seconds = time.perf_counter() - started
    after = _state(warm)
    warm.close()
    label = f"soak of {executions:,} + {workspaces}"
    table.add(label, seconds, unit="s")
    for name, size in after.rss.items():
        grown = (size - before.rss[name]) / 1e6
        table.add(f"{label}: growth of the {name}", grown, 5.0, "MB")
    for name in ("processes", "descriptors", "mounts", "files"):
        more = getattr(after, name) - getattr(before, name)
        table.add(f"{label}: additional {name}", more, 0, "n")


def _use_workspaces(warm: Warm, count: int) -> None:
    for _ in range(count):
        workspace = warm.sandbox.open(warm.public, LONG)
        workspace.run("open('big', 'w').write('x' * 1_000_000)")
        workspace.close()


def killed(table: Table, public: Path) -> None:
    """Kill a harness that is at work, in every mode, and wait until nothing of it is left."""
    for mode in MODES:
        arguments = [str(Path(__file__).parent), str(public), mode.name, _DAEMON]
        harness = subprocess.Popen(
            [sys.executable, "-c", _HARNESS, *arguments],
            env={**os.environ, "TMPDIR": tempfile.gettempdir()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert harness.stdout is not None
        if harness.stdout.readline() != "ready\n":
            why = harness.communicate()[1].strip().splitlines()[-1]
            table.add(f"harness killed, {mode.name}: all is gone", None, 2.0, note=why)
            continue
        below = processes.descendants(harness.pid)
        born = {pid: when for pid in below if (when := started_at(pid)) is not None}
        harness.send_signal(signal.SIGKILL)
        killed_at = time.perf_counter()
        harness.communicate()
        while time.perf_counter() - killed_at < 30:
            alive = [pid for pid, when in born.items() if started_at(pid) == when]
            if not alive and not list(Path(tempfile.gettempdir()).glob("sandmle-*")):
                break
            time.sleep(0.01)
        seconds = time.perf_counter() - killed_at
        note = f"{len(born)} processes"
        table.add(f"harness killed, {mode.name}: all is gone", seconds, 2.0, "s", note=note)
