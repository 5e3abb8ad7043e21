# needs: lightgbm numpy pandas scikit-learn scipy
"""Power spectra by Welch's method, summed in narrow bands, into LightGBM."""

import lightgbm as lgb
import numpy as np
import pandas as pd
from scipy.io import wavfile
from scipy.signal import welch
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import KFold

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def features(key: str) -> dict[str, float]:
    rate, sound = wavfile.read(f"./input/clips/{key}.wav")
    sound = sound.astype(float) / 32768
    frequency, power = welch(sound, rate, nperseg=2048)
    low = frequency < 320
    out = {
        "rms": float(np.sqrt(np.mean(sound**2))),
        "crossings": float(np.mean(np.diff(np.sign(sound)) != 0)),
        "centroid": float((frequency * power).sum() / power.sum()),
        "strongest": float(frequency[low][power[low].argmax()]),
    }
    for start in range(60, 320, 20):
        band = (frequency >= start) & (frequency < start + 20)
        out[f"band_{start}"] = float(np.log(power[band].sum() / power.sum() + 1e-9))
    return out


X = pd.DataFrame([features(key) for key in train["id"]])
X_test = pd.DataFrame([features(key) for key in test["id"]])
y = train["rpm"]

oof, pred = np.zeros(len(y)), np.zeros(len(test))
for fit, valid in KFold(5, shuffle=True, random_state=0).split(X):
    model = lgb.LGBMRegressor(
        n_estimators=120,
        learning_rate=0.08,
        num_leaves=8,
        min_child_samples=4,
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )
    model.fit(X.iloc[fit], y.iloc[fit])
    oof[valid] = model.predict(X.iloc[valid])
    pred += model.predict(X_test) / 5
print(f"RMSE {root_mean_squared_error(y, oof):.2f}, R2 {r2_score(y, oof):.4f}")

pd.DataFrame({"id": test["id"], "rpm": pred.round(2)}).to_csv("submission.csv", index=False)
