"""What an import and a command cost, beside a bare interpreter.

    python benchmarks/startup.py [--json FILE]

Whole processes, taken in turn so that a busy machine slows all of them alike; medians.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from sandmle.files import to_json, write_atomic

COMMANDS = {
    "bare python": [sys.executable, "-c", "pass"],
    "import sandmle": [sys.executable, "-c", "import sandmle"],
    "sandmle --help": [str(Path(sys.executable).with_name("sandmle")), "--help"],
    "import sandmle.types": [sys.executable, "-c", "import sandmle.types"],
    "import the grader": [sys.executable, "-c", "import sandmle.grading.grader"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(options.runs + 1):
        for name, command in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(1000 * (time.perf_counter() - started))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    base = medians["bare python"]
    for name, value in medians.items():
        print(f"{name:<22}{value:>8.0f} ms{value - base:>+8.0f} ms")
    print("bounds: import sandmle +150 ms, sandmle --help 500 ms")
    if options.json:
        write_atomic(options.json, to_json(medians, indent=2) + "\n")


if __name__ == "__main__":
    main()
