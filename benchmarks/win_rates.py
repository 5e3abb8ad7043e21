"""Whether win rates put policies of known strength into their order.

    python benchmarks/win_rates.py CORPUS OUT [--tasks 64] [--levels 5] [--seed 0]

Draws tasks from a corpus and plays the policies `scripted:level-K-of-N` on them, each as a run of
its own in the sandbox; which rung a level is was settled when a task was built, on other rows than
those that decide here. Prints the win rates of each against each (ties one half), and Kendall's tau
between the levels and the mean win rates with a 95 % bootstrap interval over tasks. The same
command resumes.
"""

import argparse
import random
import sys
from pathlib import Path
from typing import Any

from sandmle.config import load_config
from sandmle.errors import SandmleError, UsageError
from sandmle.files import to_json, write_atomic
from sandmle.outcome import UNSCORABLE
from sandmle.report.paired import order_agreement, overall, win_matrix
from sandmle.report.runs import read_run
from sandmle.rollout.runner import run_rollout
from sandmle.tasks.corpus import open_corpus

PATIENCE_S = 900  # for one program: a busy machine is no failure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--levels", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the choice of tasks")
    options = parser.parse_args()
    try:
        draw(options.corpus, options.out / "tasks", options.tasks, options.seed)
        figures = measure(options.out, options.levels)
    except SandmleError as error:
        print(error, file=sys.stderr)
        return 1
    write_atomic(options.out / "win_rates.json", to_json(figures, indent=2) + "\n")
    show(figures)
    return 0


def draw(corpus: Path, chosen: Path, n: int, seed: int) -> None:
    """Make a corpus of links to `n` tasks of another one."""
    tasks = open_corpus(corpus).tasks
    if len(tasks) < n:
        raise UsageError(f"{corpus}: has {len(tasks)} tasks, not {n}; give --tasks")
    chosen.mkdir(parents=True, exist_ok=True)
    wanted = {task.id: task.root.absolute() for task in random.Random(seed).sample(tasks, n)}
    if any(path.name not in wanted for path in chosen.iterdir()):
        raise UsageError(f"{chosen}: has other tasks; choose another folder")
    for name, root in wanted.items():
        if not (chosen / name).exists():
            (chosen / name).symlink_to(root)


def measure(out: Path, levels: int) -> dict[str, Any]:
    """Play each level on the tasks below `out` and return all figures."""
    roots = []
    for level in range(1, levels + 1):
        name = f"level-{level}-of-{levels}"
        settings = [
            f"corpus.path='{out / 'tasks'}'",
            f"policy.name='scripted:{name}'",
            "group=1",
            f"sandbox.limits.wall_s={PATIENCE_S}",
        ]
        roots.append(out / name)
        summary = run_rollout(load_config(None, settings), roots[-1])
        rates = {rate: value["mean"] for rate, value in summary["rates"].items()}
        shown = "   ".join(f"{rate} {value:.3f}" for rate, value in rates.items())
        print(f"{name:14} {shown}", flush=True)
    runs = [read_run(root) for root in roots]
    matrix = win_matrix(runs)
    return {
        "tasks": len(runs[0].trajectories),
        "failed": sum(t.stop_reason in UNSCORABLE for run in runs for t in run.trajectories),
        "win_rates": matrix,
        "overall": overall(matrix),
        "kendall_tau": order_agreement(runs)._asdict(),
    }


def show(figures: dict[str, Any]) -> None:
    rows = zip(figures["win_rates"], figures["overall"], strict=True)
    for level, (row, mean) in enumerate(rows, 1):
        cells = " ".join("    -" if value is None else f"{value:5.3f}" for value in row)
        print(f"level {level}: {cells}   mean {mean:.3f}")
    tau = figures["kendall_tau"]
    bounds = "" if tau["low"] is None else f" ({tau['low']:.2f} to {tau['high']:.2f})"
    failed = f", {figures['failed']} episodes failed through us" if figures["failed"] else ""
    print(f"Kendall's tau {tau['estimate']:.2f}{bounds}, {figures['tasks']} tasks{failed}")


if __name__ == "__main__":
    sys.exit(main())
