# needs: numpy pandas scikit-learn
"""Group statistics and target encoding within folds, then logistic regression."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

KEYS = ["maker", "region", "insulated"]

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
both = pd.concat([train.drop(columns="fault"), test], ignore_index=True)

both["maker_region"] = both["maker"] + "_" + both["region"]
for column in ["compressor_hours", "pressure", "floor_area"]:
    both[column] = both.groupby("maker")[column].transform(lambda s: s.fillna(s.median()))
    grouped = both.groupby("maker_region")[column]
    both[f"{column}_centred"] = both[column] - grouped.transform("mean")
    both[f"{column}_rank"] = grouped.rank(pct=True)
both["service_bin"] = pd.cut(both["days_since_service"], [0, 180, 360, 540, 720]).astype(str)
KEYS += ["maker_region", "service_bin"]
frame, new = both.iloc[: len(train)].assign(fault=train["fault"]), both.iloc[len(train) :]


def encode(source: pd.DataFrame, target: pd.DataFrame) -> np.ndarray:
    prior = source["fault"].mean()
    columns = []
    for key in KEYS:
        stats = source.groupby(key)["fault"].agg(["sum", "count"])
        rate = (stats["sum"] + 8 * prior) / (stats["count"] + 8)
        columns.append(target[key].map(rate).fillna(prior))
    return np.column_stack(columns)


numbers = [c for c in both.columns if c.endswith(("_centred", "_rank"))]
numbers += ["compressor_hours", "days_since_service"]
oof = np.zeros(len(train))
for fit, valid in KFold(5, shuffle=True, random_state=0).split(frame):
    a, b = frame.iloc[fit], frame.iloc[valid]
    scaler = StandardScaler()
    X = scaler.fit_transform(np.hstack([encode(a, a), a[numbers]]))
    model = LogisticRegression(C=0.1).fit(X, a["fault"])
    oof[valid] = model.predict_proba(scaler.transform(np.hstack([encode(a, b), b[numbers]])))[:, 1]
print(f"features: {X.shape[1]}, OOF AUC: {roc_auc_score(train['fault'], oof):.4f}")

X = scaler.fit_transform(np.hstack([encode(frame, frame), frame[numbers]]))
model = LogisticRegression(C=0.1).fit(X, frame["fault"])
p = model.predict_proba(scaler.transform(np.hstack([encode(frame, new), new[numbers]])))[:, 1]
pd.DataFrame({"id": test["id"], "fault": p.round(5)}).to_csv("submission.csv", index=False)
