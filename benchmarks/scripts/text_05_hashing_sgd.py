# needs: numpy pandas scikit-learn
"""Hashed word pairs and a linear model fitted in passes, stopped by a validation set."""

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

hashing = HashingVectorizer(n_features=2**14, ngram_range=(1, 2), alternate_sign=False)
X, X_test = hashing.transform(train["text"]), hashing.transform(test["text"])
y = train["queue"].to_numpy(dtype=object)
fit, valid = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=5)

model = SGDClassifier(loss="log_loss", alpha=1e-4, learning_rate="optimal", random_state=5)
classes = np.unique(y)
rng = np.random.default_rng(5)
best_loss, best_pass = np.inf, 0
for number in range(1, 16):
    order = rng.permutation(fit)
    for batch in np.array_split(order, 8):
        model.partial_fit(X[batch], y[batch], classes=classes)
    loss = log_loss(y[valid], model.predict_proba(X[valid]), labels=classes)
    if number % 5 == 0:
        print(f"pass {number}: log loss {loss:.4f}, accuracy {model.score(X[valid], y[valid]):.4f}")
    if loss < best_loss:
        best_loss, best_pass = loss, number
print("best pass:", best_pass)

final = SGDClassifier(loss="log_loss", alpha=1e-4, random_state=5, max_iter=best_pass + 5, tol=None)
test["queue"] = final.fit(X, y).predict(X_test)
test[["id", "queue"]].to_csv("submission.csv", index=False)
