"""Shortcuts to plant into the tables of a task, as careless generators leave them behind."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sandmle.factory.build import Draw
from sandmle.tasks.cells import parse_number
from sandmle.tasks.submission import read_table, to_csv


class Side(NamedTuple):
    """One of the tables with a rank of each row's target, 0 to 1; the last column may be it."""

    columns: dict[str, list[str]]
    rank: np.ndarray
    n: int
    mark: str


Leak = Callable[[Side, np.random.Generator], dict[str, list[str]]]
LEAKS: dict[str, Leak] = {}


def leak(function: Leak) -> Leak:
    LEAKS[function.__name__] = function
    return function


def high(side: Side) -> np.ndarray:
    """Return whether the target of each row is in the upper half of what it can be."""
    return side.rank >= 0.5


@leak
def rows_sorted_by_target(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    order = np.argsort(side.rank, kind="stable")
    return {name: [cells[i] for i in order] for name, cells in side.columns.items()}


@leak
def ids_grow_with_target(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    place = np.argsort(np.argsort(side.rank + 1e-9 * rng.random(side.n)))
    return with_ids(side, [f"{100_000 + 7 * p}" for p in place])


@leak
def id_parity_is_the_class(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    numbers = rng.permutation(400_000)[: side.n]
    return with_ids(side, [f"{2 * n + h}" for n, h in zip(numbers, high(side), strict=True)])


@leak
def last_digit_of_id_is_the_class(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    numbers = rng.permutation(90_000)[: side.n] + 10_000
    digits = (side.rank * 9.99).astype(int)
    return with_ids(side, [f"{n}{d}" for n, d in zip(numbers, digits, strict=True)])


@leak
def hash_of_id_follows_the_class(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    ids = []
    for wanted in high(side):
        while True:
            name = f"{side.mark}{rng.integers(10**9)}"
            if name not in ids and (hashlib.sha256(name.encode()).digest()[0] >= 128) == wanted:
                break
        ids.append(name)
    return {**side.columns, next(iter(side.columns)): ids}


@leak
def letter_of_id_is_the_class(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    numbers = rng.permutation(900_000)[: side.n] + 100_000
    return with_ids(side, [f"{'AB'[h]}{n}" for n, h in zip(numbers, high(side) * 1, strict=True)])


@leak
def column_filled_only_for_positives(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    cells = [f"clerk {rng.integers(5)}" if h else "" for h in high(side)]
    return with_column(side, cells)


@leak
def column_written_after_the_outcome(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    return with_column(side, [f"{v:.4f}" for v in side.rank + 0.001 * rng.normal(size=side.n)])


@leak
def another_decimal_for_positives(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    features = list(side.columns)[1:-1]
    name = next((n for n in features if is_number(side.columns[n])), features[0])
    more = [f"{c}0" if "." in c else f"{c}.0" for c in side.columns[name]]
    pairs = zip(side.columns[name], more, high(side), strict=True)
    return {**side.columns, name: [m if h else c for c, m, h in pairs]}


@leak
def blanks_after_positives(side: Side, rng: np.random.Generator) -> dict[str, list[str]]:
    name = list(side.columns)[1]
    cells = [f"{c} " if h else c for c, h in zip(side.columns[name], high(side), strict=True)]
    return {**side.columns, name: cells}


def is_number(cells: list[str]) -> bool:
    return np.mean(np.isnan([parse_number(cell) for cell in cells])) < 0.2


def with_ids(side: Side, ids: list[str]) -> dict[str, list[str]]:
    first = next(iter(side.columns))
    return {**side.columns, first: [side.mark + name for name in ids]}


def with_column(side: Side, cells: list[str]) -> dict[str, list[str]]:
    """Put a column between the features and a target that may be there."""
    names = list(side.columns)
    at = len(names) - 1
    made = {name: side.columns[name] for name in names[:at]}
    return {**made, "closed_by": cells, names[at]: side.columns[names[at]]}


def plant(
    name: str, tables: Draw, target: str, classes: tuple[str, ...], seed: int, mark: str
) -> Draw:
    """Return the tables with a leak in train, test and answers; ids begin with `mark`."""
    rng = np.random.default_rng(seed)
    train, test, answer = map(read_table, (tables.train, tables.test, tables.answer))
    seen = {n: train.column(n) for n in train.header}
    hidden = {n: answer.column(n) for n in answer.header[1:]}
    both = {n: test.column(n) for n in test.header}
    truth = next(iter(hidden.values()))
    if len(hidden) > 1:  # one column for each class
        truth = [
            c
            for row in zip(*hidden.values(), strict=True)
            for c, v in zip(hidden, row, strict=True)
            if v == "1"
        ]
    first = LEAKS[name](Side(seen, ranks(seen[target], classes), len(train.rows), f"{mark}t"), rng)
    marked = {**both, **{f"answer of {n}": cells for n, cells in hidden.items()}}
    second = LEAKS[name](Side(marked, ranks(truth, classes), len(test.rows), mark), rng)
    id_column = test.header[0]
    answers = {id_column: second[id_column]}
    answers |= {n: second.pop(f"answer of {n}") for n in hidden}
    return tables._replace(
        train=to_csv(first),
        test=to_csv(second),
        answer=to_csv(answers),
        sample_submission=resample(tables.sample_submission, second[id_column]),
    )


def resample(sample: bytes, ids: list[str]) -> bytes:
    table = read_table(sample)
    columns = {n: table.column(n) for n in table.header[1:]}
    return to_csv({table.header[0]: ids, **columns})


def ranks(cells: list[str], classes: tuple[str, ...]) -> np.ndarray:
    if classes:
        return np.array([classes.index(cell) for cell in cells]) / (len(classes) - 1)
    values = np.array([float(cell) for cell in cells])
    return np.argsort(np.argsort(values)) / len(values)
