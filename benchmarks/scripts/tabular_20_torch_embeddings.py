# needs: numpy pandas torch
"""Embeddings for the categories beside the scaled numbers, trained in mini-batches."""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CATEGORIES = {"maker": 4, "region": 3, "insulated": 2}
NUMBERS = ["floor_area", "compressor_hours", "pressure", "noise_db", "days_since_service"]

torch.manual_seed(1)
train = pd.read_csv("./input/train.csv").sample(frac=1.0, random_state=1)
test = pd.read_csv("./input/test.csv")
mean, std = train[NUMBERS].mean(), train[NUMBERS].std()


def tensors(frame: pd.DataFrame) -> tuple[torch.Tensor, torch.Tensor]:
    levels = {c: {v: i for i, v in enumerate(sorted(train[c].unique()))} for c in CATEGORIES}
    codes = np.column_stack([frame[c].map(levels[c]) for c in CATEGORIES])
    scaled = ((frame[NUMBERS] - mean) / std).fillna(0.0).to_numpy(np.float32)
    scaled = np.hstack([scaled, scaled[:, [2]] ** 2])
    return torch.from_numpy(codes.astype(np.int64)), torch.from_numpy(scaled)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(n, 3) for n in CATEGORIES.values())
        self.body = nn.Sequential(
            nn.Linear(3 * len(CATEGORIES) + len(NUMBERS) + 1, 24), nn.SiLU(), nn.Linear(24, 1)
        )

    def forward(self, codes, numbers):
        parts = [layer(codes[:, i]) for i, layer in enumerate(self.embeddings)]
        return self.body(torch.cat([*parts, numbers], dim=1)).squeeze(1)


codes, numbers = tensors(train)
y = torch.tensor(train["fault"].to_numpy(), dtype=torch.float32)
cut = 105
loader = DataLoader(TensorDataset(codes[:cut], numbers[:cut], y[:cut]), batch_size=32, shuffle=True)
net = Net()
optimiser = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-3)
for epoch in range(30):
    for c, n, target in loader:
        optimiser.zero_grad()
        F.binary_cross_entropy_with_logits(net(c, n), target).backward()
        optimiser.step()
    if epoch % 10 == 9:
        with torch.no_grad():
            logits = net(codes[cut:], numbers[cut:])
        loss = F.binary_cross_entropy_with_logits(logits, y[cut:]).item()
        accuracy = ((logits > 0) == (y[cut:] > 0)).float().mean().item()
        print(f"epoch {epoch + 1}: validation loss {loss:.3f}, accuracy {accuracy:.3f}")

with torch.no_grad():
    probability = torch.sigmoid(net(*tensors(test))).numpy()
submission = pd.DataFrame({"id": test["id"], "fault": probability})
submission.to_csv("submission.csv", index=False, float_format="%.4f")
