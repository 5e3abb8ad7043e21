# needs: numpy pandas scikit-learn
"""A linear probability model: ridge regression on one-hot columns and a few ratios."""

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

train = pd.read_csv("./input/train.csv", parse_dates=["installed"])
test = pd.read_csv("./input/test.csv", parse_dates=["installed"])


def features(frame: pd.DataFrame) -> pd.DataFrame:
    out = pd.get_dummies(frame[["maker", "region", "insulated"]], dtype=float)
    out["age"] = (pd.Timestamp("2024-06-01") - frame["installed"]).dt.days / 365.25
    out["hours"] = frame["compressor_hours"]
    out["hours_per_year"] = frame["compressor_hours"] / out["age"]
    out["off_pressure"] = (frame["pressure"] - 28).abs()
    out["log_area"] = np.log(frame["floor_area"])
    out["service"] = frame["days_since_service"]
    return out


X, X_test = features(train), features(test)
X_test = X_test.reindex(columns=X.columns, fill_value=0.0)
medians = X.median()
scaler = StandardScaler().fit(X.fillna(medians))
X = scaler.transform(X.fillna(medians))
X_test = scaler.transform(X_test.fillna(medians))
y = train["fault"].to_numpy()

model = RidgeCV(alphas=np.logspace(-1, 4, 21)).fit(X, y)
print("alpha:", round(float(model.alpha_), 3))
oof = cross_val_predict(RidgeCV(alphas=[model.alpha_]), X, y, cv=5)
print("out-of-fold AUC:", round(roc_auc_score(y, oof), 4))

predicted = np.clip(model.predict(X_test), 0.01, 0.99)
pd.DataFrame({"id": test["id"], "fault": predicted.round(5)}).to_csv("submission.csv", index=False)
