# needs: numpy pandas scikit-learn torch
"""A small multilayer perceptron with dropout, validated on a hold-out set."""

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(0)

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
both = pd.get_dummies(
    pd.concat([train, test], ignore_index=True).drop(columns=["id", "installed", "fault"]),
    columns=["maker", "region", "insulated"],
    dtype=float,
)
both = both.fillna(both.median())
both = ((both - both.mean()) / both.std()).to_numpy(np.float32)
X, X_test = torch.from_numpy(both[: len(train)]), torch.from_numpy(both[len(train) :])
y = torch.tensor(train["fault"].to_numpy(), dtype=torch.float32)

fit, valid = train_test_split(
    np.arange(len(train)), test_size=0.25, stratify=train["fault"], random_state=0
)

model = nn.Sequential(
    nn.Linear(X.shape[1], 32),
    nn.ReLU(),
    nn.Dropout(0.3),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
)
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
loss_function = nn.BCEWithLogitsLoss()

for epoch in range(1, 121):
    model.train()
    optimiser.zero_grad()
    loss = loss_function(model(X[fit]).squeeze(1), y[fit])
    loss.backward()
    optimiser.step()
    if epoch % 40 == 0:
        model.eval()
        with torch.no_grad():
            auc = roc_auc_score(y[valid], model(X[valid]).squeeze(1))
        print(f"epoch {epoch}: loss {loss.item():.3f}, validation AUC {auc:.4f}")

model.eval()
with torch.no_grad():
    probability = torch.sigmoid(model(X_test)).squeeze(1).numpy()
submission = pd.DataFrame({"id": test["id"], "fault": probability})
submission.to_csv("submission.csv", index=False, float_format="%.4f")
