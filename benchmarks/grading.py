"""How long grading takes: 1,000 rows, in process and through a task's evaluator script.

Masks are 300, of 128 x 128 pixels: discs, predicted a little beside.

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

import numpy as np
from build import build_task
from conformance.cases import Case, csv_text, make_case

from sandmle.files import to_json, write_atomic
from sandmle.grading.grader import Grader
from sandmle.metrics.registry import METRICS, Metric
from sandmle.tasks.cells import encode_mask

ROWS = 1000
MASKS, SIDE = 300, 128
BOUND_MS, MASK_BOUND_MS = 20, 200


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


def discs(metric: Metric) -> Case:
    """Return masks of the size of small pictures; every second row is of another class."""
    rng = np.random.default_rng(0)
    grid = np.indices((SIDE, SIDE))

    def mask(middle: np.ndarray, radius: float) -> str:
        return encode_mask(((grid - middle[:, None, None]) ** 2).sum(axis=0) < radius**2)

    middles, radii = rng.uniform(20, 108, (MASKS, 2)), rng.uniform(5, 40, MASKS)
    ids = [f"r{i}" for i in range(MASKS)]
    truth = [mask(m, r) for m, r in zip(middles, radii, strict=True)]
    guess = [
        mask(m + rng.normal(0, 4, 2), r * rng.uniform(0.7, 1.3))
        for m, r in zip(middles, radii, strict=True)
    ]
    extra = metric.kind.extra_truth
    return Case(
        schema=metric.schema("id", "target", (), MASKS, shape=(SIDE, SIDE)),
        answers={
            "id": ids,
            "target": truth,
            **({extra: ["a", "b"] * (MASKS // 2)} if extra else {}),
        },
        random={"id": ids, "target": guess},
        perfect={"id": ids, "target": truth},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--script-runs", type=int, default=3)
    options = parser.parse_args()
    results = []
    print(f"{'metric':<22}{'in process':>12}{'evaluator.py':>15}{'ratio':>8}   ({ROWS} rows, ms)")
    with tempfile.TemporaryDirectory() as folder:
        for metric in METRICS:
            masks = "masks" in metric.kind.name
            case = discs(metric) if masks else make_case(metric, 0, ROWS)
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
            outside = median_ms(lambda c=command: run(c), options.script_runs)
            bound = MASK_BOUND_MS if masks else BOUND_MS
            results.append(
                {
                    "metric": metric.name,
                    "grader_ms": inside,
                    "evaluator_ms": outside,
                    "bound": bound,
                }
            )
            print(f"{metric.name:<22}{inside:>12.2f}{outside:>15.0f}{outside / inside:>8.0f}")
    for masks, what in ((False, f"of {ROWS} rows"), (True, f"of {MASKS} masks")):
        bound = MASK_BOUND_MS if masks else BOUND_MS
        row = max((r for r in results if r["bound"] == bound), key=lambda r: r["grader_ms"])
        print(f"slowest {what}: {row['metric']}, {row['grader_ms']:.1f} ms (bound: {bound} ms)")
    if options.json:
        write_atomic(options.json, to_json({"rows": ROWS, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
