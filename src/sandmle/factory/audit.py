"""The shortcut audit: can the answers be had without doing the task?

Probes (`factory/probes.py`) look at what carries no meaning; on thousands of rows they must explain
nothing. Then each column alone, rows that train and test share, groups on both sides, and columns
that say nothing.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.build import Draw, Recipe, columns_of, sort_of
from sandmle.factory.gate import at_most
from sandmle.factory.probes import PROBES, View
from sandmle.factory.story import NAMED, StoryTarget
from sandmle.factory.targets import Sort
from sandmle.factory.trial import Trial
from sandmle.factory.views import LOADERS, LOOKS
from sandmle.tasks.cells import parse_number
from sandmle.tasks.submission import read_table
from sandmle.types import Check

MAX_EXPLAINED = 0.02  # share of the target's variance, at the lower end of its interval
_SURE = 3.0  # standard errors
_FOLDS = 4
_SEVERAL = ("tags", "shares", "mask", "boxes", "span")
_NEAR = 0.02  # spreads within which two numbers are taken for the same

Floats = NDArray[np.float64]


class Case(NamedTuple):
    """A task under audit: train, test and pool, and what is to be explained in each of them.

    `median` and `gold` are turned so that higher is better.
    """

    views: dict[str, View]
    goals: dict[str, Floats]
    target: StoryTarget
    sort: Sort
    trial: Trial
    median: float
    gold: float

    def score(
        self, predicted: Floats, rows: NDArray[np.int64], known: NDArray[Any] | None
    ) -> float | None:
        """Score what a model of the goal predicts for some rows; None if it makes no submission.

        `known` are target values that a predicted rank is turned into one of.
        """
        form = self.trial.metric.kind.name
        guess = self.sort.guess(self.target, form, predicted, known)
        if guess is None:
            return None
        whole = {}
        for name, values in guess.items():
            whole[name] = np.empty(len(self.trial.ids), dtype=values.dtype)
            whole[name][rows] = values
        return self.trial.quality(whole, rows)


def audit(
    recipe: Recipe, shipped: Draw, pool: Draw, trial: Trial, median: float, gold: float
) -> list[Check]:
    """Make every check for shortcuts; `median` and `gold` are turned so that higher is better."""
    target, sort = recipe.story.target, sort_of(recipe)
    kinds = {column.name: column.kind for column in columns_of(recipe)}
    key = recipe.story.id_column
    views = {
        "pool": View.of(pool.test, pool, key, target.columns, kinds),
        "test": View.of(shipped.test, shipped, key, target.columns, kinds),
        "train": View.of(shipped.train, shipped, key, target.columns, kinds),
    }
    told = {"pool": read_table(pool.answer), "test": read_table(shipped.answer)}
    told["train"] = views["train"].table
    case = Case(
        views=views,
        goals={where: sort.goal(target, table) for where, table in told.items()},
        target=target,
        sort=sort,
        trial=trial,
        median=median,
        gold=gold,
    )
    return checks_of(case)


def checks_of(case: Case) -> list[Check]:
    """Make every check for shortcuts on a case, however its task came about."""
    return [
        *_leaks(case),
        _single_column(case),
        *_duplicates(case),
        _constants(case),
        _cheater(case),
        *_support(case),
    ]


def _leaks(case: Case) -> list[Check]:
    """Ask of each table how much of the target is explained by what means nothing."""
    # indicators of classes are one thing to explain; several tags, or place and size, are several
    several = case.target.kind in _SEVERAL
    goals = {
        where: [goal[:, [k]] for k in range(goal.shape[1])] if several else [goal]
        for where, goal in case.goals.items()
    }
    return [
        at_most(
            f"leak_{sort}:{where}",
            max(explained(found, goal) for goal in goals[where]),
            MAX_EXPLAINED,
        )
        for where, view in case.views.items()
        for sort, probe in PROBES.items()
        for found in [probe(view)]
        if found is not None
    ]


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
    """Score what one column alone predicts on the pool, with most of the pool to learn from.

    Only columns of numbers and words: what is in a picture or a text is for the ladder to find.
    """
    view, goal = case.views["pool"], case.goals["pool"]
    scores: dict[str, float] = {}
    for name in view.names:
        features = _as_numbers(view.table.column(name))
        if view.kinds.get(name) in LOADERS.keys() | LOOKS.keys() or np.ptp(features) == 0:
            continue
        predicted = np.zeros(goal.shape)
        for _, outside, model in _folds(features, goal, depth=6, leaf=10):
            predicted[outside] = model.predict(features[outside]).reshape(len(outside), -1)
        known = case.trial.answers.get(case.target.name)
        score = case.score(predicted, case.trial.pool, known)
        if score is not None:
            scores[name] = score
    if not scores:
        return Check(name="single_column_below_gold", passed=None, detail="there is no such column")
    which = max(scores, key=lambda name: scores[name])
    below = float(np.nextafter(case.gold, -np.inf))
    return at_most("single_column_below_gold", scores[which], below, f"column {which!r}")


def _as_numbers(cells: Sequence[str]) -> Floats:
    """Return a column as a number, and as a code for each text."""
    numbers = _numbers(cells)
    numbers[np.isnan(numbers)] = -1e9
    codes = {text: i for i, text in enumerate(sorted(set(cells)))}
    return np.column_stack([numbers, [codes[cell] for cell in cells]]).astype(float)


def _duplicates(case: Case) -> list[Check]:
    """Compare how many rows of train come again in test, and in fresh rows, exactly or nearly."""
    views = case.views
    names = views["test"].names
    train, test, pool = (
        list(zip(*(views[where].content(name) for name in names), strict=True))
        for where in ("train", "test", "pool")
    )
    seen = set(train)
    near = _near(train, test)
    expected = _near(train, pool) * len(test) / len(pool)
    groups = [name for name, kind in views["test"].kinds.items() if kind in NAMED]
    both = {
        name: len(set(views["train"].table.column(name)) & set(views["test"].table.column(name)))
        for name in (views["test"].id_column, *groups)
    }
    return [
        at_most("duplicate_rows", sum(row in seen for row in test), 0),
        at_most("near_duplicates", near, round(expected + 4 * np.sqrt(expected) + 3, 2)),
        at_most("ids_on_both_sides", both[views["test"].id_column], 0),
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
    view = case.views["train"]
    dull = [name for name in view.names if len(set(view.table.column(name))) < 2]
    return at_most("constant_columns", len(dull), 0, ", ".join(dull))


def _cheater(case: Case) -> Check:
    """Learn from the training rows what means nothing, and predict the test rows from it."""
    from sklearn.tree import DecisionTreeRegressor

    def look(view: View) -> Floats:
        found = [probe(view) for probe in PROBES.values()]
        return np.column_stack([features for features in found if features is not None])

    train = case.views["train"]
    tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=5, random_state=0)
    guess = tree.fit(look(train), case.goals["train"]).predict(look(case.views["test"]))
    predicted = guess.reshape(len(case.goals["test"]), -1)
    name = case.target.name
    known = _numbers(train.table.column(name)) if name in train.table.header else None
    score = case.score(predicted, case.trial.shipped, known)
    if score is None:
        return Check(name="control_cheater", passed=None, detail="a guess makes no such target")
    return at_most("control_cheater", score, float(np.nextafter(case.median, -np.inf)))


def _support(case: Case) -> list[Check]:
    """Every class must have some rows to learn from, and some to be measured on."""
    if not case.target.classes or case.target.kind == "shares":
        return []
    return [
        Check(name=f"rows_of_each_class:{where}", passed=few >= limit, value=few, limit=limit)
        for where, limit in (("train", 4), ("test", 10))
        for few in [int(case.goals[where].sum(axis=0).min())]
    ]


def _numbers(cells: Sequence[str]) -> Floats:
    return np.array([parse_number(cell) for cell in cells])
