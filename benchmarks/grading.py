"""How long grading takes: 1,000 rows, in process and through a task's evaluator script.

    python benchmarks/grading.py [--json FILE]

In process means `Grader.grade` on bytes, the answers read before; the script is a process of its
own, interpreter start and imports included. Medians, after one warm-up, in one run.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from build import build_task
from conformance.cases import csv_text, make_case

from sandmle.files import to_json, write_atomic
from sandmle.grading.grader import Grader
from sandmle.metrics.registry import METRICS

ROWS = 1000


def median_ms(call: Callable[[], object], runs: int) -> float:
    call()
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


def run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    results = []
    print(f"{'metric':<22}{'in process':>12}{'evaluator.py':>15}{'ratio':>8}   ({ROWS} rows, ms)")
    with tempfile.TemporaryDirectory() as folder:
        for metric in METRICS:
            case = make_case(metric, 0, ROWS)
            task = build_task(
                Path(folder), csv_text(case.answers), metric.name,
                schema=case.schema, task_id=metric.name,
            )  # fmt: skip
            path = Path(folder) / f"{metric.name}.csv"
            path.write_text(csv_text(case.random))
            grader, data = Grader(task), path.read_bytes()
            command = [sys.executable, str(task.private / "evaluator.py")]
            command += ["--submission_path", str(path)]
            inside = median_ms(lambda g=grader, d=data: g.grade(d), options.runs)
            outside = median_ms(lambda c=command: run(c), 3)
            results.append({"metric": metric.name, "grader_ms": inside, "evaluator_ms": outside})
            print(f"{metric.name:<22}{inside:>12.2f}{outside:>15.0f}{outside / inside:>8.0f}")
    slowest = max(results, key=lambda row: row["grader_ms"])
    print(f"slowest in process: {slowest['metric']}, {slowest['grader_ms']:.2f} ms (bound: 10 ms)")
    if options.json:
        write_atomic(options.json, to_json({"rows": ROWS, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
