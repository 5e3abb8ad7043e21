"""Metrics of texts: `truth` and `predicted` are equally many str."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sandmle.errors import GradingError
from sandmle.metrics.kinds import TEXTS
from sandmle.metrics.registry import metric

CELLS = 1 << 17  # of the table that edit distances fill at a time: what a cache holds


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


@metric(
    "levenshtein",
    TEXTS,
    "min",
    0,
    float("inf"),
    formula=r"\frac{1}{n}\sum_i d(\hat y_i, y_i)",
    degenerate="an empty text costs the length of the true one",
    title="mean Levenshtein distance",
)
def levenshtein(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the mean number of characters to insert, delete or replace."""
    return float(np.mean(edit_distances(truth, predicted)))


@metric(
    "normalised_levenshtein",
    TEXTS,
    "min",
    0,
    1,
    formula=r"\frac{1}{n}\sum_i \frac{d(\hat y_i, y_i)}{\max(|\hat y_i|, |y_i|)}",
    degenerate="a row counts 0 if both texts are empty, 1 if only one is",
    title="mean normalised Levenshtein distance",
)
def normalised_levenshtein(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the mean edit distance in units of the length of the longer text."""
    longest = [max(len(a), len(b), 1) for a, b in zip(truth, predicted, strict=True)]
    return float(np.mean(edit_distances(truth, predicted) / np.array(longest)))


@metric(
    "char_error_rate",
    TEXTS,
    "min",
    0,
    float("inf"),
    formula=r"\frac{\sum_i d(\hat y_i, y_i)}{\sum_i |y_i|}",
    degenerate="empty texts everywhere score 1",
    title="character error rate",
)
def char_error_rate(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the sum of all edit distances in units of the length of all true texts."""
    return error_rate_of(truth, predicted)


@metric(
    "word_error_rate",
    TEXTS,
    "min",
    0,
    float("inf"),
    formula=r"\frac{\sum_i d(\mathrm{words}(\hat y_i), \mathrm{words}(y_i))}"
    r"{\sum_i |\mathrm{words}(y_i)|}",
    degenerate="empty texts everywhere score 1",
    title="word error rate",
    source="as in multi-modal gesture recognition (Kaggle 2013), whose words are numbers",
)
def word_error_rate(truth: Sequence[str], predicted: Sequence[str]) -> float:
    """Return the sum of all edit distances of words, which white space separates, per true word."""
    return error_rate_of([text.split() for text in truth], [text.split() for text in predicted])


def error_rate_of(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return the edit distances of all rows per true symbol, of which there must be one."""
    symbols = sum(map(len, truth))
    if not symbols:
        raise GradingError("an error rate is undefined: all hidden answers are empty")
    return float(np.sum(edit_distances(truth, predicted))) / symbols


def edit_distances(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> NDArray[np.int64]:
    """Return the Levenshtein distance of each row (n,), of sequences of symbols.

    Rows of similar length are worked on together: a row of the table of Wagner and Fischer (1974)
    for all of them at once, with the cheapest run of insertions as a running minimum.
    """
    result = np.zeros(len(truth), dtype=np.int64)
    number = {symbol: i for i, symbol in enumerate(set().union(*truth, *predicted))}
    pairs: list[tuple[int, list[int], list[int]]] = []
    for i, (text, guess) in enumerate(zip(truth, predicted, strict=True)):
        if text != guess:
            pairs.append((i, [number[s] for s in text], [number[s] for s in guess]))
    pairs.sort(key=lambda pair: (len(pair[2]), len(pair[1])))
    while pairs:
        # the last pair has the longest guess
        many = max(1, CELLS // (len(pairs[-1][2]) + 1))
        chunk, pairs = pairs[-many:], pairs[:-many]
        rows, texts, guesses = zip(*chunk, strict=True)
        result[list(rows)] = chunk_distances(texts, guesses)
    return result


def chunk_distances(
    texts: Sequence[Sequence[int]], guesses: Sequence[Sequence[int]]
) -> NDArray[np.int32]:
    """Return the edit distances (n,) of sequences of numbers from 0."""
    n = len(texts)
    height, width = np.array([len(t) for t in texts]), np.array([len(g) for g in guesses])
    table = np.full((n, int(height.max())), -1, dtype=np.int32)
    other = np.full((n, int(width.max())), -2, dtype=np.int32)
    for i, (text, guess) in enumerate(zip(texts, guesses, strict=True)):
        table[i, : len(text)], other[i, : len(guess)] = text, guess
    # distances of the text so far from the first 0, 1, 2, ... of a guess, less 0, 1, 2, ...: so an
    # insertion costs nothing more, and the running minimum is over all of them
    line = np.zeros((n, other.shape[1] + 1), dtype=np.int32)
    result: NDArray[np.int32] = width.astype(np.int32)  # rows whose text is empty are done
    for j in range(table.shape[1]):
        change = line[:, :-1] - (other == table[:, j : j + 1])
        line += 1
        np.minimum(line[:, 1:], change, out=line[:, 1:])
        np.minimum.accumulate(line, axis=1, out=line)
        done = np.flatnonzero(height == j + 1)
        result[done] = line[done, width[done]] + width[done]
    return result
