# needs: pandas scikit-learn
"""A random forest on all cores, with its out-of-bag score and its importances."""

import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

data = pd.concat([train, test], keys=["train", "test"])
data["year"] = pd.to_datetime(data["installed"]).dt.year
data["off_pressure"] = (data["pressure"] - data["pressure"].median()).abs()
for column in ["maker", "region", "insulated"]:
    data[column] = data[column].astype("category").cat.codes
features = [c for c in data.columns if c not in ("id", "installed", "fault")]
data[features] = data[features].fillna(data[features].median())

X, y = data.loc["train", features], train["fault"]
forest = RandomForestClassifier(
    n_estimators=200, max_features=3, oob_score=True, n_jobs=-1, random_state=42
)
forest.fit(X, y)
print(f"OOB accuracy {forest.oob_score_:.4f}")
print(f"OOB AUC {roc_auc_score(y, forest.oob_decision_function_[:, 1]):.4f}")
importances = pd.Series(forest.feature_importances_, index=features)
print(importances.sort_values(ascending=False).round(3).to_string())

test["fault"] = forest.predict_proba(data.loc["test", features])[:, 1]
test[["id", "fault"]].to_csv("submission.csv", index=False, float_format="%.4f")
