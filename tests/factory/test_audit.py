"""Planted shortcuts are found, clean tasks left alone; rates: `benchmarks/factory_leaks.py`."""

import file_leaks
import numpy as np
import pytest
from leaks import LEAKS, plant

from sandmle.factory.audit import audit, explained
from sandmle.factory.build import Recipe, columns_of, draw
from sandmle.factory.family import FAMILIES
from sandmle.factory.mix import Stratum, cell_of
from sandmle.factory.plan import plan
from sandmle.factory.trial import new_trial, pool_of
from sandmle.tasks.submission import read_table, to_csv

PLAIN = {"tabular/classification", "tabular/regression"}
TABLES = [name for name in FAMILIES.names() if cell_of(FAMILIES.get(name)) in PLAIN]
OTHERS = [name for name in FAMILIES.names() if name not in TABLES]


def cheapest() -> list[str]:
    """Return a family for each set of leaks that families can have: the one with fewest rows."""
    found: dict[tuple[str, ...], str] = {}
    for one in sorted(OTHERS, key=lambda name: (FAMILIES.get(name).n_test, name)):
        (drawn,) = tasks(1, [one])
        found.setdefault(tuple(file_leaks.applicable(drawn.recipe)), one)
    return sorted(name for leaks, name in found.items() if leaks)


def tasks(n: int, names=TABLES):
    """Yield plans of several families and metrics."""
    for i in range(n):
        name = names[(5 * i) % len(names)]
        metrics = FAMILIES.get(name).metrics
        yield plan(4, i, 0, Stratum(name, metrics[i % len(metrics)], i % 5 + 1, None))


def found(one, leak: str | None, seed: int = 0, alter=None, alter_all=None) -> list[str]:
    recipe: Recipe = one.recipe
    shipped = draw(recipe, one.seed, one.n_train, one.n_test)
    pool = pool_of(recipe, one.seed)
    target = recipe.story.target
    if leak is not None:
        shipped, pool = (
            plant(leak, tables, target.name, target.classes, seed, mark)
            for tables, mark in ((shipped, "s"), (pool, "p"))
        )
    if alter is not None:
        shipped = alter(shipped)
    if alter_all is not None:
        shipped, pool = alter_all(shipped), alter_all(pool)
    trial = new_trial(recipe, shipped, pool, one.n_test)
    best = trial.quality(trial.answers, trial.shipped)
    floor = max(trial.quality(p, trial.everything) for p in trial.blind.values())
    median, gold = floor + 0.2 * (best - floor), floor + 0.75 * (best - floor)
    checks = audit(recipe, shipped, pool, trial, median, gold)
    return [check.name for check in checks if check.passed is False]


@pytest.mark.parametrize("leak", sorted(LEAKS))
def test_a_planted_leak_is_found(leak: str) -> None:
    for i, one in enumerate(tasks(2)):
        assert found(one, leak, i)


def test_clean_tasks_are_left_alone() -> None:
    for one in tasks(5):
        assert found(one, None) == []


@pytest.mark.parametrize("name", cheapest())
def test_what_is_planted_into_files_is_found(name: str) -> None:
    (one,) = tasks(1, [name])
    assert found(one, None) == []
    for leak in file_leaks.applicable(one.recipe):

        def alter(drawn, leak=leak):
            return file_leaks.plant(one.recipe, leak, drawn, 0)

        assert any(check.startswith("leak_") for check in found(one, None, alter_all=alter)), leak


def test_every_sort_of_leak_is_planted_somewhere() -> None:
    planted = {
        leak for one in tasks(len(OTHERS), OTHERS) for leak in file_leaks.applicable(one.recipe)
    }
    known = {*file_leaks.FILE_LEAKS, *file_leaks.TEXT_LEAKS, *file_leaks.TABLE_LEAKS}
    assert planted == {*known, file_leaks.NAME_LEAK}


def test_rows_of_train_in_test_are_found() -> None:
    def alter(tables, jitter=False):
        train, test = read_table(tables.train), read_table(tables.test)
        rows = [
            [mine[0], *theirs[1:-1]] for mine, theirs in zip(test.rows, train.rows, strict=False)
        ]
        every = [*rows[:40], *test.rows[40:]]
        columns = {name: [row[i] for row in every] for i, name in enumerate(test.header)}
        return tables._replace(test=to_csv(columns))

    for one in tasks(3):
        assert "duplicate_rows" in found(one, None, alter=alter)


def test_a_column_that_says_nothing_is_found() -> None:
    (one,) = tasks(1)
    name = columns_of(one.recipe)[0].name

    def alter(tables):
        train = read_table(tables.train)
        columns = {n: train.column(n) for n in train.header}
        return tables._replace(train=to_csv({**columns, name: ["1.0"] * len(train.rows)}))

    assert "constant_columns" in found(one, None, alter=alter)


def test_what_is_explained_is_a_share() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))
    assert explained(x, rng.normal(size=(2000, 1))) == 0.0
    assert explained(x, np.sign(x[:, [0]])) > 0.95
    weak = 0.6 * np.sign(x[:, [0]]) + rng.normal(size=(2000, 1))
    assert 0.15 < explained(x, weak) < 0.265, "the share is 0.265; a lower end is below it"
    assert explained(np.ones((2000, 2)), x[:, [0]]) == 0.0
