"""The ladder of a table: what anybody would try first, and the reference.

Each rung is a whole program in plain pandas and scikit-learn that reads only `input/`:
deterministic, one core, a few seconds. The generic ones see the table as it is; the reference
undoes the mutations, makes the family's features and learns from them.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from sandmle.factory.family import OutcomeKind, Solution

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
    the median rather than the mean is the best constant.
    """

    id_column: str
    target: str
    outcome: OutcomeKind
    classes: tuple[str, ...]
    form: str
    middle: bool

    @property
    def is_class(self) -> bool:
        """Return whether the target is a class."""
        return bool(self.classes)

    @property
    def in_logs(self) -> bool:
        """Return whether to learn the logarithm of the target."""
        return self.outcome == "amount"


class Remedy(NamedTuple):
    """The lines that undo one mutation, and what they do in a sentence."""

    recovery: str
    code: str


def generic_rungs(goal: Goal) -> list[Script]:
    """Return the dummy and the generic rungs."""
    if goal.is_class:
        dummy, zoo = 'DummyClassifier(strategy="prior")', _CLASSIFIERS
    else:
        strategy = "median" if goal.middle else "mean"
        dummy, zoo = f'DummyRegressor(strategy="{strategy}")', _REGRESSORS
    rungs = [_rung(goal, 0, "dummy", [], dummy, "train[[ID]]", "test[[ID]]")]
    return rungs + [
        _rung(goal, order, name, [_PREPARE], f"make_pipeline(prepare, {_in_logs(goal, model)})")
        for order, name, model in zoo
    ]


def tuned_rung(goal: Goal) -> Script:
    """Return the rung that picks one of several models by cross-validation."""
    zoo = _CLASSIFIERS if goal.is_class else _REGRESSORS
    models = [model for _, name, model in zoo if name in ("linear", "forest", "boosting")]
    lines = [f"    make_pipeline(prepare, {_in_logs(goal, model)})," for model in models]
    body = [_PREPARE, "\n".join(["models = [", *lines, "]"]), _SPLIT, _PICK]
    return Script(60, "tuned", "generic", _program(goal, body, "models[scores.index(max(scores))]"))


def reference(
    goal: Goal,
    solution: Solution,
    remedies: Sequence[Remedy],
    numeric: Sequence[str],
    name: str = "reference",
) -> Script:
    """Return the reference: `remedies` in the order in which the mutations were applied."""
    undone = [f"# {remedy.recovery}\n{remedy.code}" for remedy in reversed(remedies)]
    if solution.before:
        undone.append(solution.before.strip())
    body = [*undone, _GAPS.format(columns=list(numeric)), solution.features.strip()]
    solvers = _SOLVERS_CLASS if goal.is_class else _SOLVERS_NUMBER
    split = "X, X_test, y = features(train), features(test), train[TARGET]"
    code = _program(goal, [*body, split], _in_logs(goal, solvers[solution.model]))
    return Script(90, name, "reference", code)


def _rung(goal: Goal, order: int, name: str, body: Sequence[str], model: str, *data: str) -> Script:
    """Return a rung that learns from the tidied frames, or from those given."""
    split = f"X, X_test, y = {', '.join(data)}, train[TARGET]" if data else _SPLIT
    kind: Rank = "generic" if order else "dummy"
    return Script(order, name, kind, _program(goal, [*body, split], model))


def _program(goal: Goal, body: Sequence[str], model: str) -> str:
    """Assemble a program from what comes between reading and learning."""
    text = "\n\n".join([*body, f"clf = {model}"])
    return f"""\
import numpy as np
import pandas as pd
{_imports(text)}

ID, TARGET = "{goal.id_column}", "{goal.target}"
train = pd.read_csv("input/train.csv", dtype={{ID: str}})
test = pd.read_csv("input/test.csv", dtype={{ID: str}})

{text}
clf.fit(X, y)
{_predict(goal)}
"""


def _predict(goal: Goal) -> str:
    lines = {
        "label": "prediction = pd.DataFrame({TARGET: clf.predict(X_test)})",
        "score": "prediction = pd.DataFrame({TARGET: clf.predict_proba(X_test)[:, 1]})",
        "probability": "prediction = pd.DataFrame({TARGET: clf.predict_proba(X_test)[:, 1]})",
        "probabilities": (
            "prediction = pd.DataFrame(clf.predict_proba(X_test), columns=clf.classes_)"
        ),
        "number": "prediction = pd.DataFrame({TARGET: clf.predict(X_test)})",
        "nonnegative": "prediction = pd.DataFrame({TARGET: clf.predict(X_test).clip(0)})",
    }
    return (
        f"{lines[goal.form]}\n"
        "prediction.insert(0, ID, test[ID])\n"
        'prediction.to_csv("submission.csv", index=False, float_format="%.6g")'
    )


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
    """Return the import lines for the names of scikit-learn that some code uses."""
    homes: dict[str, list[str]] = {}
    for name in sorted(_HOMES):
        if re.search(rf"\b{name}\b", code):
            homes.setdefault(_HOMES[name], []).append(name)
    return "\n".join(f"from {home} import {', '.join(homes[home])}" for home in sorted(homes))


_SPLIT = "X, X_test, y = tidy(train), tidy(test), train[TARGET]"
_PICK = """\
scores = [cross_val_score(model, X, y, cv=3).mean() for model in models]
print("cross-validation:", [round(score, 3) for score in scores])"""

_PREPARE = '''\
def tidy(frame):
    """Numbers where most cells are numbers, days where they are dates, words otherwise."""
    frame = frame.drop(columns=[ID, TARGET], errors="ignore").copy()
    for name in frame.select_dtypes(exclude="number"):
        number = pd.to_numeric(train[name], errors="coerce")
        if number.notna().mean() > 0.5:
            frame[name] = pd.to_numeric(frame[name], errors="coerce")
        elif train[name].astype(str).str.match(r"\\d{4}-\\d\\d-\\d\\d").all():
            frame[name] = (pd.to_datetime(frame[name]) - pd.Timestamp("2023-01-01")).dt.days
    return frame


numeric = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
words = OneHotEncoder(handle_unknown="ignore", max_categories=20, sparse_output=False)
prepare = ColumnTransformer(
    [
        ("numeric", numeric, make_column_selector(dtype_include="number")),
        ("words", words, make_column_selector(dtype_exclude="number")),
    ]
)'''

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
    (40, "forest", "RandomForestClassifier(100, random_state=0)"),
    (45, "kernel", "CalibratedClassifierCV(SVC(C=3), ensemble=False)"),
    (50, "boosting", "GradientBoostingClassifier(n_estimators=60, subsample=0.8, random_state=0)"),
)
_REGRESSORS = (
    (20, "linear", "Ridge()"),
    (30, "neighbours", "KNeighborsRegressor(7)"),
    (40, "forest", "RandomForestRegressor(100, random_state=0)"),
    (
        45,
        "kernel",
        "TransformedTargetRegressor(SVR(C=3), transformer=StandardScaler())",
    ),
    (50, "boosting", "GradientBoostingRegressor(n_estimators=60, subsample=0.8, random_state=0)"),
)
_SOLVERS_CLASS = {
    "linear": "make_pipeline(StandardScaler(), GridSearchCV(LogisticRegression(max_iter=1000), "
    '{"C": [0.03, 0.1, 0.3, 1, 3, 10]}, cv=4, scoring="neg_log_loss"))',
    "sparse": "make_pipeline(StandardScaler(), GridSearchCV(OneVsRestClassifier("
    'LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=0)), '
    '{"estimator__C": [0.05, 0.15, 0.5, 2]}, cv=4, scoring="neg_log_loss"))',
    "trees": "ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)",
}
_SOLVERS_NUMBER = {
    "linear": "make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))",
    "sparse": "make_pipeline(StandardScaler(), LassoCV(cv=4, max_iter=5000))",
    "trees": "ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0)",
}
