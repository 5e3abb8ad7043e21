# needs: numpy pandas scipy
"""A harmonic model fitted to each clip by least squares over the base frequency."""

import numpy as np
import pandas as pd
from scipy.io import wavfile
from scipy.optimize import curve_fit, minimize_scalar

HARMONICS = 5

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def residual(base: float, sound: np.ndarray, time: np.ndarray) -> float:
    phases = 2 * np.pi * base * np.outer(time, np.arange(1, HARMONICS + 1))
    design = np.hstack([np.sin(phases), np.cos(phases)])
    weights = np.linalg.solve(design.T @ design, design.T @ sound)
    return float(np.sum((sound - design @ weights) ** 2))


def base_frequency(key: str) -> float:
    rate, sound = wavfile.read(f"./input/clips/{key}.wav")
    sound = sound[:2000] / 32768
    time = np.arange(len(sound)) / rate
    power = np.abs(np.fft.rfft(sound, 8192)) ** 2
    grid = np.arange(72, 304, 1.0)
    index = np.round(np.outer(grid, np.arange(1, 5)) * 8192 / rate).astype(int)
    start = grid[np.sqrt(power[index]).prod(axis=1).argmax()]
    found = minimize_scalar(
        residual, bounds=(start - 2, start + 2), args=(sound, time), method="bounded"
    )
    return float(found.x)


x = np.array([base_frequency(key) for key in train["id"]])
y = train["rpm"].to_numpy(float)
(scale, offset), covariance = curve_fit(
    lambda f, a, b: a * f + b, x, y, loss="soft_l1", method="trf"
)
error = np.abs(y - scale * x - offset)
print(f"rpm = {scale:.3f} f + {offset:.2f}")
print(f"median error {np.median(error):.2f} rpm, off by more than 100: {(error > 100).sum()}")

test["rpm"] = [round(scale * base_frequency(key) + offset, 1) for key in test["id"]]
test[["id", "rpm"]].to_csv("submission.csv", index=False)
