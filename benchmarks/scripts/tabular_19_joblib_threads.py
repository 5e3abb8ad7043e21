# needs: joblib numpy pandas scikit-learn
"""A seed average fitted in threads with joblib, then permutation importance."""

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer
from sklearn.svm import NuSVC

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
columns = ["compressor_hours", "pressure", "noise_db", "days_since_service", "floor_area"]
medians = train[columns].median()
X, X_test = train[columns].fillna(medians), test[columns].fillna(medians)
X["coast"], X_test["coast"] = train["region"] == "coast", test["region"] == "coast"
y = train["fault"]


def fit_one(seed: int):
    rows = np.random.default_rng(seed).choice(len(X), int(0.8 * len(X)), replace=False)
    left_out = np.setdiff1d(np.arange(len(X)), rows)
    model = make_pipeline(QuantileTransformer(n_quantiles=30, random_state=seed), NuSVC(nu=0.4))
    model.fit(X.iloc[rows], y.iloc[rows])
    auc = roc_auc_score(y.iloc[left_out], model.decision_function(X.iloc[left_out]))
    return auc, model.decision_function(X_test)


results = Parallel(n_jobs=2, prefer="threads")(delayed(fit_one)(seed) for seed in range(12))
scores = np.array([auc for auc, _ in results])
print(f"AUC over {len(scores)} seeds: {scores.mean():.4f} +- {scores.std():.4f}")

a, b, ya, yb = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
model = make_pipeline(QuantileTransformer(n_quantiles=30, random_state=0), NuSVC(nu=0.4)).fit(a, ya)
found = permutation_importance(model, b, yb, scoring="roc_auc", n_repeats=5, random_state=0)
print(pd.Series(found.importances_mean, index=X.columns).sort_values().round(4).to_string())

mean = pd.Series(np.mean([margin for _, margin in results], axis=0)).rank(pct=True).round(5)
pd.DataFrame({"id": test["id"], "fault": mean}).to_csv("submission.csv", index=False)
