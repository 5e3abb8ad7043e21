# needs: numpy pandas
"""The spacing of the harmonics in the spectrum gives the speed; a line is fitted to it."""

import wave

import numpy as np
import pandas as pd

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def read(key: str) -> tuple[np.ndarray, int]:
    with wave.open(f"./input/clips/{key}.wav") as clip:
        data = clip.readframes(clip.getnframes())
        return np.frombuffer(data, dtype="<i2") / 32768, clip.getframerate()


def pitch(key: str) -> float:
    sound, rate = read(key)
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), n=16384))
    candidates = np.arange(70.0, 310.0, 0.5)
    bins = np.round(np.outer(candidates, np.arange(1, 5)) * 16384 / rate).astype(int)
    return float(candidates[np.log(spectrum[bins] + 1e-6).sum(axis=1).argmax()])


x = np.array([pitch(key) for key in train["id"]])
y = train["rpm"].to_numpy(float)
fit = np.arange(len(y)) % 3 > 0
slope, intercept = np.polyfit(x[fit], y[fit], 1)
error = y[~fit] - (slope * x[~fit] + intercept)
print(f"slope {slope:.3f}, intercept {intercept:.1f}")
print(f"hold-out RMSE {np.sqrt(np.mean(error**2)):.2f}, median error {np.median(abs(error)):.2f}")

slope, intercept = np.polyfit(x, y, 1)
test["rpm"] = [round(slope * pitch(key) + intercept, 2) for key in test["id"]]
test.to_csv("submission.csv", index=False)
