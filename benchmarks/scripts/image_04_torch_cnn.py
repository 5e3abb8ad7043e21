# needs: numpy pandas pillow torch
"""A small convolutional network fed by a DataLoader."""

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)

train = pd.read_csv("./input/train.csv").sample(frac=1, random_state=0)
test = pd.read_csv("./input/test.csv")
classes = sorted(train["shape"].unique())


def load(keys):
    images = np.stack([np.array(Image.open(f"./input/images/{k}.png")) for k in keys])
    return torch.from_numpy(images).float().unsqueeze(1) / 128 - 1


X, X_test = load(train["id"]), load(test["id"])
y = torch.tensor([classes.index(c) for c in train["shape"]])
cut = int(0.8 * len(X))
loader = DataLoader(TensorDataset(X[:cut], y[:cut]), batch_size=32, shuffle=True, num_workers=0)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 7 * 7, len(classes)),
)  # fmt: skip
optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimiser.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimiser.step()
        total += loss.item() * len(labels)
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            accuracy = (model(X[cut:]).argmax(1) == y[cut:]).float().mean().item()
        print(f"epoch {epoch + 1}: loss {total / cut:.2f}, validation accuracy {accuracy:.3f}")

with torch.no_grad():
    best = model(X_test).argmax(1).tolist()
pd.DataFrame({"id": test["id"], "shape": [classes[i] for i in best]}).to_csv(
    "submission.csv", index=False
)
