"""What the benchmarks of the sandbox share: a table of bounds, timing, looking at processes."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sandmle.config import SandboxSection
from sandmle.files import to_json, write_atomic
from sandmle.sandbox.confined import Confined
from sandmle.sandbox.inside import processes
from sandmle.sandbox.modes import MODES, environment
from sandmle.types import ExecResult, Limits

LONG = Limits(wall_s=300, memory_mb=4096)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_SETTLE_S = 0.4


class Row(NamedTuple):
    """One line of the table; without a bound it only informs."""

    check: str
    value: float | None
    bound: float | None
    at_least: bool
    unit: str
    note: str

    @property
    def held(self) -> bool | None:
        if self.value is None or self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


class Table:
    """Prints each row as it comes and keeps it for the JSON file."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        load, cores = round(os.getloadavg()[0], 1), os.cpu_count()
        self.details: dict[str, object] = {"load": load, "cores": cores}
        print(f"load {load} on {cores} cores")  # of others; throughput shows it most
        print(f"{'check':<62}{'measured':>12}{'bound':>12}  held")

    def add(
        self,
        check: str,
        value: float | None,
        bound: float | None = None,
        unit: str = "",
        at_least: bool = False,
        note: str = "",
    ) -> None:
        row = Row(check, value, bound, at_least, unit, note)
        self.rows.append(row)
        limit = "" if bound is None else f"{'>=' if at_least else '<='} {_shown(bound, unit)}"
        verdict = {True: "yes", False: "NO", None: ""}[row.held]
        text = f"{check:<62}{_shown(value, unit):>12}{limit:>12}  {verdict:<4} {note}"
        print(text.rstrip(), flush=True)

    def finish(self, path: Path | None) -> int:
        """Write the file and return the exit status: 1 if a bound is not held."""
        missed = [row.check for row in self.rows if row.held is False]
        bounds = sum(row.held is not None for row in self.rows)
        print(f"{bounds - len(missed)} of {bounds} bounds held")
        for check in missed:
            print(f"  not held: {check}")
        if path is not None:
            rows = [row._asdict() | {"held": row.held} for row in self.rows]
            write_atomic(path, to_json({"rows": rows} | self.details, indent=2) + "\n")
        return int(bool(missed))


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "n":
        return f"{value:.0f}"
    return f"{value:.2f} {unit}".rstrip()


class Warm:
    """A sandbox with an open workspace, and the CPU time that its runs have cost the machine."""

    def __init__(
        self,
        public: Path,
        backend: str = "ns",
        preload: str = "full",
        workers: int = 1,
        ahead: bool = True,
    ) -> None:
        section = SandboxSection(backend=backend, preload=preload)
        modes = [mode for mode in MODES if mode.name == backend] or MODES
        self.sandbox = Confined(backend, modes, section, workers, ahead)
        self.mode = self.sandbox.isolation.mode
        self.public = public
        self.workspace = self.sandbox.open(public, LONG)
        self.harness_s = 0.0
        self._begun_s = 0.0

    def run(self, code: str, status: str = "ok") -> float:
        """Run a program and return the seconds until its result is there."""
        return self.result(code, status)[1]

    def result(self, code: str, status: str = "ok") -> tuple[ExecResult, float]:
        before, started = time.process_time(), time.perf_counter()
        result = self.workspace.run(code)
        wall = time.perf_counter() - started
        self.harness_s += time.process_time() - before
        if result.status != status:
            raise SystemExit(f"{self.mode}: a program ended as {result.status}: {result.stderr}")
        return result, wall

    def begin(self) -> None:
        """Count CPU time from here on."""
        time.sleep(_SETTLE_S)
        self._begun_s, self.harness_s = cpu_s(self.family()), 0.0

    def spent(self) -> float:
        """Return the CPU seconds of all processes since `begin`, those of the harness included."""
        time.sleep(_SETTLE_S)
        return cpu_s(self.family()) - self._begun_s + self.harness_s

    def family(self) -> list[int]:
        """Return the supervisor, the keeper, and everything below them, parents first."""
        root = self.sandbox._keeper._process.pid
        return [root, *processes.descendants(root)]

    def lasting(self) -> dict[str, int]:
        """Return the processes that outlive an execution, where there is one worker."""
        supervisor, keeper = self.family()[:2]
        names = ("nursery", "worker") if self.sandbox._keeper.mode.namespaces else ("worker",)
        children = processes.descendants(keeper)[: len(names)]
        found = {"supervisor": supervisor, "keeper": keeper}
        return found | dict(zip(names, children, strict=True))

    def close(self) -> None:
        self.sandbox.close()


def cold_run(code: str, folder: Path) -> tuple[float, float]:
    """Run code in a plain new process; returns wall and CPU seconds."""
    script = folder / "cold.py"
    script.write_text(code)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, str(script)],
        env={**environment(), "HOME": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interleaved(calls: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Take the calls in turn, so that a busy machine slows all alike; the first round warms up."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            seconds = call()
            if number:
                found[name].append(seconds)
    return found


def p50(values: Sequence[float]) -> float:
    return statistics.median(values)


def cpu_s(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes and of their children that are dead and reaped."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            total += sum(int(field) for field in fields[11:15]) * _TICK_S
    return total


def rollup(pid: int) -> dict[str, int]:
    """Return a process's memory figures in bytes; `OSError` if it may not be looked at."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def started_at(pid: int) -> str | None:
    """Return when a process began, which tells it from a later one of its number; None if dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {b"Z", b"X"} else fields[19].decode()


def public_folder(stack_folder: str) -> Path:
    """Make a small public folder; old enough for the sandbox to believe its time stamps."""
    public = Path(tempfile.mkdtemp(dir=stack_folder))
    (public / "train.csv").write_text("id,x,y\na,1,0\nb,2,1\n")
    time.sleep(1.1)
    return public
