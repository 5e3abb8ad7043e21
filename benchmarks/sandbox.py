"""What the sandbox costs and what it leaves behind, held against its bounds.

    python benchmarks/sandbox.py [--n 20] [--quick] [--only PART ...] [--json FILE]

Every bound is a ratio of two things measured in turn in the same run, or a number that does not
depend on the machine's speed; medians of `n`, if nothing else is said. Take it on a machine that is
otherwise idle, once as root and once as an ordinary user: the modes differ. The exit status is 1 if
a bound is not held.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import sandbox_care as care
import sandbox_speed as speed
from agent_scripts import differing
from data import write_inputs
from measure import Table, public_folder
from programs import agent_scripts, missing

from sandmle.config import SandboxSection
from sandmle.sandbox.base import open_sandbox

SCRIPTS = 20


def equality(table: Table, folder: Path, count: int) -> None:
    """Run scripts of all kinds warm and cold and compare what they print and submit."""
    inputs = folder / "inputs"
    write_inputs(inputs)
    runnable = [script for script in agent_scripts() if not missing(script.needs)]
    step = max(1, len(runnable) // count)
    chosen = runnable[::step][:count]
    warm = open_sandbox(SandboxSection(backend="ns"))
    cold = open_sandbox(SandboxSection(backend="cold"))
    names = differing(warm, cold, chosen, inputs)
    warm.close()
    cold.close()
    note = ", ".join(names)
    label = f"scripts of {len(chosen)} with other output warm than cold"
    table.add(label, len(names), 0, "n", note=note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="few rounds and a short soak")
    parser.add_argument("--only", nargs="*", default=(), metavar="PART")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    n, few, many, folders = (3, 1, 100, 10) if options.quick else (options.n, 5, 3000, 200)
    with tempfile.TemporaryDirectory() as name:
        folder, public = Path(name), public_folder(name)
        folder.chmod(0o711)  # some modes run programs as another user below it
        tempfile.tempdir = name  # so that what is left there is ours
        parts: dict[str, Callable[[Table], None]] = {
            "latency": lambda table: speed.latency(table, public, folder, n),
            "ahead": lambda table: speed.fork_ahead(table, public, n),
            "overshoot": lambda table: care.overshoot(table, public, few),
            "memory": lambda table: care.memory(table, public, few),
            "throughput": lambda table: speed.throughput(table, public),
            "soak": lambda table: care.soak(table, public, many, folders),
            "killed": lambda table: care.killed(table, public),
            "equality": lambda table: equality(table, folder, 3 if options.quick else SCRIPTS),
            "peers": lambda table: speed.beside_peers(table, public, folder, n),
        }
        unknown = set(options.only) - set(parts)
        if unknown:
            parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(parts)}")
        table = Table()
        for part, measure in parts.items():
            if not options.only or part in options.only:
                measure(table)
        return table.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
