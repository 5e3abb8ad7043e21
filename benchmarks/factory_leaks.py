"""How many planted shortcuts the audit finds, and how often it cries wolf.

    python benchmarks/factory_leaks.py CORPUS [--n 50] [--clean 200] [--only LEAK ...] [--json FILE]

Each kind of leak (`tests/factory/leaks.py` for tables, `file_leaks.py` for pictures, sounds, texts
and networks) is planted into `--n` tasks that can have it, in the shipped files and in the pool
alike; the audit then looks at them as the gate would. False alarms are counted on fresh draws of
`--clean` tasks of which the gate has seen nothing. With `--json` each figure is written as it is
made, and not made twice.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "factory"))

import file_leaks
import leaks

from sandmle.factory.audit import audit
from sandmle.factory.build import Draw, Recipe, draw, member
from sandmle.factory.mix import cell_of
from sandmle.factory.trial import new_trial, pool_of
from sandmle.files import to_json, write_atomic
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task

FRESH = 2**31
CLEAN = "false alarms"
_PLAIN = ("tabular/classification", "tabular/regression")

Alter = Callable[[Recipe, Draw, str], Draw]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--clean", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="kinds of leak, or 'false alarms'")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    recipes = {task.id: (task, recipe_of(task)) for task in open_corpus(options.corpus)}
    able: dict[str, list[Task]] = {name: [] for name in sorted(leaks.LEAKS)}
    for task, recipe in recipes.values():
        plain = cell_of(type(member(recipe))) in _PLAIN
        for name in leaks.LEAKS if plain else file_leaks.applicable(recipe):
            able.setdefault(name, []).append(task)
    rates: dict[str, list[int]] = {}
    if options.json and options.json.exists():
        rates = json.loads(options.json.read_text())
    for name in [*able, CLEAN]:
        if options.only and name not in options.only:
            continue
        if name not in rates:
            clean = [task for task, _ in recipes.values()][: options.clean]
            rates[name] = alarms(clean) if name == CLEAN else caught(name, able[name][: options.n])
            if options.json:
                write_atomic(options.json, to_json(rates, indent=2) + "\n")
        print(f"{name:<40}{rates[name][0]} of {rates[name][1]}", flush=True)


def recipe_of(task: Task) -> Recipe:
    assert task.spec is not None
    return Recipe.model_validate(task.spec.parameters)


def caught(name: str, tasks: list[Task]) -> list[int]:
    """Count the tasks in which a planted leak is found."""

    def in_tables(recipe: Recipe, drawn: Draw, mark: str) -> Draw:
        target = recipe.story.target
        return leaks.plant(name, drawn, target.name, target.classes, 1, mark)

    def in_files(recipe: Recipe, drawn: Draw, mark: str) -> Draw:
        return file_leaks.plant(recipe, name, drawn, 1)

    alter = in_tables if name in leaks.LEAKS else in_files
    return [sum(bool(faults(task, alter, 1)) for task in tasks), len(tasks)]


def alarms(tasks: list[Task]) -> list[int]:
    """Count the tasks in which something is found though nothing was planted."""
    wrong = 0
    for task in tasks:
        found = faults(task, None, 2)
        if found:
            print(f"  {task.id}: {', '.join(found)}")
        wrong += bool(found)
    return [wrong, len(tasks)]


def faults(task: Task, alter: Alter | None, k: int) -> list[str]:
    """Return what the audit finds in a fresh draw of a task, with a leak in it or without."""
    recipe = recipe_of(task)
    assert task.spec is not None
    size = task.spec.final_dimensions
    seed = (FRESH, k, *task.spec.seed)
    shipped = draw(recipe, seed, size.n_samples, size.n_test)
    pool = pool_of(recipe, seed)
    if alter is not None:
        shipped, pool = alter(recipe, shipped, "s"), alter(recipe, pool, "p")
    trial = new_trial(recipe, shipped, pool, size.n_test)
    milestones = task.card.milestones
    sign = 1 if milestones.direction == "max" else -1
    checks = audit(recipe, shipped, pool, trial, sign * milestones.median, sign * milestones.gold)
    return [check.name for check in checks if check.passed is False]


if __name__ == "__main__":
    main()
