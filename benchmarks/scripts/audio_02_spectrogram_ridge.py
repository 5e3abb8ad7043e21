# needs: numpy pandas scikit-learn scipy
"""Log spectrograms averaged over time, and ridge regression."""

import numpy as np
import pandas as pd
from scipy.io import wavfile
from scipy.signal import spectrogram
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

train = pd.read_csv("./input/train.csv")
test = pd.read_csv("./input/test.csv")


def features(key: str) -> np.ndarray:
    rate, sound = wavfile.read(f"./input/clips/{key}.wav")
    sound = sound / np.abs(sound).max()
    _, _, power = spectrogram(sound, fs=rate, nperseg=512, noverlap=256)
    log_power = np.log10(power[:100] + 1e-9)
    return np.concatenate([log_power.mean(axis=1), log_power.std(axis=1)])


X = np.array([features(key) for key in train["id"]])
X_test = np.array([features(key) for key in test["id"]])
print("features:", X.shape)

model = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(0, 4, 9)))
oof = cross_val_predict(model, X, train["rpm"], cv=KFold(3, shuffle=True, random_state=0))
print(f"RMSE {root_mean_squared_error(train['rpm'], oof):.2f}")
print(f"MAE  {mean_absolute_error(train['rpm'], oof):.2f}")
print(f"always the mean: {train['rpm'].std():.2f}")

submission = pd.read_csv("./input/sample_submission.csv")
submission["rpm"] = model.fit(X, train["rpm"]).predict(X_test).round(2)
submission.to_csv("submission.csv", index=False)
