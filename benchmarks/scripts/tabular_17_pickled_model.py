# needs: numpy pandas scikit-learn
"""A transformer and an ensemble of our own, pickled to a file and loaded again."""

import pickle
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier


class PumpFeatures(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.medians_ = X.median(numeric_only=True)
        self.makers_ = sorted(X["maker"].unique())
        return self

    def transform(self, X):
        X = X.fillna(self.medians_)
        columns = [X["compressor_hours"], (X["pressure"] - 28).abs(), X["days_since_service"]]
        columns += [X["maker"] == maker for maker in self.makers_]
        return np.column_stack(columns).astype(float)


@dataclass
class BaggedTrees:
    size: int = 25
    depth: int = 4
    seed: int = 0
    members: list = field(default_factory=list)

    def fit(self, X, y):
        rng = np.random.default_rng(self.seed)
        for _ in range(self.size):
            rows = rng.choice(len(X), len(X))
            tree = DecisionTreeClassifier(max_depth=self.depth, random_state=0)
            self.members.append(tree.fit(X[rows], y[rows]))
        return self

    def predict(self, X):
        return np.mean([tree.predict_proba(X)[:, 1] for tree in self.members], axis=0)


train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
y = train["fault"].to_numpy()
prepare = PumpFeatures()
X = prepare.fit_transform(train)

half = len(y) // 2
score = roc_auc_score(y[half:], BaggedTrees().fit(X[:half], y[:half]).predict(X[half:]))
print(f"hold-out AUC: {score:.4f}")

Path("model.pkl").write_bytes(pickle.dumps((prepare, BaggedTrees().fit(X, y))))
loaded_prepare, loaded_model = pickle.loads(Path("model.pkl").read_bytes())
print("loaded:", type(loaded_model).__name__, "with", len(loaded_model.members), "trees")

pred = loaded_model.predict(loaded_prepare.transform(test))
pd.DataFrame({"id": test["id"], "fault": pred.round(5)}).to_csv("submission.csv", index=False)
