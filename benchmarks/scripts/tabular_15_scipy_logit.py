# needs: numpy pandas scipy
"""Penalised logistic regression written out, minimised with L-BFGS."""

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def design(frame: pd.DataFrame) -> np.ndarray:
    hours = frame["compressor_hours"].fillna(2300) / 1200 - 2
    off = (frame["pressure"].fillna(28) - 28).abs() - 2
    service = frame["days_since_service"] / 360 - 1
    risky = frame["maker"].isin(["Boreas", "Dunmore"]).astype(float)
    coast = (frame["region"] == "coast").astype(float)
    return np.column_stack([np.ones(len(frame)), hours, off, service, service * risky, coast])


def auc(truth: np.ndarray, score: np.ndarray) -> float:
    positive = truth == 1
    n, m = positive.sum(), (~positive).sum()
    return (rankdata(score)[positive].sum() - n * (n + 1) / 2) / (n * m)


def loss(weights: np.ndarray, X: np.ndarray, y: np.ndarray, penalty: float):
    z = X @ weights
    value = np.mean(np.logaddexp(0, z) - y * z) + penalty * np.sum(weights[1:] ** 2)
    gradient = X.T @ (expit(z) - y) / len(y)
    gradient[1:] += 2 * penalty * weights[1:]
    return value, gradient


X, y = design(train), train["fault"].to_numpy(float)
valid = np.arange(len(y)) % 4 == 0
for penalty in (0.001, 0.01, 0.1):
    start = np.zeros(X.shape[1])
    found = minimize(loss, start, (X[~valid], y[~valid], penalty), "L-BFGS-B", jac=True)
    print(f"penalty {penalty}: loss {found.fun:.4f}, AUC {auc(y[valid], X[valid] @ found.x):.4f}")

weights = minimize(loss, np.zeros(X.shape[1]), (X, y, 0.01), "L-BFGS-B", jac=True).x
print("weights:", weights.round(3))
submission = pd.read_csv("./input/sample_submission.csv")
submission["fault"] = expit(design(test) @ weights).round(5)
submission.to_csv("submission.csv", index=False)
