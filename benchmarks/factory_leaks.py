"""How many planted shortcuts the audit finds, and how often it cries wolf.

    python benchmarks/factory_leaks.py CORPUS [--n 50] [--clean 200] [--json FILE]

Each kind of leak (`tests/factory/leaks.py`) is planted into the tables of `--n` tasks, in the
shipped files and in the pool alike; the audit then looks at them as the gate would. False alarms
are counted on fresh draws of `--clean` tasks of which the gate has seen nothing.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "factory"))

from leaks import LEAKS, plant

from sandmle.factory.audit import audit
from sandmle.factory.build import Recipe, draw
from sandmle.factory.trial import new_trial, pool_of
from sandmle.files import to_json, write_atomic
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task

FRESH = 2**31


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--clean", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=sorted(LEAKS), help="kinds of leak")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tasks = list(open_corpus(options.corpus))
    rates = {}
    for leak in options.only:
        caught = [bool(faults(task, leak, 1)) for task in tasks[: options.n]]
        rates[leak] = [sum(caught), len(caught)]
        print(f"{leak:<40}{sum(caught)} of {len(caught)}", flush=True)
    alarms: Counter[str] = Counter()
    clean = tasks[: options.clean]
    for task in clean:
        found = faults(task, None, 2)
        alarms.update(found or ["none"])
    wrong = len(clean) - alarms["none"]
    rates["false alarms"] = [wrong, len(clean)]
    print(f"{'false alarms on clean tasks':<40}{wrong} of {len(clean)}")
    print({name: n for name, n in alarms.items() if name != "none"})
    if options.json:
        write_atomic(options.json, to_json(rates, indent=2) + "\n")


def faults(task: Task, leak: str | None, k: int) -> list[str]:
    """Return what the audit finds in a fresh draw of a task, with a leak in it or without."""
    recipe = Recipe.model_validate(task.spec.parameters)
    size = task.spec.final_dimensions
    seed = (FRESH, k, *task.spec.seed)
    shipped = draw(recipe, seed, size.n_samples, size.n_test)
    pool = pool_of(recipe, seed)
    target = recipe.story.target
    if leak is not None:
        shipped, pool = (
            plant(leak, tables, target.name, target.classes, k, mark)
            for tables, mark in ((shipped, "s"), (pool, "p"))
        )
    trial = new_trial(recipe, shipped, pool, size.n_test)
    milestones = task.card.milestones
    sign = 1 if milestones.direction == "max" else -1
    checks = audit(recipe, shipped, pool, trial, sign * milestones.median, sign * milestones.gold)
    return [check.name for check in checks if check.passed is False]


if __name__ == "__main__":
    main()
