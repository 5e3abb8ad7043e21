# needs: lightgbm numpy pandas scikit-learn
"""LightGBM on word counts and a few hand-made numbers."""

import lightgbm as lgb
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def numbers(texts: pd.Series) -> np.ndarray:
    return np.column_stack(
        [
            texts.str.len(),
            texts.str.split().str.len(),
            texts.str.count(r"[?!]"),
            texts.str.count(r"\d"),
            texts.str.count(r"\."),
        ]
    )


vectorizer = CountVectorizer(min_df=4, binary=True).fit(train["text"])
names = [f"word_{word}" for word in vectorizer.get_feature_names_out()]
names += ["characters", "words", "marks", "digits", "stops"]


def build(texts: pd.Series) -> pd.DataFrame:
    counts = vectorizer.transform(texts).toarray()
    return pd.DataFrame(np.hstack([counts, numbers(texts)]).astype(float), columns=names)


X, X_test = build(train["text"]), build(test["text"])
y, queues = pd.factorize(train["queue"], sort=True)
oof, pred = np.zeros((len(X), 3)), np.zeros((len(X_test), 3))
for fit, valid in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
    model = lgb.LGBMClassifier(
        n_estimators=60, num_leaves=6, min_child_samples=5, random_state=0, n_jobs=1, verbose=-1
    )
    model.fit(X.iloc[fit], y[fit])
    oof[valid] = model.predict_proba(X.iloc[valid])
    pred += model.predict_proba(X_test)
print(f"accuracy {accuracy_score(y, oof.argmax(1)):.4f}")
print(f"macro F1 {f1_score(y, oof.argmax(1), average='macro'):.4f}")
print(pd.Series(model.feature_importances_, names).nlargest(8).to_string())

test["queue"] = queues[pred.argmax(1)]
test[["id", "queue"]].to_csv("submission.csv", index=False)
