# needs: pandas scikit-learn
"""A stack of three unlike models under a logistic regression."""

import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
y = train.pop("fault")

both = pd.get_dummies(
    pd.concat([train, test]).drop(columns=["id", "installed"]),
    columns=["maker", "region", "insulated"],
    dtype=int,
)
X, X_test = both.iloc[: len(train)], both.iloc[len(train) :]

base = [
    ("linear", make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())),
    ("near", make_pipeline(SimpleImputer(), StandardScaler(), KNeighborsClassifier(15))),
    (
        "trees",
        make_pipeline(
            SimpleImputer(),
            ExtraTreesClassifier(30, min_samples_leaf=2, random_state=0),
        ),
    ),
]
for name, model in base:
    score = cross_val_score(model, X, y, cv=3, scoring="roc_auc").mean()
    print(f"{name:<8}{score:.4f}")

stack = StackingClassifier(base, final_estimator=LogisticRegression(), cv=3)
score = cross_val_score(stack, X, y, cv=3, scoring="roc_auc").mean()
print(f"{'stack':<8}{score:.4f}")

stack.fit(X, y)
submission = pd.DataFrame({"id": test["id"], "fault": stack.predict_proba(X_test)[:, 1]})
submission.to_csv("submission.csv", index=False, float_format="%.5f")
