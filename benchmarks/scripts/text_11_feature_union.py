# needs: numpy pandas scikit-learn
"""Words, characters and simple statistics side by side in a FeatureUnion, and a calibrated SVM."""

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.svm import LinearSVC

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def statistics(texts) -> np.ndarray:
    words = [text.split() for text in texts]
    return np.array(
        [
            [len(text), len(w), text.count("?"), np.mean([len(x) for x in w] or [0])]
            for text, w in zip(texts, words, strict=True)
        ]
    )


union = FeatureUnion(
    [
        ("words", TfidfVectorizer(min_df=2, ngram_range=(1, 2))),
        ("characters", TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=3)),
        ("statistics", make_pipeline(FunctionTransformer(statistics), MaxAbsScaler())),
    ]
)
model = make_pipeline(union, CalibratedClassifierCV(LinearSVC(C=0.5, random_state=0), cv=3))
p = cross_val_predict(model, train["text"], train["queue"], cv=4, method="predict_proba")
classes = np.unique(train["queue"])
print(f"accuracy: {accuracy_score(train['queue'], classes[p.argmax(axis=1)]):.4f}")
print(f"log loss: {log_loss(train['queue'], p, labels=classes):.4f}")

model.fit(train["text"], train["queue"])
submission = pd.read_csv("./input/sample_submission.csv")
submission["queue"] = model.predict(test["text"])
submission.to_csv("submission.csv", index=False)
