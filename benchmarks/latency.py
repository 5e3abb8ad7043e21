"""What an execution costs on tiny data and on large: the paper's figure 6, by modality.

    python benchmarks/latency.py CORPUS [--rows 150 10000 ...] [--only image ...] [--n 3] [--json F]
    python benchmarks/latency.py CORPUS --ladders 64 [--json F]

First form: for one task of each modality its `forest` script on more and more training rows of the
same rule (and as many test rows as it ships), in a warm sandbox and in a cold one: medians of `n`
runs, in turn, and ratios. What does not fit into `--memory` MB is told. With `--json` each figure
is written as it is made, and not made twice.
Second form: mean seconds of all ladder scripts of so many tasks, in the warm sandbox. The paper has
14.31 s for an execution on its synthetic tasks and 196.17 s on the data of their seeds.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from sandmle.config import SandboxSection
from sandmle.factory.build import Draw, Recipe, draw
from sandmle.files import to_json, write_atomic
from sandmle.sandbox.base import Sandbox, open_sandbox
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task
from sandmle.types import ExecResult, Limits

CHUNK = 40_000  # rows of one draw: ids have five digits
PRELOAD = "vision,audio"
_SEED = 2**31


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rows", type=int, nargs="*", default=[150, 10_000, 100_000])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--n", type=int, default=3)
    parser.add_argument("--ladders", type=int, default=0)
    parser.add_argument("--memory", type=int, default=8000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tasks = list(open_corpus(options.corpus))
    if options.ladders:
        report = ladder_seconds(spread(tasks, options.ladders))
        write(options.json, report)
        return
    limits = Limits(wall_s=600, memory_mb=options.memory, disk_mb=512)
    known: dict[str, Any] = {}
    if options.json and options.json.exists():
        known = json.loads(options.json.read_text())
    print(f"{'modality':<12}{'rows':>9}{'cold s':>9}{'warm s':>9}{'cold/150':>10}{'warm/150':>10}")
    for modality, task in first_of_each(tasks).items():
        if options.only and modality not in options.only:
            continue
        for rows in options.rows:
            key = f"{modality}/{rows}"
            if key not in known:
                known[key] = measure(task, rows, options.n, limits)
                write(options.json, known)
            show(modality, rows, known)


def first_of_each(tasks: Iterable[Task]) -> dict[str, Task]:
    """Return a task of each modality: the first, of one that has a `forest`."""
    found: dict[str, Task] = {}
    for task in tasks:
        if any(rung.name == "forest" for rung in task.card.ladder):
            found.setdefault(task.card.modality, task)
    return dict(sorted(found.items()))


def measure(task: Task, rows: int, n: int, limits: Limits) -> dict[str, Any]:
    """Return the medians of `n` runs, cold and warm, or why there are none."""
    script = next(one for one in task.solutions() if one.name == "forest").code
    with tempfile.TemporaryDirectory() as folder:
        write_public(task, rows, Path(folder))
        seconds: dict[str, list[float]] = {"cold": [], "warm": []}
        backends = {"cold": SandboxSection(backend="cold"), "warm": SandboxSection(preload=PRELOAD)}
        for name, section in backends.items():
            with closing(open_sandbox(section, 1)) as sandbox:
                for _ in range(n):
                    result = run(sandbox, script, Path(folder), limits)
                    if result.status != "ok":
                        last = result.stderr.strip().splitlines()[-1:]
                        return {"status": result.status, "why": last}
                    seconds[name].append(result.wall_s)
    return {"status": "ok", **{name: statistics.median(found) for name, found in seconds.items()}}


def write_public(task: Task, rows: int, folder: Path) -> None:
    """Draw so many training rows of a task, and the test rows that it has."""
    spec = task.spec
    assert spec is not None
    recipe = Recipe.model_validate(spec.parameters)
    sizes = [min(CHUNK, rows - start) for start in range(0, rows, CHUNK)]
    tables: dict[str, list[bytes]] = {}
    for k, size in enumerate(sizes):
        n_test = spec.final_dimensions.n_test if k == 0 else 1
        drawn = draw(recipe, (_SEED, k, *spec.seed), size, n_test, mark=f"b{k}" if k else "")
        for name, content in files_of(drawn, with_test=k == 0).items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            if name in drawn.assets or name in drawn.side or name == "test.csv":
                path.write_bytes(content)
            else:
                tables.setdefault(name, []).append(
                    content if k == 0 else content.split(b"\n", 1)[1]
                )
    for name, parts in tables.items():
        (folder / name).write_bytes(b"".join(parts))


def files_of(drawn: Draw, with_test: bool) -> dict[str, bytes]:
    files = {"train.csv": drawn.train, **drawn.extra}
    return {**files, "test.csv": drawn.test} if with_test else files


def run(sandbox: Sandbox, script: str, public: Path, limits: Limits) -> ExecResult:
    workspace = sandbox.open(public, limits)
    try:
        return workspace.run(script)
    finally:
        workspace.close()


def show(modality: str, rows: int, known: dict[str, Any]) -> None:
    found, least = known[f"{modality}/{rows}"], known.get(f"{modality}/150", {})
    if found["status"] != "ok":
        print(f"{modality:<12}{rows:>9,}  {found['status']}: {' '.join(found['why'])}")
        return
    ratios = [found[name] / least.get(name, np.nan) for name in ("cold", "warm")]
    figures = f"{found['cold']:>9.2f}{found['warm']:>9.2f}"
    print(f"{modality:<12}{rows:>9,}{figures}{ratios[0]:>10.1f}{ratios[1]:>10.1f}", flush=True)


# --- all scripts of many tasks --------------------------------------------------------------------


def spread(tasks: Sequence[Task], n: int) -> list[Task]:
    """Return `n` tasks at random, always the same."""
    order = np.random.default_rng(0).permutation(len(tasks))[:n]
    return [tasks[i] for i in order]


def ladder_seconds(tasks: Sequence[Task]) -> dict[str, Any]:
    """Run every script of every task once and say how long an execution took."""
    by_modality: dict[str, list[float]] = {}
    with closing(open_sandbox(SandboxSection(preload=PRELOAD), 1)) as sandbox:
        for task in tasks:
            for script in task.solutions():
                result = run(sandbox, script.code, task.public, Limits())
                if result.status != "ok":
                    raise SystemExit(f"{task.id}, {script.name}: {result.status}: {result.stderr}")
                by_modality.setdefault(task.card.modality, []).append(result.wall_s)
    every = [s for found in by_modality.values() for s in found]
    print(f"{'modality':<12}{'scripts':>9}{'mean s':>9}{'median s':>10}{'most s':>9}")
    for name, found in [*sorted(by_modality.items()), ("all", every)]:
        mean, middle, most = statistics.mean(found), statistics.median(found), max(found)
        print(f"{name:<12}{len(found):>9}{mean:>9.3f}{middle:>10.3f}{most:>9.2f}")
    print(f"paper: 14.31 s an execution; this is {14.31 / statistics.mean(every):.0f} times less")
    return {name: statistics.mean(found) for name, found in by_modality.items()}


def write(path: Path | None, value: Any) -> None:
    if path is not None:
        write_atomic(path, to_json(value, indent=2) + "\n")


if __name__ == "__main__":
    main()
