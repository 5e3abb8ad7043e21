# needs: numpy pandas pillow torch
"""A Dataset of our own that flips and shifts pictures, and a network with global pooling."""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["bars", "cross", "ring"]
torch.manual_seed(7)


class Shapes(Dataset):
    def __init__(self, frame: pd.DataFrame, augment: bool):
        self.images = [Image.open(f"./input/images/{k}.png").copy() for k in frame["id"]]
        self.labels = [CLASSES.index(s) for s in frame["shape"]]
        self.augment = augment
        self.rng = np.random.default_rng(7)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment and self.rng.random() < 0.5:
            image = ImageOps.mirror(image)
        pixels = np.asarray(ImageOps.autocontrast(image, cutoff=2), dtype=np.float32) / 255
        if self.augment:
            pixels = np.roll(pixels, self.rng.integers(-2, 3, size=2), axis=(0, 1))
        return torch.from_numpy(pixels.copy())[None] - 0.5, self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 12, 5, stride=2, padding=2)
        self.second = nn.Conv2d(12, 24, 3, padding=1)
        self.head = nn.Linear(48, len(CLASSES))

    def forward(self, x):
        x = F.relu(self.second(F.relu(self.first(x))))
        return self.head(torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1))


train = pd.read_csv("./input/train.csv").sample(frac=1.0, random_state=7)
test = pd.read_csv("./input/test.csv").assign(shape=CLASSES[0])
loader = DataLoader(Shapes(train[24:], augment=True), batch_size=24, shuffle=True)
valid = DataLoader(Shapes(train[:24], augment=False), batch_size=24)

net = Net()
optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(10):
    for images, labels in loader:
        optimiser.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimiser.step()

with torch.no_grad():
    right = sum((net(x).argmax(1) == t).sum().item() for x, t in valid)
    found = torch.cat([net(x).argmax(1) for x, _ in DataLoader(Shapes(test, False), batch_size=60)])
print(f"validation: {right} of 24 right")
test["shape"] = [CLASSES[i] for i in found.tolist()]
test[["id", "shape"]].to_csv("submission.csv", index=False)
