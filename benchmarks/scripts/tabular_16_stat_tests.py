# needs: numpy pandas scikit-learn scipy
"""Tests of each column against the target; the columns that pass go into a model."""

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
train["off_pressure"] = (train["pressure"] - 28).abs()
test["off_pressure"] = (test["pressure"] - 28).abs()

rows = []
for column in test.columns.drop(["id", "installed"]):
    if pd.api.types.is_numeric_dtype(train[column]):
        good = train.loc[train["fault"] == 0, column].dropna()
        bad = train.loc[train["fault"] == 1, column].dropna()
        result = stats.mannwhitneyu(good, bad)
        rows.append((column, "Mann-Whitney", result.pvalue, stats.ks_2samp(good, bad).pvalue))
    else:
        table = pd.crosstab(train[column], train["fault"])
        rows.append((column, "chi squared", stats.chi2_contingency(table).pvalue, np.nan))
report = pd.DataFrame(rows, columns=["column", "test", "p", "p_ks"]).sort_values("p")
report["p_adjusted"] = stats.false_discovery_control(report["p"])
print(report.round(4).to_string(index=False))

chosen = report.loc[report["p"] < 0.2, "column"].tolist()
print("kept:", chosen)
both = pd.concat([train, test])[chosen]
both = pd.get_dummies(both, dtype=float)
both = both.fillna(both.median()).apply(stats.zscore)
X, X_test = both.iloc[: len(train)], both.iloc[len(train) :]

model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
scores = cross_val_score(model, X, train["fault"], cv=5, scoring="roc_auc")
interval = stats.t.interval(0.95, 4, scores.mean(), stats.sem(scores))
print(f"AUC {scores.mean():.4f}, 95% interval {interval[0]:.3f} to {interval[1]:.3f}")

test["fault"] = model.fit(X, train["fault"]).predict_proba(X_test)[:, 1].round(5)
test[["id", "fault"]].to_csv("submission.csv", index=False)
