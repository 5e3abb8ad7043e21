# needs: numpy pandas scikit-learn
"""Hyperparameters tried in two worker processes."""

from concurrent.futures import ProcessPoolExecutor
from itertools import product

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import cross_val_score


def load(name: str) -> pd.DataFrame:
    frame = pd.read_csv(f"./input/{name}.csv")
    for column, levels in {
        "maker": ["Alvik", "Boreas", "Corin", "Dunmore"],
        "region": ["coast", "hills", "plain"],
        "insulated": ["no", "yes"],
    }.items():
        frame[column] = frame[column].map({level: i for i, level in enumerate(levels)})
    frame["year"] = frame.pop("installed").str[:4].astype(int)
    return frame.fillna(frame.median(numeric_only=True))


def build(depth: int, rate: float) -> GradientBoostingClassifier:
    return GradientBoostingClassifier(
        n_estimators=40, max_depth=depth, learning_rate=rate, subsample=0.8, random_state=0
    )


def score(setting: tuple[int, float]) -> float:
    train = load("train")
    X, y = train.drop(columns=["id", "fault"]), train["fault"]
    return float(np.mean(cross_val_score(build(*setting), X, y, cv=3, scoring="roc_auc")))


def main() -> None:
    settings = list(product([1, 2, 3], [0.05, 0.1]))
    with ProcessPoolExecutor(max_workers=2) as pool:
        scores = list(pool.map(score, settings))
    for (depth, rate), value in zip(settings, scores, strict=True):
        print(f"depth {depth}, rate {rate}: AUC {value:.4f}")
    best = settings[int(np.argmax(scores))]
    print("best setting:", best)

    train, test = load("train"), load("test")
    model = build(*best).fit(train.drop(columns=["id", "fault"]), train["fault"])
    test["fault"] = model.predict_proba(test.drop(columns="id"))[:, 1].round(5)
    test[["id", "fault"]].to_csv("submission.csv", index=False)


if __name__ == "__main__":
    main()
