"""Metrics of texts: `truth` and `predicted` are equally many str."""

from collections.abc import Sequence

from sandmle.metrics.kinds import TEXTS
from sandmle.metrics.registry import metric


@metric(
    "word_jaccard",
    TEXTS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{|A_i \cap B_i|}{|A_i \cup B_i|}",
    degenerate="a row counts 1 if neither text has a word, 0 if only one has",
    title="word-level Jaccard score",
)
def word_jaccard(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the mean share of common words; words are in lower case, split at white space."""
    total = 0.0
    for text, guess in zip(truth, predicted, strict=True):
        ours, theirs = set(text.lower().split()), set(guess.lower().split())
        total += len(ours & theirs) / len(ours | theirs) if ours or theirs else 1.0
    return total / len(truth)


@metric(
    "exact_match",
    TEXTS,
    "max",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i [\hat y_i = y_i]",
    degenerate="a constant prediction scores the share of that text",
    title="exact match",
)
def exact_match(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the share of texts that are the same to the letter."""
    return sum(a == b for a, b in zip(truth, predicted, strict=True)) / len(truth)
