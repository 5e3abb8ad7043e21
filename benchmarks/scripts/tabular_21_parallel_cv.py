# needs: joblib pandas scikit-learn
"""Cross-validation of three tree ensembles in two threads."""

import pandas as pd
from joblib import parallel_config
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
y = train["fault"]

both = pd.concat([train.drop(columns="fault"), test]).drop(columns=["id", "installed"])
both = pd.get_dummies(both, columns=["maker", "region", "insulated"], dtype=int)
both = both.fillna(both.mean())
X, X_test = both.iloc[: len(train)], both.iloc[len(train) :]

models = {
    "extra trees": ExtraTreesClassifier(50, max_depth=6, random_state=0),
    "bagging": BaggingClassifier(n_estimators=20, random_state=0),
    "ada boost": AdaBoostClassifier(n_estimators=20, random_state=0),
}
cv = StratifiedKFold(n_splits=4, shuffle=True, random_state=0)
scores = {}
with parallel_config(backend="threading", n_jobs=2):
    for name, model in models.items():
        scores[name] = cross_val_score(model, X, y, cv=cv, scoring="roc_auc").mean()
print(pd.Series(scores).sort_values(ascending=False).round(4).to_string())

best = models[max(scores, key=scores.get)].fit(X, y)
submission = pd.read_csv("./input/sample_submission.csv")
submission["fault"] = best.predict_proba(X_test)[:, 1].round(4)
submission.to_csv("submission.csv", index=False)
