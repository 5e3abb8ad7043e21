"""The ladder of a task: what anybody would try first, and the reference.

Each rung is a whole program in plain pandas and scikit-learn that reads only `input/`:
deterministic, one core, a few seconds. The generic ones see the data as they are; the reference
undoes the mutations, makes the family's features and learns from them.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from sandmle.factory.family import OutcomeKind, Solution
from sandmle.factory.story import IN_LOGS
from sandmle.factory.views import Column, loading, looking

Rank = Literal["dummy", "generic", "reference"]


class Script(NamedTuple):
    """A script of the ladder; `order` is its two-digit prefix, low is easy."""

    order: int
    name: str
    kind: Rank
    code: str


class Goal(NamedTuple):
    """What a script must know of its task.

    `form` is the kind of submission that the metric wants (`metrics/kinds.py`), `middle` whether
    the median rather than the mean is the best constant. `columns` are those that have to be loaded
    or looked at, `look` is the source of what anybody makes of other tables, `tables` are the paths
    of these, `shape` is that of a picture with a mask or boxes, and `most` how many boxes it may
    have.
    """

    id_column: str
    targets: tuple[str, ...]
    outcome: OutcomeKind
    classes: tuple[str, ...]
    form: str
    middle: bool
    columns: tuple[Column, ...] = ()
    look: str = ""
    tables: tuple[str, ...] = ()
    shape: tuple[int, int] | None = None
    most: int = 0

    @property
    def is_class(self) -> bool:
        """Return whether classes are learned: one a row, or whether each of several holds."""
        return bool(self.classes) and self.outcome != "shares"

    @property
    def is_plain(self) -> bool:
        """Return whether the columns of the tables are all there is."""
        return not (self.columns or self.look)

    @property
    def in_logs(self) -> bool:
        """Return whether to learn the logarithm of the target."""
        return self.outcome in IN_LOGS


class Remedy(NamedTuple):
    """The lines that undo one mutation, and what they do in a sentence."""

    recovery: str
    code: str


def generic_rungs(goal: Goal) -> list[Script]:
    """Return the dummy and the generic rungs, the last of which picks among the others."""
    if goal.is_class:
        dummy, known = 'DummyClassifier(strategy="prior")', _CLASSIFIERS
    else:
        strategy = "median" if goal.middle else "mean"
        dummy, known = f'DummyRegressor(strategy="{strategy}")', _REGRESSORS
    # on the hundreds of columns that pictures and texts become, these are slow or never the best
    zoo = [rung for rung in known if goal.is_plain or rung[1] not in ("boosting", "neighbours")]
    models = {name: f"make_pipeline(prepare, {learner(goal, model)})" for _, name, model in zoo}
    body = [generic_view(goal)]
    bare = program(goal, [_data("train[[ID]]", "test[[ID]]"), _learn(learner(goal, dummy))], "")
    rungs = [Script(0, "dummy", "dummy", bare + _predict(goal))]
    for order, name, _ in zoo:
        code = program(goal, [*body, _split(goal), _learn(models[name])])
        rungs.append(Script(order, name, "generic", code + _predict(goal)))
    lines = [f"    {models[name]}," for name in ("linear", "forest", "boosting") if name in models]
    pick = ["\n".join(["models = [", *lines, "]"]), _split(goal), _PICK]
    code = program(goal, [*body, *pick, _learn("models[scores.index(max(scores))]")])
    return [*rungs, Script(60, "tuned", "generic", code + _predict(goal))]


def generic_view(goal: Goal) -> str:
    """Return the source of `tidy` or `view`, and of what prepares its columns for a model."""
    if goal.is_plain:
        return f"{_TIDY}\n\n\n{_PREPARE}"
    return f"{_TIDY}\n\n\n{looking(goal.columns, goal.look)}\n\n\n{_PREPARE}"


def reference(goal: Goal, opening: Sequence[str], solution: Solution, name: str) -> Script:
    """Return the reference; `opening` undoes the mutations."""
    solvers = _SOLVERS_CLASS if goal.is_class else _SOLVERS_NUMBER
    body = [*opening, solution.features.strip(), _data("features(train)", "features(test)")]
    code = program(goal, [*body, _learn(learner(goal, solvers[solution.model]))])
    return Script(90, name, "reference", code + _predict(goal))


def opening(remedies: Sequence[Remedy], solution: Solution, numeric: Sequence[str]) -> list[str]:
    """Return what a reference does first; `remedies` in the order of the mutations."""
    undone = [f"# {remedy.recovery}\n{remedy.code}" for remedy in reversed(remedies)]
    if solution.before:
        undone.append(solution.before.strip())
    return [*undone, _GAPS.format(columns=list(numeric))] if numeric else undone


def program(goal: Goal, body: Sequence[str], load: str | None = None) -> str:
    """Assemble a program up to its submission; `load` in the place of loading every column."""
    if load is None:
        load = loading(goal.columns, goal.tables)
    text = "\n\n".join(part for part in (load, *body) if part)
    target = json.dumps(goal.targets[0] if len(goal.targets) == 1 else list(goal.targets))
    return f"""\
{_imports(text)}

ID, TARGET = "{goal.id_column}", {target}
train = pd.read_csv("input/train.csv", dtype={{ID: str}})
test = pd.read_csv("input/test.csv", dtype={{ID: str}})

{text}
"""


def learner(goal: Goal, model: str) -> str:
    """Return a model as this target needs it."""
    if goal.outcome == "tags":
        return f"OneVsRestClassifier({model})"
    if goal.outcome == "shares":
        return f"MultiOutputRegressor({model})"
    return _in_logs(goal, model)


def _split(goal: Goal) -> str:
    view = "tidy" if goal.is_plain else "view"
    return _data(f"{view}(train)", f"{view}(test)")


def _data(train: str, test: str) -> str:
    return f"X, X_test, y = {train}, {test}, train[TARGET]"


def _learn(model: str) -> str:
    return f"clf = {model}\nclf.fit(X, y)"


def _predict(goal: Goal) -> str:
    lines = {
        "label": "prediction = pd.DataFrame({TARGET: clf.predict(X_test)})",
        "score": "prediction = pd.DataFrame({TARGET: clf.predict_proba(X_test)[:, 1]})",
        "probability": "prediction = pd.DataFrame({TARGET: clf.predict_proba(X_test)[:, 1]})",
        "probabilities": (
            "prediction = pd.DataFrame(clf.predict_proba(X_test), columns=clf.classes_)"
        ),
        "number": "prediction = pd.DataFrame({TARGET: clf.predict(X_test)})",
        "ranking": "prediction = pd.DataFrame({TARGET: clf.predict(X_test)})",
        "nonnegative": "prediction = pd.DataFrame({TARGET: clf.predict(X_test).clip(0)})",
        "columns": "prediction = pd.DataFrame(clf.predict_proba(X_test), columns=TARGET)",
        "shares": (
            "shares = clf.predict(X_test).clip(0.001)\n"
            "shares /= shares.sum(axis=1, keepdims=True)\n"
            "prediction = pd.DataFrame(shares, columns=TARGET)"
        ),
    }
    return f"{lines[goal.form]}\n{WRITE}\n"


WRITE = """\
prediction.insert(0, ID, test[ID])
prediction.to_csv("submission.csv", index=False, float_format="%.6g")"""


def _in_logs(goal: Goal, model: str) -> str:
    if not goal.in_logs:
        return model
    return f"TransformedTargetRegressor({model}, func=np.log, inverse_func=np.exp)"


_HOMES = {
    "TransformedTargetRegressor": "sklearn.compose",
    "ColumnTransformer": "sklearn.compose",
    "make_column_selector": "sklearn.compose",
    "CalibratedClassifierCV": "sklearn.calibration",
    "DummyClassifier": "sklearn.dummy",
    "DummyRegressor": "sklearn.dummy",
    "ExtraTreesClassifier": "sklearn.ensemble",
    "ExtraTreesRegressor": "sklearn.ensemble",
    "GradientBoostingClassifier": "sklearn.ensemble",
    "GradientBoostingRegressor": "sklearn.ensemble",
    "RandomForestClassifier": "sklearn.ensemble",
    "RandomForestRegressor": "sklearn.ensemble",
    "SimpleImputer": "sklearn.impute",
    "LassoCV": "sklearn.linear_model",
    "LogisticRegression": "sklearn.linear_model",
    "Ridge": "sklearn.linear_model",
    "RidgeCV": "sklearn.linear_model",
    "GridSearchCV": "sklearn.model_selection",
    "cross_val_predict": "sklearn.model_selection",
    "TfidfVectorizer": "sklearn.feature_extraction.text",
    "CountVectorizer": "sklearn.feature_extraction.text",
    "KMeans": "sklearn.cluster",
    "PCA": "sklearn.decomposition",
    "TruncatedSVD": "sklearn.decomposition",
    "MultiOutputRegressor": "sklearn.multioutput",
    "cross_val_score": "sklearn.model_selection",
    "OneVsRestClassifier": "sklearn.multiclass",
    "KNeighborsClassifier": "sklearn.neighbors",
    "KNeighborsRegressor": "sklearn.neighbors",
    "make_pipeline": "sklearn.pipeline",
    "OneHotEncoder": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
    "SVC": "sklearn.svm",
    "SVR": "sklearn.svm",
}


def _imports(code: str) -> str:
    """Return the import lines for the names and modules that some code uses."""
    homes: dict[str, list[str]] = {}
    for name in sorted(_HOMES):
        if re.search(rf"\b{name}\b", code):
            homes.setdefault(_HOMES[name], []).append(name)
    own = [f"import {name}" for name in _OWN if re.search(rf"\b{name}\.", code)]
    others = [line for name, line in _OTHERS.items() if re.search(rf"\b{name}\.", code)]
    others += [f"from {home} import {', '.join(homes[home])}" for home in sorted(homes)]
    lines = [*own, *[""] * bool(own), "import numpy as np", "import pandas as pd", *others]
    return "\n".join(lines)


# modules that some features need, of Python itself and others
_OWN = ("itertools", "json", "math", "re", "wave")
_OTHERS = {
    "Image": "from PIL import Image",
    "ndimage": "from scipy import ndimage",
    "signal": "from scipy import signal",
    "sparse": "from scipy import sparse",
}

_PICK = """\
scores = [cross_val_score(model, X, y, cv=3).mean() for model in models]
print("cross-validation:", [round(score, 3) for score in scores])"""

_TIDY = '''\
def tidy(frame):
    """Numbers where most cells are numbers, days where they are dates, words otherwise."""
    frame = frame[[name for name in test.columns if name in frame and name != ID]].copy()
    for name in frame.select_dtypes(exclude="number"):
        number = pd.to_numeric(train[name], errors="coerce")
        if number.notna().mean() > 0.5:
            frame[name] = pd.to_numeric(frame[name], errors="coerce")
        elif train[name].astype(str).str.match(r"\\d{4}-\\d\\d-\\d\\d").all():
            frame[name] = (pd.to_datetime(frame[name]) - pd.Timestamp("2023-01-01")).dt.days
    return frame'''
_PREPARE = """\
numeric = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
words = OneHotEncoder(handle_unknown="ignore", max_categories=20, sparse_output=False)
prepare = ColumnTransformer(
    [
        ("numeric", numeric, make_column_selector(dtype_include="number")),
        ("words", words, make_column_selector(dtype_exclude="number")),
    ]
)"""

_GAPS = """\
# what is still not a number is a gap
numeric = {columns}
for name in numeric:
    train[name] = pd.to_numeric(train[name], errors="coerce")
    test[name] = pd.to_numeric(test[name], errors="coerce").fillna(train[name].median())
    train[name] = train[name].fillna(train[name].median())"""

_CLASSIFIERS = (
    (20, "linear", "LogisticRegression(max_iter=1000)"),
    (30, "neighbours", "KNeighborsClassifier(7)"),
    (40, "forest", "RandomForestClassifier(50, random_state=0)"),
    (45, "kernel", "CalibratedClassifierCV(SVC(C=3), cv=3, ensemble=False)"),
    (50, "boosting", "GradientBoostingClassifier(n_estimators=60, subsample=0.8, random_state=0)"),
)
_REGRESSORS = (
    (20, "linear", "Ridge()"),
    (30, "neighbours", "KNeighborsRegressor(7)"),
    (40, "forest", "RandomForestRegressor(50, random_state=0)"),
    (
        45,
        "kernel",
        "TransformedTargetRegressor(SVR(C=3), transformer=StandardScaler())",
    ),
    (50, "boosting", "GradientBoostingRegressor(n_estimators=60, subsample=0.8, random_state=0)"),
)
_SOLVERS_CLASS = {
    "linear": "make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(max_iter=1000), "
    '{"C": [0.03, 0.15, 0.8, 4]}, cv=4, scoring="neg_log_loss"))',
    "sparse": "make_pipeline(StandardScaler(), GridSearchCV(OneVsRestClassifier("
    'LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)), '
    '{"estimator__C": [0.05, 0.15, 0.5, 2]}, cv=4, scoring="neg_log_loss"))',
    "trees": "ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)",
    "kernel": "make_pipeline(StandardScaler(), "
    "CalibratedClassifierCV(SVC(C=3), cv=3, ensemble=False))",
}
_SOLVERS_NUMBER = {
    "linear": "make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))",
    "sparse": "make_pipeline(StandardScaler(), LassoCV(cv=4, max_iter=5000))",
    "trees": "ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0)",
    "kernel": "make_pipeline(StandardScaler(), TransformedTargetRegressor(SVR(C=3), "
    "transformer=StandardScaler()))",
}
