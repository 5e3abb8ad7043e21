# needs: pandas scikit-learn
"""Logistic regression behind a ColumnTransformer, scored by cross-validated AUC."""

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

TARGET = "fault"

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

categorical = ["maker", "region", "insulated"]
numeric = ["floor_area", "compressor_hours", "pressure", "noise_db", "days_since_service"]

prepare = ColumnTransformer(
    [
        ("num", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numeric),
        ("cat", OneHotEncoder(handle_unknown="ignore"), categorical),
    ]
)
model = make_pipeline(prepare, LogisticRegression(C=0.5, max_iter=1000))

folds = StratifiedKFold(5, shuffle=True, random_state=42)
scores = cross_val_score(model, train, train[TARGET], cv=folds, scoring="roc_auc")
print("AUC by fold:", scores.round(4))
print(f"Mean AUC: {scores.mean():.4f} +- {scores.std():.4f}")

model.fit(train, train[TARGET])
submission = pd.read_csv("./input/sample_submission.csv")
submission[TARGET] = model.predict_proba(test)[:, 1]
submission.to_csv("submission.csv", index=False, float_format="%.5f")
