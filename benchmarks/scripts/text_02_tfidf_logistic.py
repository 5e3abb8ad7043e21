# needs: pandas scikit-learn
"""TF-IDF of words and word pairs, and logistic regression."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

model = make_pipeline(
    TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, stop_words="english"),
    LogisticRegression(C=5.0, max_iter=1000),
)
result = cross_validate(
    model, train["text"], train["queue"], cv=3, scoring=["accuracy", "f1_macro", "neg_log_loss"]
)
for name, values in sorted(result.items()):
    if name.startswith("test_"):
        print(f"{name.removeprefix('test_'):<14}{values.mean():>8.4f}")

model.fit(train["text"], train["queue"])
vocabulary = model[0].get_feature_names_out()
for queue, row in zip(model[1].classes_, model[1].coef_, strict=True):
    print(f"{queue}: {', '.join(vocabulary[row.argsort()[::-1][:6]])}")

submission = pd.read_csv("./input/sample_submission.csv")
submission["queue"] = model.predict(test["text"])
submission.to_csv("submission.csv", index=False)
