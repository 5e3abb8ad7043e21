# needs: numpy pandas torch
"""A one-dimensional convolutional network over the logarithmic spectrum."""

import wave

import numpy as np
import pandas as pd
import torch
from torch import nn

torch.manual_seed(0)

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def load(key: str) -> np.ndarray:
    with wave.open(f"./input/clips/{key}.wav") as clip:
        return np.frombuffer(clip.readframes(clip.getnframes()), dtype=np.int16) / 32768


def spectra(keys) -> torch.Tensor:
    waves = torch.tensor(np.stack([load(key) for key in keys]), dtype=torch.float32)
    size = torch.fft.rfft(waves * torch.hann_window(waves.shape[1])).abs()[:, 20:180]
    size = torch.log(size + 1e-3)
    return ((size - size.mean(1, keepdim=True)) / size.std(1, keepdim=True)).unsqueeze(1)


X, X_test = spectra(train["id"]), spectra(test["id"])
y = torch.tensor(train["rpm"].to_numpy(), dtype=torch.float32)
mean, std = y.mean(), y.std()

net = nn.Sequential(
    nn.Conv1d(1, 8, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
    nn.Conv1d(8, 8, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
    nn.Flatten(), nn.Linear(8 * 40, 32), nn.ReLU(), nn.Linear(32, 1),
)  # fmt: skip
optimiser = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 60)
fit, valid = torch.arange(110) % 5 > 0, torch.arange(110) % 5 == 0
for epoch in range(1, 61):
    optimiser.zero_grad()
    loss = nn.functional.mse_loss(net(X[fit]).squeeze(1), (y[fit] - mean) / std)
    loss.backward()
    optimiser.step()
    schedule.step()
    if epoch % 20 == 0:
        with torch.no_grad():
            error = net(X[valid]).squeeze(1) * std + mean - y[valid]
        print(f"epoch {epoch}: validation RMSE {error.square().mean().sqrt().item():.0f}")

with torch.no_grad():
    test["rpm"] = (net(X_test).squeeze(1) * std + mean).numpy()
test[["id", "rpm"]].to_csv("submission.csv", index=False, float_format="%.1f")
