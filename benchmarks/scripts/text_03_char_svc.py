# needs: pandas scikit-learn
"""Character n-grams within words and a linear SVM, searched over the n-gram range."""

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

pipeline = Pipeline(
    [
        ("tfidf", TfidfVectorizer(analyzer="char_wb", min_df=2, lowercase=True)),
        ("svc", LinearSVC(random_state=0)),
    ]
)
grid = {"tfidf__ngram_range": [(2, 3), (2, 4), (3, 5)], "svc__C": [0.3, 1.0]}
search = GridSearchCV(pipeline, grid, cv=3, scoring="f1_macro").fit(train["text"], train["queue"])

results = pd.DataFrame(search.cv_results_)
for ngrams, c, mean in zip(
    results["param_tfidf__ngram_range"],
    results["param_svc__C"],
    results["mean_test_score"],
    strict=True,
):
    print(f"n-grams {ngrams}, C {c}: {mean:.4f}")
print(f"best macro F1: {search.best_score_:.4f}")

submission = pd.DataFrame({"id": test["id"], "queue": search.predict(test["text"])})
submission.to_csv("submission.csv", index=False)
