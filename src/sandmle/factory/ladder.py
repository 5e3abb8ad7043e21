"""The generic rungs of a ladder for tables: what anybody would try first.

Each is a whole program in plain pandas and scikit-learn, deterministic, one core, a few seconds.
"""

from sandmle.factory.family import Script, Target

_READ = """\
import pandas as pd
{imports}

train = pd.read_csv("input/train.csv", dtype={{"{id}": str}})
test = pd.read_csv("input/test.csv", dtype={{"{id}": str}})
X, y = train.drop(columns=["{id}", "{target}"]), train["{target}"]
X_test = test.drop(columns=["{id}"])
{model}
test["{target}"] = {prediction}
test[["{id}", "{target}"]].to_csv("submission.csv", index=False)
"""


def script(target: Target, imports: str, model: str) -> str:
    """Return a program that predicts with the estimator that `model` leaves in `clf`."""
    prediction = "clf.predict_proba(X_test)[:, 1]" if target.wants_score else "clf.predict(X_test)"
    return _READ.format(
        imports=imports,
        model=model.strip(),
        prediction=prediction,
        id=target.id_column,
        target=target.name,
    )


def generic_rungs(target: Target) -> list[Script]:
    """Return the dummy, linear, forest and tuned rungs of a classification table."""
    return [
        Script(0, "dummy", "dummy", script(target, _DUMMY_IMPORTS, _DUMMY)),
        Script(20, "linear", "generic", script(target, _LINEAR_IMPORTS, _LINEAR)),
        Script(40, "forest", "generic", script(target, _FOREST_IMPORTS, _FOREST)),
        Script(60, "tuned", "generic", script(target, _TUNED_IMPORTS, _TUNED)),
    ]


_DUMMY_IMPORTS = "from sklearn.dummy import DummyClassifier"
_DUMMY = 'clf = DummyClassifier(strategy="prior").fit(X, y)'

_LINEAR_IMPORTS = """\
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler"""
_LINEAR = "clf = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y)"

_FOREST_IMPORTS = "from sklearn.ensemble import RandomForestClassifier"
_FOREST = "clf = RandomForestClassifier(200, random_state=0).fit(X, y)"

_TUNED_IMPORTS = """\
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler"""
_TUNED = """
models = [
    make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
    RandomForestClassifier(200, min_samples_leaf=3, random_state=0),
    GradientBoostingClassifier(n_estimators=80, subsample=0.8, random_state=0),
]
scores = [cross_val_score(model, X, y, cv=4).mean() for model in models]
print("cross-validation:", [round(score, 3) for score in scores])
clf = models[scores.index(max(scores))].fit(X, y)
"""
