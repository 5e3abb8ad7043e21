# needs: numpy pandas pillow scikit-learn scipy
"""Responses to a bank of oriented filters, pooled, into a random forest."""

import numpy as np
import pandas as pd
from PIL import Image
from scipy import ndimage, signal
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def gabor(theta: float, wavelength: float) -> np.ndarray:
    y, x = np.mgrid[-4:5, -4:5]
    along = x * np.cos(theta) + y * np.sin(theta)
    kernel = np.exp(-(x**2 + y**2) / 8) * np.cos(2 * np.pi * along / wavelength)
    return kernel - kernel.mean()


BANK = np.array([gabor(t, w) for t in np.arange(4) * np.pi / 4 for w in (5.0, 8.0)])


def describe(key: str) -> np.ndarray:
    pixels = np.asarray(Image.open(f"./input/images/{key}.png"), dtype=float) / 255
    smooth = ndimage.median_filter(pixels, 3)
    out = [smooth.std(), ndimage.sobel(smooth, 0).std(), ndimage.sobel(smooth, 1).std()]
    for kernel in BANK:
        response = np.abs(signal.fftconvolve(smooth, kernel, mode="valid"))
        out += [response.mean(), response.max(), np.quantile(response, 0.9)]
    _, blobs = ndimage.label(smooth > smooth.mean() + smooth.std())
    return np.array([*out, blobs])


X = np.array([describe(key) for key in train["id"]])
X_test = np.array([describe(key) for key in test["id"]])
model = RandomForestClassifier(100, random_state=0, n_jobs=-1)
scores = cross_val_score(model, X, train["shape"], cv=3)
print(f"{X.shape[1]} features, accuracy {scores.mean():.4f} +- {scores.std():.4f}")

model.fit(X, train["shape"])
pd.DataFrame({"id": test["id"], "shape": model.predict(X_test)}).to_csv(
    "submission.csv", index=False
)
