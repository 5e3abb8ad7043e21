# needs: numpy pandas pillow scikit-learn
"""Principal components of blurred pictures into an RBF support vector machine."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageFilter
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

INPUT = Path("input")
train = pd.read_csv(INPUT / "train.csv")
test = pd.read_csv(INPUT / "test.csv")


def load(keys):
    rows = []
    for key in keys:
        with Image.open(INPUT / "images" / f"{key}.png") as image:
            small = image.filter(ImageFilter.GaussianBlur(1.2)).resize((14, 14))
        pixels = np.asarray(small, dtype=float).ravel()
        rows.append((pixels - pixels.mean()) / pixels.std())
    return np.array(rows)


X, X_test = load(train["id"]), load(test["id"])
pipeline = Pipeline([("pca", PCA(random_state=0)), ("svc", SVC())])
grid = {"pca__n_components": [10, 25, 50], "svc__C": [1, 5]}
search = GridSearchCV(pipeline, grid, cv=4).fit(X, train["shape"])
print("best:", search.best_params_, f"accuracy {search.best_score_:.4f}")
explained = search.best_estimator_["pca"].explained_variance_ratio_.sum()
print(f"variance explained: {explained:.3f}")

submission = pd.DataFrame({"id": test["id"], "shape": search.predict(X_test)})
submission.to_csv("submission.csv", index=False)
