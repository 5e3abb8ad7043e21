# needs: numpy pandas scipy
"""The first strong peak of the autocorrelation, refined by a parabola."""

import wave

import numpy as np
import pandas as pd
from scipy.signal import butter, find_peaks, sosfiltfilt
from scipy.stats import siegelslopes

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")
band = butter(4, [60, 1600], btype="bandpass", fs=8000, output="sos")


def frequency(key: str) -> float:
    with wave.open(f"./input/clips/{key}.wav", "rb") as clip:
        sound = np.frombuffer(clip.readframes(-1), dtype=np.int16).astype(float)
    sound = sosfiltfilt(band, sound)
    spectrum = np.fft.rfft(sound, n=2 * len(sound))
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:140]
    correlation /= correlation[0]
    peaks, _ = find_peaks(correlation, distance=8)
    peaks = peaks[(peaks >= 24) & (peaks < 120)]
    best = correlation[peaks].max()
    lag = peaks[correlation[peaks] > 0.85 * best][0]
    left, middle, right = correlation[lag - 1 : lag + 2]
    return 8000 / (lag + 0.5 * (left - right) / (left - 2 * middle + right))


x = np.array([frequency(key) for key in train["id"]])
fitted = siegelslopes(train["rpm"], x)
error = train["rpm"] - (fitted.intercept + fitted.slope * x)
print(f"rpm = {fitted.slope:.3f} * frequency + {fitted.intercept:.2f}")
print(f"median error {error.abs().median():.2f}, within 50 rpm: {(error.abs() < 50).mean():.3f}")

test["rpm"] = [round(fitted.intercept + fitted.slope * frequency(k), 2) for k in test["id"]]
test.to_csv("submission.csv", index=False)
