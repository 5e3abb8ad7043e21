"""The shortcut audit: can the answers be had without doing the task?

Probes look at what carries no meaning: the order of rows, the digits and hashes of ids, whether a
cell is empty, how many decimals it has. On thousands of rows they must explain nothing. Then each
column alone, rows that train and test share, groups on both sides, and columns that say nothing.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.build import Draw, Recipe, columns_of, metric_of
from sandmle.factory.gate import at_most
from sandmle.factory.trial import Columns, Trial
from sandmle.tasks.submission import Table, parse_number, read_table
from sandmle.types import Check

MAX_EXPLAINED = 0.02  # share of the target's variance, at the lower end of its interval
_SURE = 3.0  # standard errors
_FOLDS = 4
_NEAR = 0.02  # spreads within which two numbers are taken for the same
_DIGITS = re.compile(r"\d+")

Floats = NDArray[np.float64]


class Files(NamedTuple):
    """The tables of a task, parsed: shipped ones, and the test and answers of its pool."""

    train: Table
    test: Table
    answer: Table
    pool: Table
    pool_answer: Table


def audit(
    recipe: Recipe, shipped: Draw, pool: Draw, trial: Trial, median: float, gold: float
) -> list[Check]:
    """Make every check for shortcuts; `median` and `gold` are turned so that higher is better."""
    files = Files(
        *map(read_table, (shipped.train, shipped.test, shipped.answer, pool.test, pool.answer))
    )
    id_column = recipe.story.id_column
    names = [name for name in files.test.header if name != id_column]  # also what is not planned
    target = recipe.story.target
    train_y = _goal(files.train.column(target.name), target.classes)
    test_y, pool_y = (
        _goal(_answers(recipe, table), target.classes)
        for table in (files.answer, files.pool_answer)
    )
    checks = []
    for where, table, y in (
        ("pool", files.pool, pool_y),
        ("test", files.test, test_y),
        ("train", files.train, train_y),
    ):
        for sort, probe in PROBES.items():
            share = explained(probe(table, id_column, names), y)
            checks.append(at_most(f"leak_{sort}:{where}", share, MAX_EXPLAINED))
    best, which = _best_column(files.pool, names, pool_y, trial, target.classes)
    return [
        *checks,
        at_most("single_column_below_gold", best, np.nextafter(gold, -np.inf), f"column {which!r}"),
        *_duplicates(files, names, id_column),
        _groups(recipe, files),
        _constants(files.train, names),
        _cheater(files, id_column, names, train_y, trial, median, target.classes),
        *_support(files, recipe),
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
    values = np.array([parse_number(cell) for cell in cells])
    return (np.argsort(np.argsort(values, kind="stable"), kind="stable") / len(values))[:, None]


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


def _best_column(
    pool: Table, names: Sequence[str], goal: Floats, trial: Trial, classes: Sequence[str]
) -> tuple[float, str]:
    """Return the best score on the pool of what one column alone predicts, and which."""
    scores: dict[str, float] = {}
    for name in names:
        features = _as_numbers(pool.column(name))
        if np.ptp(features) == 0:
            continue
        predicted = np.zeros(goal.shape)
        for _, outside, model in _folds(features, goal, depth=6, leaf=10):
            predicted[outside] = model.predict(features[outside]).reshape(len(outside), -1)
        columns = submission(trial, predicted, classes, trial.pool)
        scores[name] = trial.quality(columns, trial.pool)
    which = max(scores, key=lambda name: scores[name])
    return scores[which], which


def _as_numbers(cells: Sequence[str]) -> Floats:
    """Return a column as a number, and as a code for each text."""
    numbers = np.array([parse_number(cell) for cell in cells])
    numbers[np.isnan(numbers)] = -1e9
    codes = {text: i for i, text in enumerate(sorted(set(cells)))}
    return np.column_stack([numbers, [codes[cell] for cell in cells]]).astype(float)


def submission(
    trial: Trial, predicted: Floats, classes: Sequence[str], rows: NDArray[np.int64]
) -> Columns:
    """Return what a model of the goal predicts, as a submission for all rows; only `rows` count.

    A predicted rank becomes the value that has this rank among the rows' answers: more than any
    agent could know, so the probe errs on the safe side.
    """
    names = [column["name"] for column in trial.schema["columns"]]
    kind = trial.metric.kind.name
    total = len(next(iter(trial.answers.values())))
    if kind == "probabilities":
        whole = np.full((total, len(names)), 1 / len(names))
        whole[rows] = predicted.clip(1e-6) / predicted.clip(1e-6).sum(axis=1, keepdims=True)
        return {name: whole[:, i] for i, name in enumerate(names)}
    (name,) = names
    if kind == "label":
        labels = np.full(total, classes[0], dtype=object)
        labels[rows] = np.array(classes, dtype=object)[predicted.argmax(axis=1)]
        return {name: labels}
    values = np.zeros(total)
    if classes:
        values[rows] = predicted[:, 1].clip(0.001, 0.999)
    else:
        values[rows] = np.quantile(trial.answers[name][rows], predicted[:, 0].clip(0, 1))
    return {name: values}


def _duplicates(files: Files, names: Sequence[str], id_column: str) -> list[Check]:
    """Compare how many rows of train come again in test, and in fresh rows, exactly or nearly."""
    train, test, pool = (
        [[row[table.header.index(n)] for n in names] for row in table.rows]
        for table in (files.train, files.test, files.pool)
    )
    seen = set(map(tuple, train))
    exact = sum(tuple(row) in seen for row in test)
    near = _near(train, test)
    expected = _near(train, pool) * len(test) / len(pool)
    ids = set(files.train.column(id_column)) & set(files.test.column(id_column))
    return [
        at_most("duplicate_rows", exact, 0),
        at_most("near_duplicates", near, round(expected + 4 * np.sqrt(expected) + 3, 2)),
        at_most("ids_on_both_sides", len(ids), 0),
    ]


def _near(train: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> int:
    """Count rows that agree with a training row in all but hundredths of a spread."""
    close: Any = True
    for mine, theirs in zip(zip(*train, strict=True), zip(*others, strict=True), strict=True):
        first, second = (np.array([parse_number(cell) for cell in c]) for c in (mine, theirs))
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


def _groups(recipe: Recipe, files: Files) -> Check:
    """No group of rows may be on both sides."""
    names = [c.name for c in columns_of(recipe) if c.kind == "group"]
    both: set[str] = set()
    for name in names:
        both |= set(files.train.column(name)) & set(files.test.column(name))
    return at_most("groups_on_both_sides", len(both), 0)


def _constants(train: Table, names: Sequence[str]) -> Check:
    dull = [name for name in names if len(set(train.column(name))) < 2]
    return at_most("constant_columns", len(dull), 0, ", ".join(dull))


def _cheater(
    files: Files,
    id_column: str,
    names: Sequence[str],
    goal: Floats,
    trial: Trial,
    median: float,
    classes: Sequence[str],
) -> Check:
    """Learn from the training rows what means nothing, and predict the test rows from it."""
    from sklearn.tree import DecisionTreeRegressor

    def look(table: Table) -> Floats:
        return np.column_stack([probe(table, id_column, names) for probe in PROBES.values()])

    tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=5, random_state=0)
    guess = (
        tree.fit(look(files.train), goal)
        .predict(look(files.test))
        .reshape(len(files.test.rows), -1)
    )
    score = trial.quality(submission(trial, guess, classes, trial.shipped), trial.shipped)
    return at_most("control_cheater", score, float(np.nextafter(median, -np.inf)))


def _support(files: Files, recipe: Recipe) -> list[Check]:
    """Every class must have some rows to learn from, and some to be measured on."""
    target = recipe.story.target
    if not target.classes:
        return []
    train = files.train.column(target.name)
    test = _answers(recipe, files.answer)
    few = min(train.count(c) for c in target.classes)
    tested = min(test.count(c) for c in target.classes)
    return [
        Check(name="rows_of_each_class:train", passed=few >= 4, value=few, limit=4),
        Check(name="rows_of_each_class:test", passed=tested >= 10, value=tested, limit=10),
    ]
