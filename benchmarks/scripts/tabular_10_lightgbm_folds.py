# needs: lightgbm numpy pandas scikit-learn
"""LightGBM with early stopping in five folds."""

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

for column in ["maker", "region", "insulated"]:
    train[column] = train[column].astype("category")
    test[column] = pd.Categorical(test[column], categories=train[column].cat.categories)
for frame in (train, test):
    frame["age_days"] = (pd.Timestamp("2024-06-01") - pd.to_datetime(frame["installed"])).dt.days

features = [c for c in test.columns if c not in ("id", "installed")]
X, y = train[features], train["fault"]
oof, pred = np.zeros(len(train)), np.zeros(len(test))

params = {
    "objective": "binary",
    "metric": "auc",
    "learning_rate": 0.05,
    "num_leaves": 7,
    "min_child_samples": 8,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "feature_fraction": 0.8,
    "seed": 42,
    "num_threads": 1,
    "verbosity": -1,
}
cv = StratifiedKFold(n_splits=5, shuffle=True, random_state=42)
for fold, (fit, valid) in enumerate(cv.split(X, y), start=1):
    data = lgb.Dataset(X.iloc[fit], y.iloc[fit])
    watched = data.create_valid(X.iloc[valid], y.iloc[valid])
    stop = lgb.early_stopping(30, verbose=False)
    model = lgb.train(params, data, 300, valid_sets=[watched], callbacks=[stop])
    oof[valid] = model.predict(X.iloc[valid])
    pred += model.predict(test[features]) / cv.n_splits
    auc = roc_auc_score(y.iloc[valid], oof[valid])
    print(f"fold {fold}: {model.best_iteration} trees, AUC {auc:.4f}")

print(f"OOF AUC: {roc_auc_score(y, oof):.4f}")
pd.DataFrame({"id": test["id"], "fault": pred.round(5)}).to_csv("submission.csv", index=False)
