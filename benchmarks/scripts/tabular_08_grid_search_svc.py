# needs: pandas scikit-learn
"""A small grid search over an RBF support vector machine; ranks become probabilities."""

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
numeric = ["floor_area", "compressor_hours", "pressure", "noise_db", "days_since_service"]

pipeline = Pipeline(
    [
        (
            "prepare",
            make_column_transformer(
                (make_pipeline(SimpleImputer(), StandardScaler()), numeric),
                (OneHotEncoder(handle_unknown="ignore"), ["maker", "region", "insulated"]),
            ),
        ),
        ("svc", SVC(kernel="rbf")),
    ]
)
search = GridSearchCV(
    pipeline,
    {"svc__C": [0.3, 1.0, 3.0], "svc__gamma": [0.01, 0.05, 0.2]},
    scoring="roc_auc",
    cv=StratifiedKFold(4, shuffle=True, random_state=1),
)
search.fit(train, train["fault"])

table = pd.DataFrame(search.cv_results_)[["param_svc__C", "param_svc__gamma", "mean_test_score"]]
print(table.sort_values("mean_test_score", ascending=False).round(4).to_string(index=False))
print("best:", search.best_params_, round(search.best_score_, 4))

margin = pd.Series(search.decision_function(test))
submission = pd.DataFrame({"id": test["id"], "fault": margin.rank(pct=True).round(5)})
submission.to_csv("submission.csv", index=False)
