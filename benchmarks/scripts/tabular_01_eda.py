# needs: numpy pandas
"""A first look at the table, and the fault rate of each maker as a baseline."""

import numpy as np
import pandas as pd

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")

print("train", train.shape, "test", test.shape)
print(train.dtypes.astype(str).to_string())
print(train.describe().round(2).to_string())

missing = pd.DataFrame({"train": train.isna().mean(), "test": test.isna().mean()})
print(missing.round(3).to_string())

for column in ["maker", "region", "insulated"]:
    print(train.groupby(column)["fault"].agg(["count", "mean"]).round(3).to_string())

numbers = train.select_dtypes("number")
print(numbers.corr()["fault"].drop("fault").sort_values().round(3).to_string())

prior, weight = train["fault"].mean(), 10
rates = train.groupby("maker")["fault"].agg(["sum", "count"])
rates = (rates["sum"] + prior * weight) / (rates["count"] + weight)
print("mean rate", np.round(prior, 4))

submission = pd.DataFrame({"id": test["id"], "fault": test["maker"].map(rates).fillna(prior)})
submission.to_csv("submission.csv", index=False, float_format="%.5f")
print(submission.head().to_string(index=False))
