# needs: numpy pandas scikit-learn
"""Histogram gradient boosting with native categories and missing values, averaged over folds."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

CATEGORIES = ["maker", "region", "insulated"]

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
sample = pd.read_csv("./input/sample_submission.csv")

for column in CATEGORIES:
    levels = sorted(set(train[column]) | set(test[column]))
    train[column] = pd.Categorical(train[column], categories=levels)
    test[column] = pd.Categorical(test[column], categories=levels)
for frame in (train, test):
    frame["installed"] = pd.to_datetime(frame["installed"]).dt.year

features = test.columns.drop("id")
oof = np.zeros(len(train))
pred = np.zeros(len(test))
folds = StratifiedKFold(n_splits=4, shuffle=True, random_state=7)
for number, (fit, valid) in enumerate(folds.split(train, train["fault"])):
    model = HistGradientBoostingClassifier(
        max_iter=60,
        learning_rate=0.08,
        max_leaf_nodes=6,
        min_samples_leaf=8,
        categorical_features="from_dtype",
        random_state=number,
    )
    model.fit(train.loc[fit, features], train.loc[fit, "fault"])
    oof[valid] = model.predict_proba(train.loc[valid, features])[:, 1]
    pred += model.predict_proba(test[features])[:, 1] / folds.n_splits
    print(f"fold {number}: AUC {roc_auc_score(train.loc[valid, 'fault'], oof[valid]):.4f}")

print(f"all folds: AUC {roc_auc_score(train['fault'], oof):.4f}")
print(f"all folds: log loss {log_loss(train['fault'], oof):.4f}")
sample["fault"] = pred
sample.to_csv("submission.csv", index=False, float_format="%.5f")
