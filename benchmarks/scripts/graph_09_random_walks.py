# needs: numpy pandas scikit-learn
"""Random walks, their co-occurrences as embeddings, and logistic regression."""

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

WALKS, LENGTH, WINDOW = 12, 12, 3

nodes = pd.read_csv("./input/nodes.csv")
edges = pd.read_csv("./input/edges.csv")
train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

index = {key: i for i, key in enumerate(nodes["id"])}
neighbours: list[list[int]] = [[] for _ in index]
for source, target in edges[["source", "target"]].itertuples(index=False):
    neighbours[index[source]].append(index[target])
    neighbours[index[target]].append(index[source])

rng = np.random.default_rng(0)
counts = np.ones((len(nodes), len(nodes))) * 0.1
for start in range(len(nodes)):
    for _ in range(WALKS):
        walk = [start]
        while len(walk) < LENGTH and neighbours[walk[-1]]:
            options = neighbours[walk[-1]]
            walk.append(options[rng.integers(len(options))])
        for a, node in enumerate(walk):
            for other in walk[a + 1 : a + 1 + WINDOW]:
                counts[node, other] += 1
                counts[other, node] += 1

share = counts / counts.sum()
expected = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
information = np.maximum(np.log(share / expected), 0)
embedding = TruncatedSVD(16, random_state=0).fit_transform(information)

X = embedding[train["id"].map(index)]
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3))
scores = cross_val_score(model, X, train["faction"], cv=5)
print("accuracy by fold:", scores.round(3))
print(f"mean: {scores.mean():.4f}")

model.fit(X, train["faction"])
test["faction"] = model.predict(embedding[test["id"].map(index)])
test.to_csv("submission.csv", index=False)
