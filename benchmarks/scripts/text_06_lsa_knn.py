# needs: pandas scikit-learn
"""Latent semantic analysis and nearest neighbours by angle."""

import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

scores = {}
for size in (8, 16, 32):
    model = make_pipeline(
        TfidfVectorizer(stop_words="english"),
        TruncatedSVD(size, random_state=0),
        Normalizer(),
        KNeighborsClassifier(9, weights="distance"),
    )
    scores[size] = cross_val_score(model, train["text"], train["queue"], cv=4).mean()
    print(f"{size:>3} components: {scores[size]:.4f}")

size = max(scores, key=scores.get)
model.set_params(truncatedsvd__n_components=size).fit(train["text"], train["queue"])
print(f"variance kept: {model[1].explained_variance_ratio_.sum():.3f}")
submission = pd.DataFrame({"id": test["id"], "queue": model.predict(test["text"])})
submission.to_csv("submission.csv", index=False)
