"""The shortcut audit: can the answers be had without doing the task?

Probes look at what carries no meaning: the order of rows, the digits and hashes of ids, whether a
cell is empty, how many decimals it has. On thousands of rows they must explain nothing. Then each
column alone, rows that train and test share, groups on both sides, and columns that say nothing.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.build import Draw, Recipe, columns_of, metric_of
from sandmle.factory.gate import at_most
from sandmle.factory.story import StoryTarget
from sandmle.factory.trial import Trial
from sandmle.tasks.submission import Table, parse_number, read_table
from sandmle.types import Check

MAX_EXPLAINED = 0.02  # share of the target's variance, at the lower end of its interval
_SURE = 3.0  # standard errors
_FOLDS = 4
_NEAR = 0.02  # spreads within which two numbers are taken for the same
_DIGITS = re.compile(r"\d+")

Floats = NDArray[np.float64]


class Case(NamedTuple):
    """A task under audit: its tables, parsed, and what is to be explained in each of them.

    `median` and `gold` are turned so that higher is better.
    """

    train: Table
    test: Table
    pool: Table
    goals: dict[str, Floats]
    id_column: str
    names: list[str]
    target: StoryTarget
    trial: Trial
    median: float
    gold: float


def audit(
    recipe: Recipe, shipped: Draw, pool: Draw, trial: Trial, median: float, gold: float
) -> list[Check]:
    """Make every check for shortcuts; `median` and `gold` are turned so that higher is better."""
    train, test, fresh = map(read_table, (shipped.train, shipped.test, pool.test))
    target, id_column = recipe.story.target, recipe.story.id_column
    cells = {
        "train": train.column(target.name),
        "test": _answers(recipe, read_table(shipped.answer)),
        "pool": _answers(recipe, read_table(pool.answer)),
    }
    case = Case(
        train=train,
        test=test,
        pool=fresh,
        goals={where: _goal(found, target.classes) for where, found in cells.items()},
        id_column=id_column,
        names=[name for name in test.header if name != id_column],  # also what is not planned
        target=target,
        trial=trial,
        median=median,
        gold=gold,
    )
    groups = [c.name for c in columns_of(recipe) if c.kind == "group"]
    return [
        *_leaks(case),
        _single_column(case),
        *_duplicates(case, groups),
        _constants(case),
        _cheater(case),
        *_support(target.classes, cells),
    ]


def _answers(recipe: Recipe, table: Table) -> list[str]:
    target = recipe.story.target
    if metric_of(recipe).kind.name != "probabilities":
        return table.column(target.name)
    columns = [table.column(c) for c in target.classes]
    return [target.classes[row.index("1")] for row in zip(*columns, strict=True)]


def _goal(cells: Sequence[str], classes: Sequence[str]) -> Floats:
    """Return a target as something to explain: an indicator of each class, or the ranks."""
    if classes:
        return np.array([[float(cell == c) for c in classes] for cell in cells])
    values = _numbers(cells)
    return (np.argsort(np.argsort(values, kind="stable"), kind="stable") / len(values))[:, None]


def _leaks(case: Case) -> list[Check]:
    """Ask of each table how much of the target is explained by what means nothing."""
    tables = {"pool": case.pool, "test": case.test, "train": case.train}
    return [
        at_most(
            f"leak_{sort}:{where}",
            explained(probe(table, case.id_column, case.names), case.goals[where]),
            MAX_EXPLAINED,
        )
        for where, table in tables.items()
        for sort, probe in PROBES.items()
    ]


# --- what means nothing ---------------------------------------------------------------------------


def order_probe(table: Table, id_column: str, names: Sequence[str]) -> Floats:
    """Return the position of each row, and its remainders."""
    rows = np.arange(len(table.rows), dtype=float)
    return np.column_stack([rows, *(rows % k for k in (2, 3, 4, 5, 10))])


def id_probe(table: Table, id_column: str, names: Sequence[str]) -> Floats:
    """Return what an id can hide: its number, remainders, digits, length and hash."""
    ids = table.column(id_column)
    found = [_DIGITS.findall(name) for name in ids]
    numbers = np.array([float(parts[-1]) if parts else 0.0 for parts in found])
    digests = np.array([list(hashlib.sha256(name.encode()).digest()[:2]) for name in ids])
    bits = np.unpackbits(digests.astype(np.uint8), axis=1).astype(float)
    digits = [np.floor(numbers / 10**k) % 10 for k in range(4)]
    letters = np.array([sum(map(ord, _DIGITS.sub("", name))) for name in ids], dtype=float)
    return np.column_stack(
        [
            numbers,
            *(numbers % k for k in (2, 3, 5, 7)),
            *digits,
            [len(i) for i in ids],
            letters,
            bits,
        ]
    )


def form_probe(table: Table, id_column: str, names: Sequence[str]) -> Floats:
    """Return how cells are written: empty or not, how many decimals, blanks, capitals."""
    columns = []
    for name in names:
        cells = table.column(name)
        columns.append([float(cell == "") for cell in cells])
        columns.append([float(len(cell.partition(".")[2])) for cell in cells])
        columns.append([float(cell != cell.strip()) for cell in cells])
        columns.append([float(cell.isupper()) for cell in cells])
    return np.array(columns).T


PROBES = {"order": order_probe, "id": id_probe, "form": form_probe}


def explained(features: Floats, goal: Floats) -> float:
    """Return the share of a target's variance that features explain, at the lower end.

    Out of fold, by small trees; lower by `_SURE` standard errors; 0 if it is no share at all.
    """
    features = features[:, np.ptp(features, axis=0) > 0]
    if not features.shape[1] or len(goal) < 4 * _FOLDS:
        return 0.0
    left, total = np.zeros(len(goal)), np.zeros(len(goal))
    for inside, outside, model in _folds(features, goal, depth=3, leaf=max(5, len(goal) // 60)):
        left[outside] = (
            (goal[outside] - model.predict(features[outside]).reshape(len(outside), -1)) ** 2
        ).sum(axis=1)
        total[outside] = ((goal[outside] - goal[inside].mean(axis=0)) ** 2).sum(axis=1)
    if total.sum() == 0:
        return 0.0
    share = 1 - left.sum() / total.sum()
    # of a ratio of sums, by the delta method
    error = (left - (1 - share) * total).std() * np.sqrt(len(goal)) / total.sum()
    return max(0.0, float(share - _SURE * error))


def _folds(features: Floats, goal: Floats, depth: int, leaf: int) -> Any:
    """Yield rows to learn from, rows to predict, and a tree that has learned."""
    from sklearn.tree import DecisionTreeRegressor

    side = np.random.default_rng(0).permutation(len(goal)) % _FOLDS
    for fold in range(_FOLDS):
        inside, outside = np.flatnonzero(side != fold), np.flatnonzero(side == fold)
        tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=leaf, random_state=0)
        yield inside, outside, tree.fit(features[inside], goal[inside])


# --- what means too much --------------------------------------------------------------------------


def _single_column(case: Case) -> Check:
    """Score what one column alone predicts on the pool, with most of the pool to learn from."""
    scores: dict[str, float] = {}
    for name in case.names:
        features = _as_numbers(case.pool.column(name))
        if np.ptp(features) == 0:
            continue
        goal = case.goals["pool"]
        predicted = np.zeros(goal.shape)
        for _, outside, model in _folds(features, goal, depth=6, leaf=10):
            predicted[outside] = model.predict(features[outside]).reshape(len(outside), -1)
        scores[name] = _score(case, predicted, case.trial.pool, case.trial.answers)
    which = max(scores, key=lambda name: scores[name])
    below = float(np.nextafter(case.gold, -np.inf))
    return at_most("single_column_below_gold", scores[which], below, f"column {which!r}")


def _as_numbers(cells: Sequence[str]) -> Floats:
    """Return a column as a number, and as a code for each text."""
    numbers = _numbers(cells)
    numbers[np.isnan(numbers)] = -1e9
    codes = {text: i for i, text in enumerate(sorted(set(cells)))}
    return np.column_stack([numbers, [codes[cell] for cell in cells]]).astype(float)


def _score(
    case: Case, predicted: Floats, rows: NDArray[np.int64], known: Mapping[str, NDArray[Any]]
) -> float:
    """Score what a model of the goal predicts for some rows.

    A predicted rank becomes the value that has this rank among the targets in `known`.
    """
    trial, classes = case.trial, case.target.classes
    names = [column["name"] for column in trial.schema["columns"]]
    kind = trial.metric.kind.name
    total = len(trial.ids)
    whole: dict[str, NDArray[Any]]
    if kind == "probabilities":
        shares = predicted.clip(1e-6) / predicted.clip(1e-6).sum(axis=1, keepdims=True)
        whole = {name: np.full(total, 1 / len(names)) for name in names}
        for i, name in enumerate(names):
            whole[name][rows] = shares[:, i]
    elif kind == "label":
        whole = {names[0]: np.full(total, classes[0], dtype=object)}
        whole[names[0]][rows] = np.array(classes, dtype=object)[predicted.argmax(axis=1)]
    else:
        whole = {names[0]: np.zeros(total)}
        whole[names[0]][rows] = (
            predicted[:, 1].clip(0.001, 0.999)
            if classes
            else np.quantile(known[names[0]], predicted[:, 0].clip(0, 1))
        )
    return trial.quality(whole, rows)


def _duplicates(case: Case, groups: Sequence[str]) -> list[Check]:
    """Compare how many rows of train come again in test, and in fresh rows, exactly or nearly."""
    train, test, pool = (
        [[row[table.header.index(n)] for n in case.names] for row in table.rows]
        for table in (case.train, case.test, case.pool)
    )
    seen = set(map(tuple, train))
    exact = sum(tuple(row) in seen for row in test)
    near = _near(train, test)
    expected = _near(train, pool) * len(test) / len(pool)
    both = {
        name: len(set(case.train.column(name)) & set(case.test.column(name)))
        for name in (case.id_column, *groups)
    }
    return [
        at_most("duplicate_rows", exact, 0),
        at_most("near_duplicates", near, round(expected + 4 * np.sqrt(expected) + 3, 2)),
        at_most("ids_on_both_sides", both[case.id_column], 0),
        at_most("groups_on_both_sides", sum(both[name] for name in groups), 0),
    ]


def _near(train: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> int:
    """Count rows that agree with a training row in all but hundredths of a spread."""
    close: Any = True
    for mine, theirs in zip(zip(*train, strict=True), zip(*others, strict=True), strict=True):
        first, second = map(_numbers, (mine, theirs))
        if np.isnan(first).mean() > 0.5:
            codes = {text: i for i, text in enumerate(sorted({*mine, *theirs}))}
            first, second = (np.array([codes[cell] for cell in c]) for c in (mine, theirs))
            close = close & (first[:, None] == second[None])
            continue
        low, high = np.nanpercentile(first, [16, 84])
        width = _NEAR * max(high - low, 1e-9)
        gaps = np.abs(np.nan_to_num(first)[:, None] - np.nan_to_num(second)[None])
        close = close & (gaps < width)
    return int(np.asarray(close).any(axis=0).sum())


def _constants(case: Case) -> Check:
    dull = [name for name in case.names if len(set(case.train.column(name))) < 2]
    return at_most("constant_columns", len(dull), 0, ", ".join(dull))


def _cheater(case: Case) -> Check:
    """Learn from the training rows what means nothing, and predict the test rows from it."""
    from sklearn.tree import DecisionTreeRegressor

    def look(table: Table) -> Floats:
        probes = [probe(table, case.id_column, case.names) for probe in PROBES.values()]
        return np.column_stack(probes)

    goal = case.goals["train"]
    tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=5, random_state=0)
    guess = tree.fit(look(case.train), goal).predict(look(case.test))
    name = case.target.name
    known = {} if case.target.classes else {name: _numbers(case.train.column(name))}
    predicted = guess.reshape(len(case.test.rows), -1)
    score = _score(case, predicted, case.trial.shipped, known)
    return at_most("control_cheater", score, float(np.nextafter(case.median, -np.inf)))


def _support(classes: Sequence[str], cells: Mapping[str, Sequence[str]]) -> list[Check]:
    """Every class must have some rows to learn from, and some to be measured on."""
    return [
        Check(name=f"rows_of_each_class:{where}", passed=few >= limit, value=few, limit=limit)
        for where, limit in (("train", 4), ("test", 10))
        if classes
        for few in [min(cells[where].count(c) for c in classes)]
    ]


def _numbers(cells: Sequence[str]) -> Floats:
    return np.array([parse_number(cell) for cell in cells])
