"""Metrics of sets of labels: `truth` and `predicted` have a set of str for each row, also empty."""

from collections.abc import Sequence, Set

from sandmle.errors import GradingError
from sandmle.metrics.kinds import SETS
from sandmle.metrics.registry import metric


@metric(
    "set_f1_micro",
    SETS,
    "max",
    0,
    1,
    formula=r"\frac{2\sum_i |A_i \cap B_i|}{\sum_i (|A_i| + |B_i|)}",
    degenerate="no label at all scores 0",
    title="micro-averaged F1 of sets of labels",
)
def set_f1_micro(truth: Sequence[Set[str]], predicted: Sequence[Set[str]]) -> float:
    """Return the F1 of the labels of all rows pooled; some row must have one."""
    require_labels(truth)
    pairs = list(zip(truth, predicted, strict=True))
    return 2 * sum(len(a & b) for a, b in pairs) / sum(len(a) + len(b) for a, b in pairs)


@metric(
    "set_fbeta",
    SETS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{(1+\beta^2)\,|A_i \cap B_i|}{|B_i| + \beta^2 |A_i|}",
    degenerate="a row counts 1 if both sets are empty, 0 if only one is",
    title="mean F-beta of sets of labels",
    source="by row, as for Planet (Kaggle 2017) and iMet (Kaggle 2019), with beta 2",
    beta=2.0,
)
def set_fbeta(truth: Sequence[Set[str]], predicted: Sequence[Set[str]], beta: float = 2.0) -> float:
    """Return the mean over rows of F-beta of true (A) and found labels (B); beta above 0."""
    total, square = 0.0, beta**2
    for wanted, found in zip(truth, predicted, strict=True):
        size = len(found) + square * len(wanted)
        total += (1 + square) * len(wanted & found) / size if size else 1.0
    return total / len(truth)


@metric(
    "set_jaccard",
    SETS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{|A_i \cap B_i|}{|A_i \cup B_i|}",
    degenerate="a row counts 1 if both sets are empty, 0 if only one is",
    title="mean Jaccard score of sets of labels",
)
def set_jaccard(truth: Sequence[Set[str]], predicted: Sequence[Set[str]]) -> float:
    """Return the mean over rows of the labels in both in units of those in either."""
    total = 0.0
    for wanted, found in zip(truth, predicted, strict=True):
        either = len(wanted | found)
        total += len(wanted & found) / either if either else 1.0
    return total / len(truth)


@metric(
    "answer_f1",
    SETS,
    "max",
    0,
    1,
    formula=r"\frac{2\,tp}{2\,tp + fp + fn}",
    degenerate="no answer at all scores 0",
    title="F1 of answers, of which several may be right or none",
    source="TensorFlow 2.0 question answering (Kaggle 2019)",
)
def answer_f1(truth: Sequence[Set[str]], predicted: Sequence[Set[str]]) -> float:
    """Return the F1 of answers, all rows pooled; some row must have a right one.

    The truth of a row is the set of its right answers, empty if there is none. A predicted answer
    is a true positive if it is right and a false one if not; to give none where there is one is a
    false negative. All answers that a row gives must be right.
    """
    require_labels(truth)
    pairs = list(zip(truth, predicted, strict=True))
    hits = sum(bool(found) and found <= right for right, found in pairs)
    given = sum(bool(found) for _, found in pairs)
    missed = sum(bool(right) and not found for right, found in pairs)
    return 2 * hits / (hits + given + missed)


def require_labels(truth: Sequence[Set[str]]) -> None:
    """Raise `GradingError` unless some hidden row has a label."""
    if not any(truth):
        raise GradingError("no hidden row has a label")
