"""More of the metrics by hand, with what they refuse and what their parameters do."""

import contextlib
import io
import math

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from rapidfuzz.distance import Levenshtein
from test_parity import boxes, floats, labels, masks

from sandmle.errors import GradingError, UsageError
from sandmle.metrics.registry import METRICS
from sandmle.metrics.text import edit_distances

WORDS = np.array(["sign"], object)
WHOLE, LEFT, FAR = (0.9, 0, 0, 10, 10), (0.8, 0, 0, 5, 10), (0.7, 50, 50, 10, 10)
THREE = np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])


def sets(*rows: str) -> list[frozenset[str]]:
    return [frozenset(row.split()) for row in rows]


def orders(*rows: str) -> list[tuple[str, ...]]:
    return [tuple(row.split()) for row in rows]


# name, arrays, parameters, value worked out by hand
HAND_WORKED = [
    ("weighted_f1", (labels("aaab"), labels("aaaa"), "ab"), {}, 0.75 * 6 / 7),
    ("f1", (labels("abb"), labels("bba"), "ab"), {}, 0.5),
    ("f1", (labels("ab"), labels("aa"), "ab"), {}, 0.0),
    ("fbeta", (labels("aabb"), labels("aaab"), "ab"), {"beta": 2}, (10 / 11 + 5 / 9) / 2),
    ("fbeta", (labels("aabb"), labels("aaab"), "ab"), {"beta": 1}, (0.8 + 2 / 3) / 2),
    ("error_rate", (labels("aabb"), labels("abbb"), "ab"), {}, 0.25),
    ("kappa", (labels("aabb"), labels("aaab"), "ab"), {}, 0.5),
    ("kappa", (labels("aabb"), labels("aaaa"), "ab"), {}, 0.0),
    ("brier", (floats(1, 0), floats(0.8, 0.4)), {}, 0.1),
    ("pf1", (floats(1, 0), floats(0.8, 0.4)), {}, 1.6 / 2.2),
    ("pf1", (floats(1, 0), floats(0, 0)), {}, 0.0),
    ("weighted_roc_auc", (floats(0, 1), floats(1, 1)), {}, (2 * 0.32 + 0.18) / 1.4),
    ("weighted_roc_auc", (floats(0, 1, 1), floats(2, 1, 3)), {}, (2 * 0.4 + 0.1) / 1.4),
    ("weighted_roc_auc", (floats(0, 1), floats(2, 1)), {}, 0.0),
    ("gini", (floats(0, 0, 1, 1), floats(0.1, 0.4, 0.35, 0.8)), {}, 0.5),
    (
        "bias_auc",
        (floats(1, 0, 1, 0), floats(0.9, 0.1, 0.5, 0.5), np.array([[1], [1], [0], [0]]) == 1),
        {},
        (0.875 + 3) / 4,
    ),
    (
        "bias_auc",
        (floats(1, 0, 1, 0), floats(0.1, 0.9, 0.5, 0.4), np.array([[1], [1], [0], [0]]) == 1),
        {},
        0.25 / 4,
    ),
    ("top_k_accuracy", (np.eye(3), THREE), {"k": 1}, 1.0),
    ("top_k_accuracy", (np.eye(3)[[1, 2, 0]], THREE), {"k": 2}, 2 / 3),
    ("top_k_accuracy", (np.eye(3), np.ones((3, 3)) / 3), {"k": 2}, 0.0),
    ("brier_multiclass", (np.eye(3)[:1], THREE[:1]), {}, 0.16 + 0.09 + 0.01),
    ("brier_multiclass", (np.eye(2)[:1], np.array([[0.0, 1.0]])), {}, 2.0),
    ("crps", (np.eye(3)[:1], THREE[:1]), {}, (0.16 + 0.01) / 2),
    ("crps", (np.eye(3)[:1], np.array([[0, 0, 1.0]])), {}, 1.0),
    ("roc_auc_ovr", (np.eye(3), THREE), {}, 1.0),
    ("lwlrap", (np.array([[1, 0, 1]]), np.array([[0.9, 0.5, 0.1]])), {}, (1 + 2 / 3) / 2),
    ("lwlrap", (np.array([[1, 0], [1, 1]]), np.full((2, 2), 0.5)), {}, (0.5 + 1 + 1) / 3),
    ("tag_map", (np.array([[1], [0], [1]]), np.array([[0.9], [0.5], [0.1]])), {}, (1 + 2 / 3) / 2),
    (
        "weighted_log_loss",
        (np.array([[1, 0]]), np.array([[0.5, 0.25]])),
        {"weights": [3, 1], "positive": 2},
        (6 * math.log(2) + math.log(4 / 3)) / 7,
    ),
    ("tag_f1_micro", (np.array([[1, 0], [1, 1]]), np.array([[0.5, 0.5], [0.4, 1]])), {}, 2 / 3),
    ("tag_f1_macro", (np.array([[1, 0], [1, 1]]), np.array([[0.5, 0.5], [0.4, 1]])), {}, 2 / 3),
    ("hamming", (np.array([[1, 0], [1, 1]]), np.array([[0.5, 0.5], [0.4, 1]])), {}, 0.5),
    ("tag_jaccard", (np.array([[1, 0], [0, 0]]), np.array([[0.5, 0.5], [0, 0]])), {}, 0.75),
    ("tag_jaccard", (np.array([[0, 0]]), np.array([[0.5, 0.5]])), {}, 0.0),
    ("mse", (floats(0, 0), floats(3, 4)), {}, 12.5),
    ("mape", (floats(-2, 4), floats(-1, 5)), {}, 0.375),
    ("rmspe", (floats(-2, 4), floats(-1, 5)), {}, math.sqrt((0.25 + 0.0625) / 2)),
    ("wape", (floats(-2, 4), floats(-1, 5)), {}, 2 / 6),
    ("mase", (floats(1, 2), floats(2, 4)), {"scale": 3}, 0.5),
    ("pinball", (floats(1, 1), floats(0, 3)), {"quantile": 0.9}, (0.9 + 0.2) / 2),
    ("pearson", (floats(1, 2, 3), floats(2, 4, 6)), {}, 1.0),
    ("pearson", (floats(1, 2, 3), floats(1, 3, 2)), {}, 0.5),
    ("pearson", (floats(1, 2, 3), floats(0.1, 0.1, 0.1)), {}, 0.0),
    ("kendall", (floats(1, 2, 3), floats(1, 3, 2)), {}, 1 / 3),
    ("kendall", (floats(1, 2, 3), floats(7, 7, 7)), {}, 0.0),
    (
        "mean_log_mae",
        (floats(0, 0, 0), floats(1, 3, math.e), labels("aab")),
        {},
        0.5 + 0.5 * math.log(2),
    ),
    ("mean_log_mae", (floats(1, 0), floats(1, 1), labels("ab")), {}, math.log(1e-9) / 2),
    ("masked_mae", (floats(1, 2), floats(2, 4)), {}, 1.5),
    (
        "mcrmse",
        (np.array([[0, 0], [0, 0]]), np.array([[3, 1], [4, 1]])),
        {},
        (math.sqrt(12.5) + 1) / 2,
    ),
    ("mcrmsle", (np.array([[0, 0]]), np.array([[0, math.e - 1]])), {}, 0.5),
    (
        "mean_spearman",
        (np.array([[1, 1], [2, 2], [3, 3]]), np.array([[1, 5], [9, 5], [4, 5]])),
        {},
        0.25,
    ),
    (
        "laplace_log_likelihood",
        (np.array([[2000, 0]]), np.array([[2000, 5]])),
        {},
        -math.log(70 * math.sqrt(2)),
    ),
    (
        "laplace_log_likelihood",
        (np.array([[2000, 0]]), np.array([[9000, 100]])),
        {},
        -10 * math.sqrt(2) - math.log(100 * math.sqrt(2)),
    ),
    (
        "angular_error",
        (np.array([[0, math.pi / 2]]), np.array([[math.pi / 2, math.pi / 2]])),
        {},
        math.pi / 2,
    ),
    (
        "angular_error",
        (np.array([[1, 0], [1, 0]]), np.array([[4, 0], [2, math.pi]])),
        {},
        math.pi / 2,
    ),
    ("angular_error", (np.array([[1, 1]]), np.array([[1, 1 + 1e-12]])), {}, 1e-12),
    (
        "haversine",
        (np.array([[0, 0]]), np.array([[90, 0]]), labels("a")),
        {},
        math.pi * 6_371_000 / 2,
    ),
    (
        "haversine",
        (np.array([[0, 179.5]]), np.array([[0, -179.5]]), labels("a")),
        {},
        math.pi * 6_371_000 / 180,
    ),
    (
        "haversine",
        (np.zeros((3, 2)), np.array([[0, 0], [0, 2], [0, 1]]), labels("aab")),
        {},
        math.pi * 6_371_000 / 180 * ((1 + 1.9) / 2 + 1) / 2,
    ),
    ("mrr", (orders("a", "a b"), orders("b a", "c b a")), {}, 0.5),
    ("mrr", (orders("a", "a"), orders("b a", "a")), {"k": 1}, 0.5),
    ("recall_at_k", (orders("a b", "a b c"), orders("a c", "a b d")), {"k": 2}, (0.5 + 1) / 2),
    ("hit_rate", (orders("a", "b"), orders("c a", "b")), {"k": 1}, 0.5),
    ("order_tau", (orders("a b c"), orders("c b a")), {}, -1.0),
    ("order_tau", (orders("a b c", "d e"), orders("a c b", "d e")), {}, 1 - 4 / 8),
    ("order_tau", (orders("a b c"), orders("x c y")), {}, -1.0),
    ("order_tau", (orders("a b c"), orders("a")), {}, 1 - 4 / 6),
    ("levenshtein", (["kitten", "", "same"], ["sitting", "abc", "same"]), {}, 2.0),
    ("normalised_levenshtein", (["kitten", "", ""], ["sitting", "", "a"]), {}, (3 / 7 + 1) / 3),
    ("char_error_rate", (["kitten", ""], ["sitting", "abc"]), {}, 1.0),
    ("word_error_rate", (["3 12 4", "7"], ["3  4 4", ""]), {}, 0.5),
    ("word_error_rate", (["3"], ["4 5 6"]), {}, 3.0),
    ("set_f1_micro", (sets("a b", ""), sets("a c", "d")), {}, 0.4),
    ("set_fbeta", (sets("a b", "", "a"), sets("a", "", "")), {"beta": 2}, (5 / 9 + 1) / 3),
    ("set_jaccard", (sets("a b", "", ""), sets("b c", "", "a")), {}, (1 / 3 + 1) / 3),
    ("answer_f1", (sets("1:4 2:5", "", "7:9", "YES"), sets("2:5", "3:4", "", "NO")), {}, 2 / 5),
    ("answer_f1", (sets("1:4"), sets("1:4 2:5")), {}, 0.0),
    ("answer_f1", (sets("1:4"), sets("")), {}, 0.0),
    ("global_dice", (masks("1 4", ""), masks("3 4", "1 2")), {}, 0.4),
    ("mask_fbeta", (masks("1 4", "", "1 1"), masks("1 2", "", "")), {}, (1.25 * 2 / 3 + 1) / 3),
    ("mask_map", (masks("1 10"), masks("1 8")), {}, 0.6),
    ("mask_map", (masks("", "1 1"), masks("", "")), {}, 0.5),
    ("dice_hausdorff", (masks("1 1"), masks("100 1"), (10, 10)), {}, 0.6 * 0.1),
    (
        "dice_hausdorff",
        (masks("1 2"), masks("1 1"), (10, 10)),
        {},
        0.4 * 2 / 3 + 0.6 * (1 - 0.1 / math.sqrt(2)),
    ),
    (
        "dice_hausdorff",
        (masks("1 2"), masks("1 1"), (2, 50)),
        {},
        0.4 * 2 / 3 + 0.6 * (1 - 0.5 / math.sqrt(2)),
    ),
    ("dice_hausdorff", (masks("", "1 1"), masks("", ""), (10, 10)), {}, 0.5),
    ("class_iou", (masks("1 4", "", "1 1"), masks("3 4", "", ""), labels("aab")), {}, 1 / 6),
    ("coco_map", ([boxes(WHOLE)], [boxes((0.5, 0, 0, 10, 7.2))], WORDS), {}, 0.5),
    ("coco_map", ([boxes(WHOLE, FAR)], [boxes(WHOLE)], WORDS), {}, 51 / 101),
    ("coco_map", ([boxes(WHOLE)], [boxes(LEFT)], WORDS), {"thresholds": [0.5]}, 1.0),
    ("voc_map", ([boxes(WHOLE, FAR)], [boxes(WHOLE)], WORDS), {}, 0.5),
    ("voc_map", ([boxes(WHOLE), boxes(FAR)], [boxes(WHOLE), boxes()], labels("ab")), {}, 0.5),
    (
        "voc_map",
        ([boxes(WHOLE, LEFT)], [boxes(WHOLE, (0.5, *WHOLE[1:]))], WORDS),
        {"iou": 0.3},
        0.5,
    ),
    ("point_f1", ([boxes(WHOLE, FAR)], [boxes(LEFT, (1, 49, 49, 2, 2))]), {}, 0.5),
    ("point_f1", ([boxes(WHOLE)], [boxes(LEFT, WHOLE)]), {}, 2 / 3),
    ("point_f1", ([boxes(WHOLE), boxes()], [boxes(), boxes(WHOLE)]), {}, 0.0),
]


@pytest.mark.parametrize(("name", "arrays", "params", "value"), HAND_WORKED)
def test_hand_worked(name: str, arrays: tuple, params: dict, value: float) -> None:
    assert METRICS.get(name)(*arrays, **params) == pytest.approx(value, rel=1e-9, abs=1e-12)


ONE_CLASS = (np.eye(2)[[0, 0]], THREE[:2, :2])
NO_TAG = (np.array([[1, 0], [1, 0]]), np.array([[0.1, 0.2], [0.3, 0.4]]))
NOTHING = [boxes(), boxes()]
UNDEFINED = [
    ("f1", (labels("aa"), labels("ab"), "ab"), {}, "of class 'b'"),
    ("fbeta", (labels("aa"), labels("ab"), "ab"), {}, "of class 'b'"),
    ("kappa", (labels("aa"), labels("ab"), "ab"), {}, "the same"),
    ("pf1", (floats(0, 0), floats(0, 1)), {}, "needs a positive"),
    ("gini", (floats(1, 1), floats(0, 1)), {}, "the same"),
    ("weighted_roc_auc", (floats(1, 1), floats(0, 1)), {}, "the same"),
    ("weighted_roc_auc", (floats(0, 1), floats(0, 1)), {"weights": [1]}, "a weight for each"),
    ("weighted_roc_auc", (floats(0, 1), floats(0, 1)), {"thresholds": [0, 2, 1]}, "must rise"),
    ("bias_auc", (floats(0, 1), floats(0, 1), np.zeros((2, 0), bool)), {}, "an identity"),
    ("bias_auc", (floats(0, 1), floats(0, 1), np.ones((2, 1), bool)), {}, "of some identity"),
    ("crps", (np.ones((2, 1)), np.ones((2, 1))), {}, "two classes"),
    ("roc_auc_ovr", ONE_CLASS, {}, "each class must occur"),
    ("lwlrap", (np.zeros((2, 2)), THREE[:2, :2]), {}, "no tag holds"),
    ("tag_map", NO_TAG, {}, "tag 2"),
    ("tag_f1_macro", NO_TAG, {}, "tag 2"),
    ("tag_f1_micro", (np.zeros((2, 2)), THREE[:2, :2]), {}, "no tag holds"),
    ("weighted_log_loss", NO_TAG, {"weights": [1, 2, 3]}, "2 weights"),
    ("weighted_log_loss", NO_TAG, {"weights": [1, 0]}, "above 0"),
    ("mape", (floats(0, 1), floats(1, 1)), {}, "is 0"),
    ("rmspe", (floats(0, 1), floats(1, 1)), {}, "is 0"),
    ("wape", (floats(0, 0), floats(1, 1)), {}, "are 0"),
    ("mase", (floats(0, 0), floats(1, 1)), {"scale": 0}, "above 0"),
    ("pinball", (floats(0, 0), floats(1, 1)), {"quantile": 1}, "between 0 and 1"),
    ("pearson", (floats(1, 1), floats(1, 2)), {}, "the same"),
    ("kendall", (floats(1, 1), floats(1, 2)), {}, "the same"),
    ("mcrmsle", (np.array([[-1.0]]), np.array([[1.0]])), {}, "negative"),
    ("mean_spearman", (np.array([[1, 1], [2, 1]]), np.eye(2)), {}, "column 2"),
    ("order_tau", (orders("a", "b"), orders("a", "b")), {}, "two labels"),
    ("char_error_rate", (["", ""], ["a", ""]), {}, "empty"),
    ("word_error_rate", (["  "], ["a"]), {}, "empty"),
    ("set_f1_micro", (sets("", ""), sets("a", "")), {}, "has a label"),
    ("answer_f1", (sets("", ""), sets("a", "")), {}, "has a label"),
    ("global_dice", (masks("", ""), masks("1 1", "")), {}, "has a pixel"),
    ("class_iou", (masks("1 1", ""), masks("1 1", ""), labels("ab")), {}, "of class 'b'"),
    ("coco_map", (NOTHING, NOTHING, labels("ab")), {}, "of class 'a'"),
    ("voc_map", ([boxes(WHOLE), boxes()], NOTHING, labels("ab")), {}, "of class 'b'"),
    ("point_f1", (NOTHING, NOTHING), {}, "a true box"),
]


@pytest.mark.parametrize(("name", "arrays", "params", "reason"), UNDEFINED)
def test_degenerate_truth_is_refused(name: str, arrays: tuple, params: dict, reason: str) -> None:
    with pytest.raises(GradingError, match=reason):
        METRICS.get(name)(*arrays, **params)


def test_extreme_values_have_finite_scores() -> None:
    huge = floats(1e100, -1e100, 0)
    for metric in METRICS:
        if metric.kind.name == "number" and metric.name not in ("mape", "rmspe"):
            assert math.isfinite(metric(floats(5e-324, 0, 1), huge)), metric.name
    for name in ("mape", "rmspe", "wape"):
        assert math.isfinite(METRICS.get(name)(floats(5e-324, 5e-324, 5e-324), huge))
    assert METRICS.get("pearson")(floats(1e-200, 3e-200, 0), floats(1, 3, 0)) == pytest.approx(1)
    assert METRICS.get("mase")(floats(0), floats(1e100), scale=1e-300) > 1e300
    table = np.array([[5e-324, 0], [1, 2]]), np.array([[1e100, -1e100], [0, 1e100]])
    for name in ("mcrmse", "mean_spearman", "angular_error", "laplace_log_likelihood"):
        assert math.isfinite(METRICS.get(name)(*table)), name


def test_two_columns_are_two() -> None:
    for name in ("laplace_log_likelihood", "angular_error", "haversine"):
        with pytest.raises(UsageError, match="there must be two columns"):
            METRICS.get(name).schema("id", "y", ("a", "b", "c"), 1)


def test_rows_that_do_not_count_may_be_anything() -> None:
    kind = METRICS.get("masked_mae").kind
    schema = METRICS.get("masked_mae").schema("id", "y", (), 2).model_dump()
    truth, guess = {"y": floats(1, 2), "scored": labels("10")}, {"y": floats(3, 99)}
    assert METRICS.get("masked_mae")(*kind.arrays(truth, guess, schema)) == 2
    with pytest.raises(GradingError, match="no hidden row is scored"):
        kind.arrays({**truth, "scored": labels("00")}, guess, schema)
    with pytest.raises(GradingError, match="must be 0 or 1, not 'x'"):
        kind.arrays({**truth, "scored": labels("x1")}, guess, schema)


def test_edit_distances_of_any_length_are_rapidfuzzs() -> None:
    rng = np.random.default_rng(0)
    for longest in (1, 8, 64, 700):
        truth, guess = (
            ["".join(rng.choice(list("abÉ☃"), rng.integers(0, longest + 1))) for _ in range(60)]
            for _ in range(2)
        )
        expected = [Levenshtein.distance(a, b) for a, b in zip(truth, guess, strict=True)]
        assert edit_distances(truth, guess).tolist() == expected


def drawn(rng: np.random.Generator, n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Boxes of `n` rows that overlap a good deal, with confidences that do not tie."""
    truth, guess = [], []
    for i in range(n):
        true = rng.uniform((0, 0, 0, 8, 8), (1, 30, 30, 20, 20), (int(rng.integers(i == 0, 4)), 5))
        more = np.repeat(true, rng.integers(0, 3, len(true)), axis=0)
        more = more + rng.uniform(-3, 3, more.shape)
        more[:, 0] = rng.random(len(more))
        truth.append(true)
        guess.append(more)
    return truth, guess


def coco(truth: list[np.ndarray], guess: list[np.ndarray], thresholds: list[float]) -> float:
    """pycocotools, one class."""

    def dataset(rows: list[np.ndarray]) -> COCO:
        data = COCO()
        data.dataset = {
            "images": [{"id": i + 1} for i in range(len(rows))],
            "categories": [{"id": 1}],
            "annotations": [
                {"id": number + 1, "image_id": i + 1, "category_id": 1, "bbox": box[1:].tolist(),
                 "score": float(box[0]), "area": float(box[3] * box[4]), "iscrowd": 0, "ignore": 0}
                for number, (i, box) in enumerate(
                    (i, box) for i, own in enumerate(rows) for box in own)
            ],
        }  # fmt: skip
        data.createIndex()
        return data

    with contextlib.redirect_stdout(io.StringIO()):
        judge = COCOeval(dataset(truth), dataset(guess), "bbox")
        judge.params.iouThrs = np.array(thresholds)
        judge.evaluate()
        judge.accumulate()
    return float(np.mean(judge.eval["precision"][:, :, 0, 0, -1]))


def test_coco_map_is_that_of_pycocotools() -> None:
    rng, metric = np.random.default_rng(0), METRICS.get("coco_map")
    for _ in range(200):
        truth, guess = drawn(rng, 6)
        name = np.full(6, "sign", object)
        for thresholds in (metric.params["thresholds"], [0.4]):
            expected = coco(truth, guess, thresholds)
            ours = metric(truth, guess, name, thresholds=thresholds)
            assert ours == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["coco_map", "voc_map", "point_f1"])
def test_no_order_of_boxes_or_pictures_changes_their_score(name: str) -> None:
    """Confidences, places and overlaps tie all the time here."""
    rng, least = np.random.default_rng(0), np.array([0, 0, 0, 2, 2])
    group = (np.array(list("aabbab"), object),) if name != "point_f1" else ()
    for _ in range(100):
        truth, guess = (
            [rng.integers(0, 3, (rng.integers(1, 5), 5)) + least for _ in range(6)]
            for _ in range(2)
        )
        score = METRICS.get(name)(truth, guess, *group)
        order = rng.permutation(6)
        turned = [[rng.permutation(boxes[i]) for i in order] for boxes in (truth, guess)]
        assert METRICS.get(name)(*turned, *(names[order] for names in group)) == score
