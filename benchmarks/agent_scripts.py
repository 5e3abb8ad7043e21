"""Agent scripts in a warm sandbox, in a cold one, and in a process that has imported everything.

    python benchmarks/agent_scripts.py [--n 5] [--only NAME ...] [--json FILE]

For each script in `scripts/` whose needs are installed: the medians of `n` runs taken in turn. The
script's own compute is what its code takes where nothing is left to import and nothing confines it.
The warm run must cost little more than that, and a short script little beside a cold run; both
runs must print and submit the same bytes.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from data import write_inputs
from measure import LONG, p50
from programs import Script, agent_scripts, missing
from unconfined import Unconfined

from sandmle.config import SandboxSection
from sandmle.files import to_json, write_atomic
from sandmle.sandbox.base import Sandbox, open_sandbox

FACTOR, CONSTANT_S = 1.25, 0.05
SHORT_S, SHORT_RATIO = 0.1, 0.12
_MAX_BYTES = 10_000_000


class Outcome(NamedTuple):
    """What a run printed and submitted."""

    stdout: str
    submission: bytes


class Line(NamedTuple):
    """One script's medians in seconds."""

    script: str
    modality: str
    compute: float
    warm: float
    cold: float
    same: bool

    @property
    def bound(self) -> float:
        return FACTOR * self.compute + CONSTANT_S

    @property
    def within(self) -> bool:
        return self.warm <= self.bound

    @property
    def short(self) -> bool | None:
        """Whether a short script's warm run is short beside the cold one; None for long ones."""
        return self.warm <= SHORT_RATIO * self.cold if self.compute < SHORT_S else None


def run_in(sandbox: Sandbox, script: Script, inputs: Path) -> tuple[float, Outcome]:
    """Run a script in a new workspace; returns seconds and outcome."""
    workspace = sandbox.open(inputs / script.modality, LONG)
    try:
        started = time.perf_counter()
        result = workspace.run(script.source)
        wall = time.perf_counter() - started
        if result.status != "ok":
            mode = sandbox.isolation.mode
            raise SystemExit(f"{script.name} in {mode}: {result.status}: {result.stderr}")
        return wall, Outcome(result.stdout, workspace.read("submission.csv", _MAX_BYTES))
    finally:
        workspace.close()


def compute_in(process: Unconfined, script: Script, inputs: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(inputs / script.modality, f"{folder}/input")
        return process.run(script.source, Path(folder))[1]


def differing(warm: Sandbox, cold: Sandbox, scripts: Sequence[Script], inputs: Path) -> list[str]:
    """Return the scripts that print or submit other bytes warm than cold."""
    return [
        script.name
        for script in scripts
        if run_in(warm, script, inputs)[1] != run_in(cold, script, inputs)[1]
    ]


def measure(
    script: Script, warm: Sandbox, cold: Sandbox, process: Unconfined, inputs: Path, n: int
) -> Line:
    computes: list[float] = []
    warms: list[float] = []
    colds: list[float] = []
    outcomes: set[Outcome] = set()
    for _ in range(n):
        computes.append(compute_in(process, script, inputs))
        for sandbox, walls in ((warm, warms), (cold, colds)):
            wall, outcome = run_in(sandbox, script, inputs)
            walls.append(wall)
            outcomes.add(outcome)
    return Line(
        script.name, script.modality, p50(computes), p50(warms), p50(colds), len(outcomes) == 1
    )


def show(line: Line) -> None:
    short = {None: "", True: "yes", False: "NO"}[line.short]
    print(
        f"{line.script:<36}{1000 * line.compute:>9.0f}{1000 * line.warm:>9.0f}"
        f"{1000 * line.cold:>9.0f}{100 * line.warm / line.cold:>9.1f} %"
        f"{1000 * line.bound:>9.0f}{'yes' if line.within else 'NO':>6}{short:>9}"
        f"{'yes' if line.same else 'NO':>7}",
        flush=True,
    )


def summary(lines: Sequence[Line]) -> dict[str, float]:
    groups: dict[str, list[float]] = {"all": []}
    for line in lines:
        groups["all"].append(line.warm / line.cold)
        groups.setdefault(line.modality, []).append(line.warm / line.cold)
    means = {group: statistics.fmean(ratios) for group, ratios in groups.items() if ratios}
    for group, mean in means.items():
        print(f"{group:<36}{len(groups[group]):>9} scripts, warm / cold {100 * mean:.1f} %")
    return means


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of scripts' names")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = [one for one in agent_scripts() if one.name.startswith(tuple(options.only))]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "inputs")
        write_inputs(inputs)
        warm = open_sandbox(SandboxSection(backend="ns"))
        cold = open_sandbox(SandboxSection(backend="cold"))
        process = Unconfined("full", Path(folder))
        print(f"{warm.isolation.mode}; medians of {options.n}, ms")
        print(
            f"{'script':<36}{'compute':>9}{'warm':>9}{'cold':>9}{'ratio':>11}"
            f"{'bound':>9}{'held':>6}{'<= 12 %':>9}{'same':>7}"
        )
        for script in found:
            absent = missing(script.needs)
            if absent:
                print(f"{script.name:<36}not run: {', '.join(absent)} not installed")
                continue
            lines.append(measure(script, warm, cold, process, inputs, options.n))
            show(lines[-1])
        for one in (warm, cold, process):
            one.close()
    means = summary(lines)
    failed = [x.script for x in lines if not (x.within and x.same and x.short is not False)]
    print(f"{len(lines) - len(failed)} of {len(lines)} scripts within the bounds")
    if options.json:
        rows = [x._asdict() | {"within": x.within, "short": x.short} for x in lines]
        write_atomic(options.json, to_json({"scripts": rows, "means": means}, indent=2) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
