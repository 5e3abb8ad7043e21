# needs: numpy pandas pillow scikit-learn
"""Pictures read in threads, patches clustered into a code book, and ridge on the counts."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.cluster import MiniBatchKMeans
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def patches(key: str) -> np.ndarray:
    with Image.open(f"./input/images/{key}.png") as image:
        pixels = np.asarray(image, dtype=np.float32)
    pixels = (pixels - pixels.mean()) / pixels.std()
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (7, 7))[::3, ::3]
    windows = windows.reshape(-1, 49)
    return windows - windows.mean(axis=1, keepdims=True)


with ThreadPoolExecutor(max_workers=4) as pool:
    all_patches = list(pool.map(patches, [*train["id"], *test["id"]]))
print("patches for each picture:", len(all_patches[0]))

book = MiniBatchKMeans(24, batch_size=512, n_init=1, random_state=0)
book.fit(np.vstack(all_patches[: len(train)]))
counts = np.array([np.bincount(book.predict(p), minlength=24) for p in all_patches])
counts = StandardScaler().fit_transform(np.sqrt(counts))
X, X_test = counts[: len(train)], counts[len(train) :]

model = RidgeClassifierCV(alphas=[1.0, 10.0, 100.0])
print(f"accuracy: {cross_val_score(model, X, train['shape'], cv=5).mean():.4f}")
test["shape"] = model.fit(X, train["shape"]).predict(X_test)
test[["id", "shape"]].to_csv("submission.csv", index=False)
