"""What anybody would try on a table: at least a dozen plain models, each measured.

Every model sees the same view: numbers with their gaps filled and scaled, words as indicators.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError, TaskError
from sandmle.factory.real.table import Real, by_time
from sandmle.tasks.cells import parse_number

Rows = Sequence[int] | NDArray[np.int64]
Score = Callable[[Mapping[str, Any], Rows], float]
_FOLDS = 4
_WORDS = 20  # indicators of a column at most


class Measured(NamedTuple):
    """A model's scores: cross-validated on the training rows with its standard error, and hidden.

    `predicted` are its columns for the hidden rows.
    """

    name: str
    dummy: bool
    cv: float
    cv_error: float
    test: float
    predicted: Mapping[str, NDArray[Any]]


def measure(real: Real, score: Score) -> list[Measured]:
    """Fit and score every model; `score` takes columns and the positions of their rows."""
    train, test = np.array(real.rows(False)), np.array(real.rows(True))
    x, y = _features(real, train), _goal(real)
    folds = _folds(real, train)
    measured = []
    for name, make in (_CLASSIFIERS if real.classes else _REGRESSORS).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one that does not converge is measured as it is
            scores = _cross_validated(real, score, make, x, y, folds)
            predicted = _predict(real, make().fit(x[train], y[train]), x[test])
        spread = float(np.std(scores, ddof=1) / np.sqrt(len(scores)))
        measured.append(
            Measured(
                name, name.startswith("dummy"), float(np.mean(scores)), spread,
                score(predicted, test), predicted,
            )
        )  # fmt: skip
    return measured


def _cross_validated(
    real: Real, score: Score, make: Callable[[], Any], x: Any, y: Any, folds: Any
) -> list[float]:
    scores = []
    for inside, outside in folds:
        if real.classes and len(set(y[inside])) < 2:
            continue
        with suppress(GradingError):  # a fold may lack a class that the metric wants
            model = make().fit(x[inside], y[inside])
            scores.append(score(_predict(real, model, x[outside]), outside))
    if len(scores) < 2:
        raise TaskError(f"{real.target!r} cannot be cross-validated: too few rows of some class")
    return scores


def _features(real: Real, train: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the view that models have; what it is scaled by comes from the training rows."""
    parts: list[NDArray[np.float64]] = []
    for name in real.features:
        cells = real.table.column(name)
        numbers = np.array([parse_number(cell) for cell in cells])
        known = ~np.isnan(numbers[train])
        if known.mean() > 0.5:
            low = float(np.median(numbers[train][known]))
            filled = np.where(np.isnan(numbers), low, numbers)
            spread = float(filled[train].std()) or 1.0
            parts.append(((filled - filled[train].mean()) / spread)[:, None])
            continue
        words, counts = np.unique(np.array(cells)[train], return_counts=True)
        often = words[np.argsort(-counts, kind="stable")][:_WORDS]
        parts.append((np.array(cells)[:, None] == often[None]).astype(float))
    return np.hstack(parts)


def _goal(real: Real) -> NDArray[Any]:
    if real.classes:
        return np.array(real.values, dtype=object).astype(str)
    return np.array([parse_number(value) for value in real.values])


def _folds(real: Real, train: NDArray[np.int64]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Split the training rows as the hidden ones were split off: by group, by time, or anyhow."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

    labels = np.array(real.values, dtype=object).astype(str)[train]
    if real.split == "group":
        groups = np.array(real.units, dtype=object)[train]
        pairs = GroupKFold(_FOLDS).split(train, groups=groups)
    elif real.split == "time":
        place = {time: n for n, time in enumerate(by_time(sorted(set(real.units))))}
        order = np.argsort([place[real.units[i]] for i in train], kind="stable")
        found = TimeSeriesSplit(_FOLDS).split(order)
        pairs = ((order[inside], order[outside]) for inside, outside in found)
    elif real.classes:
        pairs = StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(train, labels)
    else:
        pairs = KFold(_FOLDS, shuffle=True, random_state=0).split(train)
    return [(train[inside], train[outside]) for inside, outside in pairs]


def _predict(real: Real, model: Any, x: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return what a model submits for some rows, in the form that the metric wants."""
    form = real.metric.kind.name
    if form == "label":
        return {real.target: model.predict(x)}
    if form in ("score", "probability", "probabilities"):
        chances = dict(zip(model.classes_, model.predict_proba(x).T, strict=True))
        zero = np.zeros(len(x))
        if form == "probabilities":
            return {label: chances.get(label, zero) for label in real.classes}
        return {real.target: chances.get("1", zero)}
    values = model.predict(x)
    return {real.target: np.clip(values, 0, None) if form == "nonnegative" else values}


def _named(module: str, name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import importlib

        return getattr(importlib.import_module(f"sklearn.{module}"), name)(**options)

    return make


_CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "dummy": _named("dummy", "DummyClassifier", strategy="prior"),
    "bayes": _named("naive_bayes", "GaussianNB"),
    "stump": _named("tree", "DecisionTreeClassifier", max_depth=1, random_state=0),
    "tree": _named("tree", "DecisionTreeClassifier", max_depth=4, random_state=0),
    "deep-tree": _named("tree", "DecisionTreeClassifier", min_samples_leaf=3, random_state=0),
    "neighbours-3": _named("neighbors", "KNeighborsClassifier", n_neighbors=3),
    "neighbours-15": _named("neighbors", "KNeighborsClassifier", n_neighbors=15),
    "linear-weak": _named("linear_model", "LogisticRegression", C=0.005, max_iter=300),
    "linear": _named("linear_model", "LogisticRegression", C=1.0, max_iter=300),
    "discriminant": _named("discriminant_analysis", "LinearDiscriminantAnalysis"),
    "forest-10": _named("ensemble", "RandomForestClassifier", n_estimators=10, random_state=0),
    "forest": _named(
        "ensemble", "RandomForestClassifier", n_estimators=60, min_samples_leaf=2, random_state=0
    ),
    "extra-trees": _named("ensemble", "ExtraTreesClassifier", n_estimators=60, random_state=0),
    "boosting": _named("ensemble", "GradientBoostingClassifier", n_estimators=40, random_state=0),
}
_REGRESSORS: dict[str, Callable[[], Any]] = {
    "dummy": _named("dummy", "DummyRegressor"),
    "dummy-median": _named("dummy", "DummyRegressor", strategy="median"),
    "stump": _named("tree", "DecisionTreeRegressor", max_depth=1, random_state=0),
    "tree": _named("tree", "DecisionTreeRegressor", max_depth=4, random_state=0),
    "deep-tree": _named("tree", "DecisionTreeRegressor", min_samples_leaf=3, random_state=0),
    "neighbours-3": _named("neighbors", "KNeighborsRegressor", n_neighbors=3),
    "neighbours-15": _named("neighbors", "KNeighborsRegressor", n_neighbors=15),
    "linear-weak": _named("linear_model", "Ridge", alpha=1000.0),
    "linear": _named("linear_model", "Ridge", alpha=1.0),
    "sparse": _named("linear_model", "LassoCV", cv=3, max_iter=2000),
    "robust": _named("linear_model", "HuberRegressor", max_iter=500),
    "forest-10": _named("ensemble", "RandomForestRegressor", n_estimators=10, random_state=0),
    "forest": _named(
        "ensemble", "RandomForestRegressor", n_estimators=60, min_samples_leaf=2, random_state=0
    ),
    "extra-trees": _named("ensemble", "ExtraTreesRegressor", n_estimators=60, random_state=0),
    "boosting": _named("ensemble", "GradientBoostingRegressor", n_estimators=60, random_state=0),
}
