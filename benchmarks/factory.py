"""How fast tasks are made, and how many attempts pass, by family, metric and level.

    python benchmarks/factory.py OUT [--n 48] [--seed 0] [--workers 2] [--json FILE]

Runs `sandmle generate` as a user would, in a process of its own, into OUT (which must not be there
yet) and reads the corpus that it leaves.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from sandmle.files import to_json, write_atomic
from sandmle.tasks.corpus import open_corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--n", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    command = [sys.executable, "-m", "sandmle.cli.app", "generate", str(options.out)]
    command += ["--n", str(options.n), "--seed", str(options.seed), "--modality", "tabular"]
    started = time.perf_counter()
    peak = run([*command, "--workers", str(options.workers)])
    wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    corpus = open_corpus(options.out)
    attempts = corpus.index.funnel["attempts"]
    facts = {
        "tasks": options.n,
        "attempts": attempts,
        "wall_s": round(wall, 1),
        "tasks_per_s_and_core": round(options.n / wall / options.workers, 3),
        "cpu_s_waited_for": round(cpu, 1),
        "parent_peak_mb": round(peak, 1),
        "yield": round(options.n / attempts, 3),
    }
    for name, value in facts.items():
        print(f"{name:<24}{value}")
    print_yields(corpus, facts)
    if options.json:
        write_atomic(options.json, to_json(facts, indent=2) + "\n")


def run(command: list[str]) -> float:
    """Run a command; return the peak resident size of its own process in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, *(int(x.split()[1]) for x in status.splitlines() if "VmHWM" in x))
        except (OSError, TypeError):
            pass  # it has just ended
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(command)}")
    return peak / 1000


def print_yields(corpus, facts: dict) -> None:
    accepted: dict[tuple[str, str], list[float]] = defaultdict(list)
    tried: dict[tuple[str, str], int] = defaultdict(int)
    for task in corpus:
        record = json.loads((task.private / "verification.json").read_bytes())
        recipe = task.spec.parameters
        for sort, name in (
            ("family", recipe["family"]),
            ("metric", recipe["metric"]["name"]),
            ("level", str(recipe["level"])),
        ):
            accepted[sort, name].append(record["generic_skill"])
            tried[sort, name] += 1 + len(record["rejected_before"])
    print(f"\n{'':<8}{'':<22}{'tasks':>7}{'yield':>8}{'generic skill':>16}")
    for sort, name in sorted(accepted):
        skills = accepted[sort, name]
        share = len(skills) / tried[sort, name]
        print(f"{sort:<8}{name:<22}{len(skills):>7}{share:>8.2f}{np.mean(skills):>16.2f}")
        facts[f"{sort} {name}"] = [len(skills), round(share, 3), round(float(np.mean(skills)), 3)]
    reasons = {k: v for k, v in corpus.index.funnel.items() if k.startswith("rejected")}
    print("\n" + "\n".join(f"{k:<44}{v}" for k, v in sorted(reasons.items(), key=lambda x: -x[1])))


if __name__ == "__main__":
    main()
