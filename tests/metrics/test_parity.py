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
from conformance.cases import SHAPE, csv_text, make_case
from scipy.special import rel_entr
from second import MORE, PARAMS
from sklearn import metrics as sk

from sandmle.errors import GradingError
from sandmle.grading.grader import read_answers
from sandmle.metrics.registry import METRICS
from sandmle.tasks.cells import parse_mask
from sandmle.tasks.submission import check

CASES, MANY = 40, 200  # with every run of the tests, and with the slow ones


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


def smape(y_true, y_pred):
    rows = zip(y_true, y_pred, strict=True)
    return np.mean([0 if a == b == 0 else abs(a - b) / ((a + b) / 2) for a, b in rows])


def mean_roc_auc(y_true, y_pred):
    return sk.roc_auc_score(y_true, y_pred, average="macro")


def mean_log_loss(y_true, y_pred):
    return np.mean([log_loss(y_true[:, i], y_pred[:, i]) for i in range(y_true.shape[1])])


def kl_divergence(y_true, y_pred):
    p, q = (table / table.sum(axis=1, keepdims=True) for table in (y_true, y_pred))
    return np.mean(rel_entr(p, q.clip(1e-6)).sum(axis=1).clip(0))


def painted(runs):
    """Paint a mask pixel by pixel, on twice as much paper as the cases need."""
    paper = np.zeros(2 * SHAPE[0] * SHAPE[1], dtype=bool)
    for start, end in runs:
        for pixel in range(start, end):
            assert not paper[pixel]
            paper[pixel] = True
    return paper


def dice(truth, predicted):
    pairs = [(painted(a), painted(b)) for a, b in zip(truth, predicted, strict=True)]
    return np.mean(
        [2 * (a & b).sum() / (a.sum() + b.sum()) if (a | b).any() else 1 for a, b in pairs]
    )


def mean_iou(truth, predicted):
    pairs = [(painted(a), painted(b)) for a, b in zip(truth, predicted, strict=True)]
    return np.mean([(a & b).sum() / (a | b).sum() if (a | b).any() else 1 for a, b in pairs])


def intersection_over_union(a, b):
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def ap50(truth, predicted):
    """Match anew for each distinct confidence, and take the mean over places of the true boxes."""
    found = [tuple(box) for boxes in predicted for box in boxes]
    total = sum(map(len, truth))
    points = []
    for threshold in {box[0] for box in found}:
        hits = 0
        for true, guesses in zip(truth, predicted, strict=True):
            left = sorted(tuple(box[1:]) for box in true)
            chosen = [box for box in guesses if box[0] >= threshold]
            for guess in sorted(chosen, key=lambda box: (-box[0], *box[1:])):
                best = max(left, key=lambda t: intersection_over_union(t, guess[1:]), default=None)
                if best is not None and intersection_over_union(best, guess[1:]) >= 0.5:
                    left.remove(best)
                    hits += 1
        points.append((hits, hits / sum(box[0] >= threshold for box in found)))
    return np.mean([max([p for hits, p in points if hits > i], default=0) for i in range(total)])


def word_jaccard(truth, predicted):
    scores = []
    for pair in zip(truth, predicted, strict=True):
        first, second = ([w for w in text.lower().split() if w] for text in pair)
        words = set(first + second)
        scores.append(np.mean([w in first and w in second for w in words]) if words else 1)
    return np.mean(scores)


def exact_match(truth, predicted):
    return np.mean(np.array(truth) == np.array(predicted))


SECOND = {
    "accuracy": accuracy,
    "ap50": ap50,
    "average_precision": average_precision,
    "balanced_accuracy": balanced_accuracy,
    "dice": dice,
    "exact_match": exact_match,
    "kl_divergence": kl_divergence,
    "log_loss": log_loss,
    "log_loss_multiclass": log_loss_multiclass,
    "macro_f1": macro_f1,
    "mae": sk.mean_absolute_error,
    "map": mean_average_precision,
    "mcc": mcc,
    "mean_iou": mean_iou,
    "mean_log_loss": mean_log_loss,
    "mean_roc_auc": mean_roc_auc,
    "micro_f1": micro_f1,
    "ndcg": ndcg,
    "quadratic_kappa": quadratic_kappa,
    "r2": sk.r2_score,
    "rmse": rmse,
    "rmsle": rmsle,
    "roc_auc": roc_auc,
    "smape": smape,
    "spearman": spearman,
    "word_jaccard": word_jaccard,
    **MORE,
}


def test_every_metric_has_a_second_implementation() -> None:
    assert sorted(SECOND) == METRICS.names()


@pytest.mark.parametrize("name", SECOND)
def test_parity(name: str) -> None:
    compare(name, range(CASES))


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_parity_on_many_more_cases(name: str) -> None:
    compare(name, range(CASES, MANY))


def compare(name: str, seeds: range) -> None:
    metric = METRICS.get(name)
    for seed in seeds:
        case = make_case(metric, seed, 8 + seed % 9)
        schema = case.schema.model_dump()
        answers = read_answers(
            csv_text(case.answers).encode(), "answer.csv", schema, metric.kind.extra_truth
        )
        predicted = check(csv_text(case.random).encode(), schema, answers.ids)
        arrays = metric.kind.arrays(answers.columns, predicted, schema)
        for params in ({}, *PARAMS.get(name, ())):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ours = metric(*arrays, **params)
            other = float(SECOND[name](*arrays, **params))
            assert ours == pytest.approx(other, rel=1e-9, abs=1e-9), (name, seed, params)


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


def masks(*cells: str) -> list[np.ndarray]:
    return [parse_mask(cell, (10, 10)) for cell in cells]


def boxes(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, dtype=float).reshape(-1, 5)


FIRST, OTHER = (0.1, 0, 0, 10, 10), (0.2, 50, 0, 10, 10)

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
    ("smape", (floats(0, 1, 0), floats(0, 3, 5)), (0 + 1 + 2) / 3),
    ("smape", (floats(0, 5e-324), floats(5e-324, 5e-324)), 1.0),
    (
        "mean_roc_auc",
        (np.array([[0, 0], [1, 1], [1, 0]]), np.array([[0.1, 0.5], [0.2, 0.5], [0.3, 0.5]])),
        (1 + 0.5) / 2,
    ),
    ("mean_log_loss", (np.array([[1, 1]]), np.array([[0.5, 0.25]])), 1.5 * math.log(2)),
    ("mean_log_loss", (np.array([[1, 0]]), np.array([[0, 0]])), -math.log(1e-15) / 2),
    ("kl_divergence", (np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])), math.log(4 / 3) / 2),
    ("kl_divergence", (np.array([[1, 0]]), np.array([[0, 1]])), math.log(1e6)),
    ("kl_divergence", (np.array([[0.4995, 0.4995]]), np.array([[0.5, 0.5]])), 0.0),
    ("kl_divergence", (np.array([[1 - 1e-7, 1e-7]]), np.array([[1 - 1e-7, 1e-7]])), 0.0),
    ("dice", (masks("1 4"), masks("3 4")), 0.5),
    ("dice", (masks("1 2 5 2", "", "3 1", ""), masks("2 4", "", "", "3 1")), (0.5 + 1) / 4),
    ("dice", (masks("1 2 3 2"), masks("1 4")), 1.0),
    ("mean_iou", (masks("1 4"), masks("3 4")), 1 / 3),
    ("mean_iou", (masks("1 100", "", "100 1"), masks("100 1", "", "1 100")), (1 + 0.02) / 3),
    ("ap50", ([boxes(FIRST)], [boxes((0.5, 0, 0, 10, 5))]), 1.0),
    ("ap50", ([boxes(FIRST)], [boxes((0.5, 0, 0, 10, 4.9))]), 0.0),
    ("ap50", ([boxes(FIRST)], [boxes()]), 0.0),
    ("ap50", ([boxes(FIRST), boxes()], [boxes(), boxes(FIRST)]), 0.0),
    ("ap50", ([boxes(FIRST)], [boxes((0.9, 0, 0, 10, 9), (0.8, *FIRST[1:]))]), 1.0),
    ("ap50", ([boxes(FIRST)], [boxes((0.9, 30, 0, 9, 9), (0.8, *FIRST[1:]))]), 0.5),
    ("word_jaccard", (["a b c", "", "x", ""], ["B  d\tA", " ", "", "x"]), (0.5 + 1) / 4),
    ("exact_match", (["a", "", "B", "c "], ["a", "", "b", "c"]), 0.5),
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
    ("smape", (floats(-2, 1), floats(1, 1))),
    ("mean_roc_auc", (np.array([[0, 1], [1, 1]]), np.array([[0.1, 0.2], [0.3, 0.4]]))),
    ("ap50", ([boxes(), boxes()], [boxes(FIRST), boxes()])),
]


@pytest.mark.parametrize(("name", "arrays"), UNDEFINED)
def test_degenerate_truth_is_refused(name: str, arrays: tuple) -> None:
    with pytest.raises(GradingError):
        METRICS.get(name)(*arrays)


def test_no_order_of_boxes_or_pictures_changes_their_score() -> None:
    """Confidences, places and overlaps tie all the time here."""
    rng, least = np.random.default_rng(0), np.array([0, 0, 0, 2, 2])
    metric = METRICS.get("ap50")
    for _ in range(200):
        truth, guess = (
            [rng.integers(0, 3, (rng.integers(1, 5), 5)) + least for _ in range(6)]
            for _ in range(2)
        )
        score = metric(truth, guess)
        assert score == pytest.approx(ap50(truth, guess), abs=1e-12)
        order = rng.permutation(6)
        turned = [[rng.permutation(boxes[i]) for i in order] for boxes in (truth, guess)]
        assert metric(*turned) == score


def test_a_confidence_that_all_boxes_share_makes_one_point_of_the_curve() -> None:
    truth = [boxes(FIRST), boxes(OTHER)]
    guess = [boxes((1, *FIRST[1:]), (1, 20, 20, 5, 5)), boxes()]
    assert METRICS.get("ap50")(truth, guess) == 0.5 * 0.5


def test_each_true_box_is_found_once_and_by_the_surest() -> None:
    truth = [boxes(FIRST, (0, 1, 0, 10, 10))]
    surest = (0.9, 1, 0, 10, 10)
    twice = (0.8, 1, 0, 10, 10)  # takes the other one, which it overlaps less
    again = (0.7, 1, 0, 10, 10)
    assert METRICS.get("ap50")(truth, [boxes(surest, twice)]) == 1.0
    assert METRICS.get("ap50")(truth, [boxes(surest, twice, again)]) == 1.0
    assert METRICS.get("ap50")([truth[0][:1]], [boxes(surest, twice)]) == 1.0
    assert METRICS.get("ap50")([truth[0][:1], boxes(OTHER)], [
        boxes(surest, twice), boxes((0.5, *OTHER[1:])),
    ]) == pytest.approx((1 + 2 / 3) / 2)  # fmt: skip


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
