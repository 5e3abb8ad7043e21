"""Every metric against a second implementation that shares no code with it.

Where ours calls scikit-learn or scipy, the second one is written out here from the definition;
where ours is written out, the second one is scikit-learn's.
"""

import itertools
import math
import sys
import warnings

import numpy as np
import pytest
from conformance.cases import csv_text, make_case
from sklearn import metrics as sk

from sandmle.errors import GradingError
from sandmle.grading.grader import read_answers
from sandmle.metrics.registry import METRICS
from sandmle.tasks.submission import check

CASES = 60


def confusion(y_true, y_pred, classes):
    return np.array([[np.sum((y_true == a) & (y_pred == b)) for b in classes] for a in classes])


def accuracy(y_true, y_pred, classes):
    return sk.accuracy_score(list(y_true), list(y_pred))


def balanced_accuracy(y_true, y_pred, classes):
    table = confusion(y_true, y_pred, classes)
    return np.mean(np.diag(table) / table.sum(axis=1))


def macro_f1(y_true, y_pred, classes):
    table = confusion(y_true, y_pred, classes)
    hits = np.diag(table)
    return np.mean(2 * hits / (table.sum(axis=0) + table.sum(axis=1)))


def micro_f1(y_true, y_pred, classes):
    table = confusion(y_true, y_pred, classes)
    return 2 * np.trace(table) / (2 * table.sum())


def mcc(y_true, y_pred, classes):
    """Gorodkin 2004, from the confusion matrix."""
    table = confusion(y_true, y_pred, classes).astype(float)
    s, c = table.sum(), np.trace(table)
    t, p = table.sum(axis=1), table.sum(axis=0)
    below = math.sqrt((s**2 - (p**2).sum()) * (s**2 - (t**2).sum()))
    return (c * s - (t * p).sum()) / below if below else 0.0


def quadratic_kappa(y_true, y_pred, classes):
    table = confusion(y_true, y_pred, classes).astype(float)
    k = len(classes)
    weight = np.subtract.outer(np.arange(k), np.arange(k)) ** 2
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return 1 - (weight * table).sum() / (weight * expected).sum()


def log_loss(y_true, y_pred):
    return sk.log_loss(y_true, np.clip(y_pred, 1e-15, 1 - 1e-15), labels=[0, 1])


def log_loss_multiclass(y_true, y_pred):
    scaled = y_pred / y_pred.sum(axis=1, keepdims=True)
    return sk.log_loss(y_true.argmax(axis=1), scaled, labels=[0, 1, 2])


def roc_auc(y_true, y_pred):
    """Count pairs."""
    pairs = itertools.product(y_pred[y_true == 1], y_pred[y_true == 0])
    return np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs])


def average_precision(y_true, y_pred):
    """Walk down the distinct thresholds."""
    total, before = 0.0, 0.0
    for threshold in sorted(set(y_pred), reverse=True):
        chosen = y_pred >= threshold
        recall = y_true[chosen].sum() / y_true.sum()
        total += (recall - before) * y_true[chosen].mean()
        before = recall
    return total


def rmse(y_true, y_pred):
    return math.sqrt(sk.mean_squared_error(y_true, y_pred))


def rmsle(y_true, y_pred):
    return math.sqrt(sk.mean_squared_log_error(y_true, y_pred))


def spearman(y_true, y_pred):
    """Pearson of mean ranks."""

    def ranks(values):
        return [
            np.mean([sum(w < v for w in values), sum(w <= v for w in values) - 1]) for v in values
        ]

    return np.corrcoef(ranks(y_true), ranks(y_pred))[0, 1]


def gain(relevance, order):
    return sum(relevance[i] / math.log2(place + 2) for place, i in enumerate(order))


def ndcg(relevance, score, query, k=10):
    """Mean over every order that the scores allow: what sharing the gain of tied places means."""
    values = []
    for name in set(query):
        rows = [i for i, q in enumerate(query) if q == name]
        orders = [
            order
            for order in itertools.permutations(rows)
            if all(score[a] >= score[b] for a, b in itertools.pairwise(order))
        ]
        best = gain(relevance, sorted(rows, key=lambda i: -relevance[i])[:k])
        values.append(np.mean([gain(relevance, order[:k]) for order in orders]) / best)
    return np.mean(values)


def mean_average_precision(relevant, predicted, k=5):
    """From the definition, with precision at each place computed anew."""
    values = []
    for wanted, guesses in zip(relevant, predicted, strict=True):
        precision = [
            len(set(guesses[: place + 1]) & set(wanted)) / (place + 1)
            for place, guess in enumerate(guesses[:k])
            if guess in wanted
        ]
        values.append(sum(precision) / min(k, len(wanted)))
    return np.mean(values)


SECOND = {
    "accuracy": accuracy,
    "average_precision": average_precision,
    "balanced_accuracy": balanced_accuracy,
    "log_loss": log_loss,
    "log_loss_multiclass": log_loss_multiclass,
    "macro_f1": macro_f1,
    "mae": sk.mean_absolute_error,
    "map": mean_average_precision,
    "mcc": mcc,
    "micro_f1": micro_f1,
    "ndcg": ndcg,
    "quadratic_kappa": quadratic_kappa,
    "r2": sk.r2_score,
    "rmse": rmse,
    "rmsle": rmsle,
    "roc_auc": roc_auc,
    "spearman": spearman,
}


def test_every_metric_has_a_second_implementation() -> None:
    assert sorted(SECOND) == METRICS.names()


@pytest.mark.parametrize("name", SECOND)
def test_parity(name: str) -> None:
    metric = METRICS.get(name)
    for seed in range(CASES):
        case = make_case(metric, seed, 8 + seed % 9)
        schema = case.schema.model_dump()
        answers = read_answers(
            csv_text(case.answers).encode(), "answer.csv", schema, metric.kind.extra_truth
        )
        predicted = check(csv_text(case.random).encode(), schema, answers.ids)
        arrays = metric.kind.arrays(answers.columns, predicted, schema)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours = metric(*arrays)
        assert ours == pytest.approx(float(SECOND[name](*arrays)), abs=1e-9), (name, seed)


def test_ndcg_of_many_queries_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 5, 10, 30):
        relevance, score = rng.integers(0, 4, (60, 20)), rng.integers(0, 9, (60, 20))
        relevance[:, 0] += 1
        query = np.repeat(np.array([f"q{i}" for i in range(60)], object), 20)
        order = rng.permutation(1200)
        flat = (relevance.ravel()[order], score.ravel()[order], query[order])
        ours = METRICS.get("ndcg")(flat[0].astype(float), flat[1].astype(float), flat[2], k=k)
        assert ours == pytest.approx(sk.ndcg_score(relevance, score, k=k), abs=1e-9)


def labels(text: str) -> np.ndarray:
    return np.array(list(text), dtype=object)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


# name, arrays, value worked out by hand
HAND_WORKED = [
    ("accuracy", (labels("aabb"), labels("abbb"), "ab"), 0.75),
    ("balanced_accuracy", (labels("aaab"), labels("aaaa"), "ab"), 0.5),
    ("macro_f1", (labels("aabb"), labels("aaab"), "ab"), (0.8 + 2 / 3) / 2),
    ("micro_f1", (labels("abc"), labels("abb"), "abc"), 2 / 3),
    ("mcc", (labels("aabb"), labels("aaab"), "ab"), 1 / math.sqrt(3)),
    ("mcc", (labels("aabb"), labels("aaaa"), "ab"), 0.0),
    ("quadratic_kappa", (labels("012"), labels("021"), "012"), 0.5),
    ("log_loss", (floats(1, 0), floats(0.5, 0.5)), math.log(2)),
    ("log_loss", (floats(1), floats(0)), -math.log(1e-15)),
    ("log_loss_multiclass", (np.eye(2), np.array([[0.5, 0.5], [0.75, 0.25]])), 1.5 * math.log(2)),
    ("roc_auc", (floats(0, 0, 1, 1), floats(0.1, 0.4, 0.35, 0.8)), 0.75),
    ("roc_auc", (floats(0, 1), floats(5, 5)), 0.5),
    ("average_precision", (floats(0, 0, 1, 1), floats(0.1, 0.4, 0.35, 0.8)), 0.5 + 1 / 3),
    ("average_precision", (floats(0, 0, 0, 1), floats(1, 1, 1, 1)), 0.25),
    ("rmse", (floats(0, 0), floats(3, 4)), math.sqrt(12.5)),
    ("rmsle", (floats(0, math.e - 1), floats(0, math.e**3 - 1)), math.sqrt(2)),
    ("mae", (floats(1, 2), floats(2, 4)), 1.5),
    ("r2", (floats(1, 2, 3), floats(2, 2, 2)), 0.0),
    ("r2", (floats(1, 2, 3), floats(3, 2, 1)), -3.0),
    ("spearman", (floats(1, 2, 3), floats(1, 9, 4)), 0.5),
    ("spearman", (floats(1, 2, 3), floats(7, 7, 7)), 0.0),
    (
        "ndcg",
        (floats(0, 1), floats(2, 1), labels("qq")),
        1 / math.log2(3),
    ),
    ("map", ([("a",), ("a", "b")], [("b", "a"), ("a", "c", "b")]), (0.5 + (1 + 2 / 3) / 2) / 2),
]


@pytest.mark.parametrize(("name", "arrays", "value"), HAND_WORKED)
def test_hand_worked(name: str, arrays: tuple, value: float) -> None:
    assert METRICS.get(name)(*arrays) == pytest.approx(value, abs=1e-12)


def test_k_cuts_the_list() -> None:
    last = floats(0, 0, 1), floats(3, 2, 1), labels("qqq")
    assert METRICS.get("ndcg")(*last, k=2) == 0.0
    assert METRICS.get("ndcg")(*last, k=3) == pytest.approx(0.5)
    third = [("c",)], [("a", "b", "c")]
    assert METRICS.get("map")(*third, k=2) == 0.0
    assert METRICS.get("map")(*third, k=3) == pytest.approx(1 / 3)


UNDEFINED = [
    ("balanced_accuracy", (labels("aa"), labels("aa"), "ab")),
    ("macro_f1", (labels("aa"), labels("aa"), "ab")),
    ("mcc", (labels("aa"), labels("ab"), "ab")),
    ("quadratic_kappa", (labels("11"), labels("01"), "01")),
    ("roc_auc", (floats(1, 1), floats(0.1, 0.2))),
    ("average_precision", (floats(0, 0), floats(0.1, 0.2))),
    ("rmsle", (floats(-2, 1), floats(1, 1))),
    ("r2", (floats(1, 1), floats(1, 2))),
    ("spearman", (floats(1, 1), floats(1, 2))),
    ("ndcg", (floats(0, 0), floats(1, 2), labels("qq"))),
    ("ndcg", (floats(1, 1, 1), floats(1, 2, 3), labels("qqr"))),
    ("ndcg", (floats(-1, 1), floats(1, 2), labels("qq"))),
]


@pytest.mark.parametrize(("name", "arrays"), UNDEFINED)
def test_degenerate_truth_is_refused(name: str, arrays: tuple) -> None:
    with pytest.raises(GradingError):
        METRICS.get(name)(*arrays)


def test_extreme_values_have_finite_scores() -> None:
    r2 = METRICS.get("r2")
    assert r2(floats(1e-60, 2e-60, 0), floats(1e100, 0, 0)) == -sys.float_info.max
    assert r2(floats(1e-200, 3e-200, 0), floats(1e-200, 3e-200, 0)) == 1.0
    assert METRICS.get("rmse")(floats(1e-200, 0), floats(0, 0)) == pytest.approx(
        1e-200 / math.sqrt(2)
    )
    assert METRICS.get("rmse")(floats(1e100, 0), floats(-1e100, 0)) == pytest.approx(
        math.sqrt(2) * 1e100
    )
    assert METRICS.get("mae")(floats(1e100), floats(-1e100)) == 2e100


def test_unknown_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="no parameter 'kk'; did you mean 'k'"):
        METRICS.get("ndcg").check_params({"kk": 3})
    with pytest.raises(ValueError, match="it has none"):
        METRICS.get("rmse").check_params({"k": 3})
