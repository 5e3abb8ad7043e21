"""A second implementation of the metrics that sandmle.metrics writes out itself, and the reverse.

Where ours calls scikit-learn or scipy, this one follows the definition; where ours is written out,
this one is scikit-learn's, scipy's or rapidfuzz's, or counts one by one.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
from conformance.cases import SHAPE
from rapidfuzz.distance import Levenshtein
from scipy import stats
from scipy.spatial.distance import directed_hausdorff
from sklearn import metrics as sk
from sklearn.metrics.pairwise import haversine_distances
from sklearn.preprocessing import MultiLabelBinarizer


def counts(y_true, y_pred, name):
    pairs = [(a == name, b == name) for a, b in zip(y_true, y_pred, strict=True)]
    return [pairs.count(pair) for pair in ((True, True), (False, True), (True, False))]


def f_score(y_true, y_pred, name, beta=1.0):
    tp, fp, fn = counts(y_true, y_pred, name)
    precision, recall = (tp / (tp + other) if tp else 0.0 for other in (fp, fn))
    below = beta**2 * precision + recall
    return (1 + beta**2) * precision * recall / below if below else 0.0


def weighted_f1(y_true, y_pred, classes):
    return np.mean([f_score(y_true, y_pred, name) for name in y_true])


def f1(y_true, y_pred, classes):
    return f_score(y_true, y_pred, classes[-1])


def fbeta(y_true, y_pred, classes, beta=2.0):
    return np.mean([f_score(y_true, y_pred, name, beta) for name in classes])


def error_rate(y_true, y_pred, classes):
    return 1 - sk.accuracy_score(list(y_true), list(y_pred))


def kappa(y_true, y_pred, classes):
    pairs = list(itertools.product(y_true, y_pred))
    chance = np.mean([a == b for a, b in pairs])
    seen = np.mean([a == b for a, b in zip(y_true, y_pred, strict=True)])
    return (seen - chance) / (1 - chance)


def pf1(y_true, y_pred):
    ctp = sum(p for y, p in zip(y_true, y_pred, strict=True) if y == 1)
    cfp = sum(p for y, p in zip(y_true, y_pred, strict=True) if y == 0)
    precision, recall = ctp / (ctp + cfp), ctp / sum(y_true)
    return 2 * precision * recall / (precision + recall)


def weighted_roc_auc(y_true, y_pred, thresholds=(0, 0.4, 1), weights=(2, 1)):
    """Cut each segment of scikit-learn's curve to each band, and add up trapezia beside it."""
    fpr, tpr, _ = sk.roc_curve(y_true, y_pred, drop_intermediate=False)
    total = 0.0
    for low, high, weight in zip(thresholds, thresholds[1:], weights, strict=False):
        for (x0, y0), (x1, y1) in itertools.pairwise(zip(fpr, tpr, strict=True)):
            if y0 == y1 or y1 <= low or y0 >= high:
                continue
            a, b = max(y0, low), min(y1, high)
            xa, xb = (np.interp(y, [y0, y1], [x0, x1]) for y in (a, b))
            total += weight * (b - a) * ((1 - xa) + (1 - xb)) / 2
    return total / sum(
        w * (b - a) for a, b, w in zip(thresholds, thresholds[1:], weights, strict=False)
    )


def gini(y_true, y_pred):
    """Somers' D, from pairs."""
    pairs = list(itertools.product(y_pred[y_true == 1], y_pred[y_true == 0]))
    return np.mean([np.sign(a - b) for a, b in pairs])


def bias_auc(y_true, y_pred, member, power=-5.0):
    def mean(parts):
        values = [sk.roc_auc_score(y_true[rows], y_pred[rows]) for rows in parts]
        return 0.0 if 0 in values and power < 0 else stats.pmean(values, power)

    inside, out = member.T, ~member.T
    positive, negative = y_true == 1, y_true == 0
    means = [
        mean(inside),
        mean([(a & negative) | (b & positive) for a, b in zip(inside, out, strict=True)]),
        mean([(a & positive) | (b & negative) for a, b in zip(inside, out, strict=True)]),
    ]
    return 0.25 * sk.roc_auc_score(y_true, y_pred) + 0.25 * sum(means)


def top_k_accuracy(y_true, y_pred, k=2):
    if k >= y_true.shape[1]:
        return 1.0
    return sk.top_k_accuracy_score(y_true.argmax(axis=1), y_pred, k=k)


def brier_multiclass(y_true, y_pred):
    p = y_pred / y_pred.sum(axis=1, keepdims=True)
    return sum(sk.mean_squared_error(y_true[:, i], p[:, i]) for i in range(p.shape[1]))


def crps(y_true, y_pred):
    """E|X - y| - E|X - X'| / 2 of ranks (Gneiting and Raftery 2007, equation 21)."""
    k = y_true.shape[1]
    ranks, p = np.arange(k), y_pred / y_pred.sum(axis=1, keepdims=True)
    values = []
    for row, y in zip(p, y_true.argmax(axis=1), strict=True):
        spread = sum(row[i] * row[j] * abs(i - j) for i in ranks for j in ranks)
        values.append(np.sum(row * abs(ranks - y)) - spread / 2)
    return np.mean(values) / (k - 1)


def roc_auc_ovr(y_true, y_pred):
    p = y_pred / y_pred.sum(axis=1, keepdims=True)
    return sk.roc_auc_score(y_true.argmax(axis=1), p, multi_class="ovr")


def lwlrap(y_true, y_pred):
    return sk.label_ranking_average_precision_score(
        y_true, y_pred, sample_weight=y_true.sum(axis=1)
    )


def tag_map(y_true, y_pred):
    return sk.average_precision_score(y_true, y_pred, average="macro")


def weighted_log_loss(y_true, y_pred, weights=(1, 1, 1), positive=1.0):
    rows = []
    for truth, guess in zip(y_true, y_pred, strict=True):
        w = [a * positive if y else a for a, y in zip(weights, truth, strict=True)]
        sure = [min(max(p, 1e-15), 1 - 1e-15) for p in guess]
        loss = [-math.log(p if y else 1 - p) for y, p in zip(truth, sure, strict=True)]
        rows.append(np.average(loss, weights=w))
    return np.mean(rows)


def tag_f1_micro(y_true, y_pred, threshold=0.5):
    return sk.f1_score(y_true, y_pred >= threshold, average="micro", zero_division=0)


def tag_f1_macro(y_true, y_pred, threshold=0.5):
    return sk.f1_score(y_true, y_pred >= threshold, average="macro", zero_division=0)


def hamming(y_true, y_pred, threshold=0.5):
    return sk.hamming_loss(y_true, y_pred >= threshold)


def tag_jaccard(y_true, y_pred, threshold=0.5):
    return sk.jaccard_score(y_true, y_pred >= threshold, average="samples", zero_division=1)


def rmspe(y_true, y_pred):
    return math.sqrt(
        sum((1 - b / a) ** 2 for a, b in zip(y_true, y_pred, strict=True)) / len(y_true)
    )


def wape(y_true, y_pred):
    return sk.mean_absolute_error(y_true, y_pred) / np.mean(np.abs(y_true))


def mase(y_true, y_pred, scale=1.0):
    return sk.mean_absolute_error(y_true / scale, y_pred / scale)


def pinball(y_true, y_pred, quantile=0.5):
    return sk.mean_pinball_loss(y_true, y_pred, alpha=quantile)


def pearson(y_true, y_pred):
    return stats.pearsonr(y_true, y_pred).statistic


def kendall(y_true, y_pred):
    """Count pairs."""
    pairs = [
        (np.sign(a - b), np.sign(c - d))
        for (a, c), (b, d) in itertools.combinations(zip(y_true, y_pred, strict=True), 2)
    ]
    first, second = (sum(pair[i] != 0 for pair in pairs) for i in (0, 1))
    return sum(a * b for a, b in pairs) / math.sqrt(first * second)


def mean_log_mae(y_true, y_pred, group):
    errors = defaultdict(list)
    for a, b, name in zip(y_true, y_pred, group, strict=True):
        errors[name].append(abs(a - b))
    return np.mean([math.log(np.mean(values)) for values in errors.values()])


def mean_spearman(y_true, y_pred):
    columns = range(y_true.shape[1])
    return np.mean([stats.spearmanr(y_true[:, i], y_pred[:, i]).statistic for i in columns])


def laplace_log_likelihood(y_true, y_pred):
    error = np.clip(np.abs(y_true[:, 0] - y_pred[:, 0]), None, 1000)
    return np.mean(stats.laplace.logpdf(error, scale=np.clip(y_pred[:, 1], 70, None) / 2**0.5))


def angular_error(y_true, y_pred):
    """The law of cosines on the sphere."""
    return np.mean(
        [
            math.acos(math.cos(b) * math.cos(d) + math.sin(b) * math.sin(d) * math.cos(a - c))
            for (a, b), (c, d) in zip(y_true, y_pred, strict=True)
        ]
    )


def haversine(y_true, y_pred, group):
    metres = 6_371_000 * np.diag(haversine_distances(np.deg2rad(y_true), np.deg2rad(y_pred)))
    return np.mean([np.percentile(metres[group == name], [50, 95]) for name in set(group)])


def mrr(relevant, predicted, k=10):
    values = []
    for wanted, guesses in zip(relevant, predicted, strict=True):
        places = [guesses.index(label) + 1 for label in wanted if label in guesses]
        values.append(max([1 / place for place in places if place <= k], default=0))
    return np.mean(values)


def recall_at_k(relevant, predicted, k=10):
    pairs = zip(relevant, predicted, strict=True)
    return np.mean([sum(w in p[:k] for w in wanted) / min(k, len(wanted)) for wanted, p in pairs])


def hit_rate(relevant, predicted, k=10):
    pairs = zip(relevant, predicted, strict=True)
    return np.mean([any(w in p[:k] for w in wanted) for wanted, p in pairs])


def order_tau(true, predicted):
    """scipy's tau of each row, weighted by its pairs."""
    values, weights = [], []
    for labels, guesses in zip(true, predicted, strict=True):
        whole = [*guesses, *[label for label in labels[::-1] if label not in guesses]]
        values.append(stats.kendalltau(range(len(labels)), [whole.index(x) for x in labels])[0])
        weights.append(len(labels) * (len(labels) - 1))
    return np.average(values, weights=weights)


def levenshtein(truth, predicted):
    return np.mean([Levenshtein.distance(a, b) for a, b in zip(truth, predicted, strict=True)])


def normalised_levenshtein(truth, predicted):
    pairs = zip(truth, predicted, strict=True)
    return np.mean([Levenshtein.normalized_distance(a, b) for a, b in pairs])


def char_error_rate(truth, predicted):
    return levenshtein(truth, predicted) / np.mean([len(text) for text in truth])


def word_error_rate(truth, predicted):
    return char_error_rate(*([text.split() for text in side] for side in (truth, predicted)))


def indicators(truth, predicted):
    names = sorted(frozenset().union(*truth, *predicted))
    code = MultiLabelBinarizer(classes=names)
    return code.fit_transform(truth), code.fit_transform(predicted)


def set_f1_micro(truth, predicted):
    return sk.f1_score(*indicators(truth, predicted), average="micro")


def set_fbeta(truth, predicted, beta=2.0):
    options = {"average": "samples", "zero_division": 1, "beta": beta}
    return sk.fbeta_score(*indicators(truth, predicted), **options)


def set_jaccard(truth, predicted):
    return sk.jaccard_score(*indicators(truth, predicted), average="samples", zero_division=1)


def answer_f1(truth, predicted):
    tp = fp = fn = 0
    for right, found in zip(truth, predicted, strict=True):
        if not found:
            fn += 1 if right else 0
        elif found - right:
            fp += 1
        else:
            tp += 1
    precision, recall = (tp / (tp + other) if tp else 0 for other in (fp, fn))
    return 2 * precision * recall / (precision + recall) if tp else 0


def paint(runs):
    mask = np.zeros(SHAPE[0] * SHAPE[1], dtype=bool)
    for start, end in runs:
        mask[start:end] = True
    return mask


def pixels(truth, predicted):
    return (np.array([paint(runs) for runs in side]) for side in (truth, predicted))


def global_dice(truth, predicted):
    first, second = pixels(truth, predicted)
    return sk.f1_score(first.ravel(), second.ravel())


def mask_fbeta(truth, predicted, beta=0.5):
    rows = zip(*pixels(truth, predicted), strict=True)
    return np.mean(
        [sk.fbeta_score(a, b, beta=beta, zero_division=1) if (a | b).any() else 1 for a, b in rows]
    )


def mask_map(truth, predicted, thresholds=tuple(range(50, 100, 5))):
    """With fractions; `thresholds` in hundredths."""
    values = []
    for a, b in zip(*pixels(truth, predicted), strict=True):
        both, either = int((a & b).sum()), int((a | b).sum())
        iou = Fraction(both, either) if either else 1
        values += [iou > Fraction(t, 100) for t in thresholds]
    return np.mean(values)


def dice_hausdorff(truth, predicted, shape):
    values = []
    for a, b in zip(*pixels(truth, predicted), strict=True):
        if a.any() != b.any():
            values.append(0)
        elif not a.any():
            values.append(1)
        else:
            first, second = (np.argwhere(m.reshape(shape, order="F")) / shape for m in (a, b))
            far = max(directed_hausdorff(first, second)[0], directed_hausdorff(second, first)[0])
            values.append(0.4 * sk.f1_score(a, b) + 0.6 * (1 - far / math.hypot(1, 1)))
    return np.mean(values)


def class_iou(truth, predicted, group):
    first, second = pixels(truth, predicted)
    rows = [group == name for name in set(group)]
    return np.mean([sk.jaccard_score(first[r].ravel(), second[r].ravel()) for r in rows])


def shared_share(a, b):
    width = max(0, min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0]))
    height = max(0, min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1]))
    return width * height / (a[2] * a[3] + b[2] * b[3] - width * height)


def hits_of(true, guesses, least, again):
    """Match the boxes of a row; `again`: a taken box leaves its finder another choice."""
    free, hits = {tuple(box[1:]): True for box in sorted(map(tuple, true), key=lambda b: b[1:])}, 0
    for guess in sorted(map(tuple, guesses), key=lambda box: (-box[0], *box[1:])):
        choice = [t for t, unused in free.items() if unused or not again]
        best = max(choice, key=lambda t: shared_share(t, guess[1:]), default=None)
        if best is not None and shared_share(best, guess[1:]) >= least and free[best]:
            free[best], hits = False, hits + 1
    return hits


def points_of_curve(truth, predicted, least, again):
    """Recall and precision for each distinct confidence, matched anew."""
    total = sum(map(len, truth))
    for threshold in {box[0] for boxes in predicted for box in boxes}:
        chosen = [[box for box in boxes if box[0] >= threshold] for boxes in predicted]
        rows = zip(truth, chosen, strict=True)
        hits = sum(hits_of(true, boxes, least, again) for true, boxes in rows)
        yield hits / total, hits / sum(map(len, chosen))


HALF_TO_ONE = tuple(np.linspace(0.5, 0.95, 10))


def rows_of_classes(truth, predicted, group):
    for name in set(group):
        rows = np.flatnonzero(group == name)
        yield [truth[i] for i in rows], [predicted[i] for i in rows]


def coco_map(truth, predicted, group, thresholds=HALF_TO_ONE):
    values = []
    for sides in rows_of_classes(truth, predicted, group):
        for least in thresholds:
            points = list(points_of_curve(*sides, least, again=True))
            recalls = np.linspace(0, 1, 101)
            values += [max([p for r, p in points if r >= at], default=0) for at in recalls]
    return np.mean(values)


def voc_map(truth, predicted, group, iou=0.5):
    values = []
    for sides in rows_of_classes(truth, predicted, group):
        points = list(points_of_curve(*sides, iou, again=False))
        total = sum(map(len, sides[0]))
        levels = [
            max([p for r, p in points if r * total > i + 0.5], default=0) for i in range(total)
        ]
        values.append(np.mean(levels))
    return np.mean(values)


def point_f1(truth, predicted):
    tp = 0
    for true, guesses in zip(truth, predicted, strict=True):
        left = sorted((x, y, w, h) for _, x, y, w, h in guesses)
        for _, x, y, w, h in sorted(map(tuple, true), key=lambda box: box[1:]):
            inside = [
                g for g in left if x < g[0] + g[2] / 2 < x + w and y < g[1] + g[3] / 2 < y + h
            ]
            if inside:
                left.remove(inside[0])
                tp += 1
    return 2 * tp / (sum(map(len, truth)) + sum(map(len, predicted)))


MORE = {
    "angular_error": angular_error,
    "answer_f1": answer_f1,
    "bias_auc": bias_auc,
    "brier": sk.brier_score_loss,
    "brier_multiclass": brier_multiclass,
    "char_error_rate": char_error_rate,
    "class_iou": class_iou,
    "coco_map": coco_map,
    "crps": crps,
    "dice_hausdorff": dice_hausdorff,
    "error_rate": error_rate,
    "f1": f1,
    "fbeta": fbeta,
    "gini": gini,
    "global_dice": global_dice,
    "hamming": hamming,
    "haversine": haversine,
    "hit_rate": hit_rate,
    "kappa": kappa,
    "kendall": kendall,
    "laplace_log_likelihood": laplace_log_likelihood,
    "levenshtein": levenshtein,
    "lwlrap": lwlrap,
    "mape": sk.mean_absolute_percentage_error,
    "mase": mase,
    "mask_fbeta": mask_fbeta,
    "mask_map": mask_map,
    "masked_mae": sk.mean_absolute_error,
    "mcrmse": sk.root_mean_squared_error,
    "mcrmsle": sk.root_mean_squared_log_error,
    "mean_log_mae": mean_log_mae,
    "mean_spearman": mean_spearman,
    "mrr": mrr,
    "mse": sk.mean_squared_error,
    "normalised_levenshtein": normalised_levenshtein,
    "order_tau": order_tau,
    "pearson": pearson,
    "pf1": pf1,
    "pinball": pinball,
    "point_f1": point_f1,
    "recall_at_k": recall_at_k,
    "rmspe": rmspe,
    "roc_auc_ovr": roc_auc_ovr,
    "set_f1_micro": set_f1_micro,
    "set_fbeta": set_fbeta,
    "set_jaccard": set_jaccard,
    "tag_f1_macro": tag_f1_macro,
    "tag_f1_micro": tag_f1_micro,
    "tag_jaccard": tag_jaccard,
    "tag_map": tag_map,
    "top_k_accuracy": top_k_accuracy,
    "voc_map": voc_map,
    "wape": wape,
    "weighted_f1": weighted_f1,
    "weighted_log_loss": weighted_log_loss,
    "weighted_roc_auc": weighted_roc_auc,
    "word_error_rate": word_error_rate,
}

# parameters beside the default ones with which both implementations are compared
PARAMS = {
    "bias_auc": [{"power": 2.0}],
    "coco_map": [{"thresholds": [0.4]}, {"thresholds": [0.1, 0.99]}],
    "fbeta": [{"beta": 0.5}, {"beta": 1.0}],
    "hamming": [{"threshold": 0.9}],
    "hit_rate": [{"k": 1}, {"k": 2}],
    "map": [{"k": 1}, {"k": 2}, {"k": 12}],
    "mase": [{"scale": 3.5}],
    "mask_fbeta": [{"beta": 1.0}, {"beta": 3.0}],
    "mrr": [{"k": 1}, {"k": 2}],
    "ndcg": [{"k": 1}, {"k": 2}],
    "pinball": [{"quantile": 0.1}, {"quantile": 0.95}],
    "recall_at_k": [{"k": 1}, {"k": 2}],
    "set_fbeta": [{"beta": 0.5}, {"beta": 1.0}],
    "tag_f1_macro": [{"threshold": 0.2}],
    "tag_f1_micro": [{"threshold": 0.2}],
    "tag_jaccard": [{"threshold": 0.8}],
    "top_k_accuracy": [{"k": 1}],
    "voc_map": [{"iou": 0.3}, {"iou": 0.75}],
    "weighted_log_loss": [{"weights": [7, 1, 2], "positive": 2.0}],
    "weighted_roc_auc": [{"thresholds": [0, 0.3, 0.9, 1], "weights": [1, 5, 2]}],
}
