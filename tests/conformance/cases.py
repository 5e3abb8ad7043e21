"""Random truth, valid predictions and perfect predictions for every kind of submission."""

from typing import NamedTuple

import numpy as np

from sandmle.metrics.registry import Metric
from sandmle.tasks.cells import encode_mask
from sandmle.types import SubmissionSchema

CLASSES = ("0", "1", "2")
SHAPE = (12, 9)
MOST_BOXES = 6


class Case(NamedTuple):
    """Hidden answers with a random and a perfect submission: columns of text, equally long."""

    schema: SubmissionSchema
    answers: dict[str, list[str]]
    random: dict[str, list[str]]
    perfect: dict[str, list[str]]


def csv_text(columns: dict[str, list[str]]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(row) for row in rows)]) + "\n"


def make_case(metric: Metric, seed: int, n: int) -> Case:
    """Draw a case in which nothing is degenerate: every class occurs, every query has a spread."""
    rng = np.random.default_rng(seed)
    ids = [f"r{i}" for i in rng.permutation(10 * n)[:n]]
    build = _SPECIAL.get(metric.name) or _BUILDERS[metric.kind.name]
    target, extra, guess, perfect = build(rng, n)
    classes = tuple(target) if metric.kind.several else CLASSES
    schema = metric.schema("id", "target", classes, n, shape=SHAPE, max_items=MOST_BOXES)
    return Case(
        schema=schema,
        answers={"id": ids, **target, **extra},
        random={"id": ids, **guess},
        perfect={"id": ids, **perfect},
    )


def _spread(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Labels 0 to k-1 in random order, each at least once."""
    return rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))


def _text(values: np.ndarray) -> list[str]:
    return [repr(float(value)) for value in values]


def _labels(rng: np.random.Generator, n: int):
    truth = [str(i) for i in _spread(rng, n, 3)]
    guess = [str(i) for i in rng.integers(0, 3, n)]
    return {"target": truth}, {}, {"target": guess}, {"target": truth}


def _numbers(rng: np.random.Generator, n: int):
    truth = np.round(rng.normal(size=n) * 10, 2) + np.arange(n) * 1e-3
    truth[truth == 0] = 0.5  # errors in units of the truth
    text = _text(truth)
    return {"target": text}, {}, {"target": _text(rng.normal(size=n))}, {"target": text}


def _grouped(rng: np.random.Generator, n: int):
    truth, _, guess, perfect = _numbers(rng, n)
    return truth, {"group": [f"g{i}" for i in _spread(rng, n, 3)]}, guess, perfect


def _part(rng: np.random.Generator, n: int):
    truth, _, guess, perfect = _numbers(rng, n)
    return truth, {"scored": ["1", "1", *map(str, rng.integers(0, 2, n - 2))]}, guess, perfect


def _table(rng: np.random.Generator, n: int):
    parts = {name: _numbers(rng, n) for name in ("speed", "heat")}
    truth, guess = ({name: part[k]["target"] for name, part in parts.items()} for k in (0, 2))
    return truth, {}, guess, truth


def _nonnegative_table(rng: np.random.Generator, n: int):
    parts = {name: _nonnegative(rng, n) for name in ("speed", "heat")}
    truth, guess = ({name: part[k]["target"] for name, part in parts.items()} for k in (0, 2))
    return truth, {}, guess, truth


def _uncertain(rng: np.random.Generator, n: int):
    value = rng.normal(2500, 600, n)
    truth = {"volume": _text(value), "spread": ["70"] * n}
    guess = {"volume": _text(value + rng.normal(0, 400, n)), "spread": _text(rng.random(n) * 300)}
    return truth, {}, guess, truth


def _angles(rng: np.random.Generator, n: int):
    def some() -> dict[str, list[str]]:
        return {"azimuth": _text(rng.random(n) * 6.2), "zenith": _text(rng.random(n) * 3.1)}

    truth = some()
    return truth, {}, some(), truth


def _places(rng: np.random.Generator, n: int):
    where = rng.uniform((-80, -170), (80, 170), (n, 2))
    guess = where + rng.normal(0, 0.01, (n, 2))
    names = ("latitude", "longitude")
    truth, found = (
        {name: _text(table[:, i]) for i, name in enumerate(names)} for table in (where, guess)
    )
    return truth, {"group": [f"track {i // 5}" for i in range(n)]}, found, truth


def _identities(rng: np.random.Generator, n: int):
    """Each identity has both answers within and without: so the first four rows see to it."""
    answer = ["1", "0", "1", "0", *map(str, rng.integers(0, 2, n - 4))]
    who = ["a", "a b", "b", "", *rng.choice(["", "", "a", "b", "b a"], n - 4)]
    order = rng.permutation(n)
    truth = {"target": [answer[i] for i in order]}
    guess = {"target": _text(rng.random(n).round(2))}
    return truth, {"identities": [str(who[i]) for i in order]}, guess, truth


def _nonnegative(rng: np.random.Generator, n: int):
    truth = _text(np.round(rng.gamma(2, 5, n), 2) + np.arange(n) * 1e-3)
    return {"target": truth}, {}, {"target": _text(rng.gamma(2, 5, n))}, {"target": truth}


def _binary(rng: np.random.Generator, n: int):
    truth = [str(i) for i in _spread(rng, n, 2)]
    return {"target": truth}, {}, {"target": _text(rng.random(n).round(2))}, {"target": truth}


def _probabilities(rng: np.random.Generator, n: int):
    names = ("cat", "dog", "owl")
    truth = np.eye(3)[_spread(rng, n, 3)]
    guess = rng.dirichlet(np.ones(3), n)
    spelled_truth, spelled_guess = (
        {name: _text(table[:, i]) for i, name in enumerate(names)} for table in (truth, guess)
    )
    return spelled_truth, {}, spelled_guess, spelled_truth


def _ranking(rng: np.random.Generator, n: int):
    size = int(rng.integers(2, 5))
    query = [f"q{i // size}" for i in range(n)]
    last = query[-1]
    if query.count(last) == 1:
        query[-1] = query[0]
    truth = np.zeros(n)
    for name in set(query):
        rows = [i for i, q in enumerate(query) if q == name]
        truth[rows] = rng.permutation(len(rows))
    text = [str(int(value)) for value in truth]
    guess = _text(rng.integers(0, 3, n).astype(float))
    return {"target": text}, {"query": query}, {"target": guess}, {"target": text}


def _two_labels(rng: np.random.Generator, n: int):
    """Answers of the second and the third class only: of the last one and another."""
    truth = [CLASSES[int(i) + 1] for i in _spread(rng, n, 2)]
    return {"target": truth}, {}, {"target": list(rng.choice(CLASSES, n))}, {"target": truth}


def _orders(rng: np.random.Generator, n: int):
    truth = [" ".join(rng.permutation(CLASSES)) for _ in range(n)]
    truth[:2] = "0 1 2", "2 1 0"
    guess = [" ".join(rng.permutation(CLASSES)[: int(rng.integers(1, 4))]) for _ in range(n)]
    return {"target": truth}, {}, {"target": guess}, {"target": truth}


def _sets(rng: np.random.Generator, n: int):
    names = np.array(["red", "Door", "Émile", "12:30"])

    def some() -> list[str]:
        return [" ".join(rng.permutation(names)[: int(rng.integers(0, 3))]) for _ in range(n)]

    truth = some()
    truth[:2] = "", "red"
    guess = [
        text if rng.random() < 0.3 else other for text, other in zip(truth, some(), strict=True)
    ]
    return {"target": truth}, {}, {"target": guess}, {"target": truth}


def _lists(rng: np.random.Generator, n: int):
    truth = [CLASSES[int(i)] for i in _spread(rng, n, 3)]
    truth[:2] = CLASSES[:2]
    truth[2:] = [label if rng.random() < 0.6 else "0 2" for label in truth[2:]]
    guess = [
        " ".join(np.array(CLASSES)[rng.permutation(3)][: int(rng.integers(1, 4))]) for _ in range(n)
    ]
    return {"target": truth}, {}, {"target": guess}, {"target": truth}


def _masks(rng: np.random.Generator, n: int):
    def rectangle() -> np.ndarray:
        top, left = rng.integers(0, SHAPE)
        mask = np.zeros(SHAPE, dtype=bool)
        mask[top : top + 5, left : left + 5] = True
        return mask

    truth = [rectangle() for _ in range(n)]
    truth[0][:] = False  # a picture without the thing, and one that is full of it
    truth[1][:] = True
    guess = [m ^ (rng.random(SHAPE) < rng.choice([0, 0.05, 0.5])) for m in rng.permutation(truth)]
    truth_text, guess_text = ([encode_mask(mask) for mask in masks] for masks in (truth, guess))
    return {"target": truth_text}, {}, {"target": guess_text}, {"target": truth_text}


def _boxes(rng: np.random.Generator, n: int):
    """Boxes of different rows do not overlap, those of a row often do; confidences tie."""

    def cell(boxes: np.ndarray) -> str:
        confidence = rng.integers(0, 5, len(boxes)) / 4
        rows = np.column_stack([confidence, boxes])
        return " ".join(repr(float(value)) for value in rows.ravel())

    truth, guess = [], []
    for i in range(n):
        k = int(rng.integers(0, 4)) if i else 2
        boxes = np.column_stack(
            [100 * i + rng.uniform(0, 20, k), rng.uniform(0, 20, k), rng.uniform(8, 20, (k, 2))]
        )
        more = np.repeat(boxes, rng.integers(0, 3, k), axis=0)
        moved = more + rng.uniform(-4, 4, more.shape)
        truth.append(cell(boxes))
        guess.append(cell(rng.permutation(moved)))
    return {"target": truth}, {}, {"target": guess}, {"target": truth}


def _class_masks(rng: np.random.Generator, n: int):
    truth, _, guess, perfect = _masks(rng, n)
    return truth, {"class": [f"c{i % 2}" for i in range(n)]}, guess, perfect


def _class_boxes(rng: np.random.Generator, n: int):
    """Two classes, each with a true box if two rows have one."""
    truth, _, guess, perfect = _boxes(rng, n)
    names = ["sign"] * n
    for place, row in enumerate(i for i, cell in enumerate(truth["target"]) if cell):
        names[row] = "sign" if place % 2 == 0 else "lamp"
    return truth, {"class": names}, guess, perfect


def _texts(rng: np.random.Generator, n: int):
    words = np.array(["red", "Door", "late", "Émile", "of"])
    truth = [" ".join([*rng.choice(words, 3), f"n{i}"]) if i else "" for i in range(n)]
    guess = [
        text if rng.random() < 0.3 else "  ".join(rng.permutation([*text.upper().split(), "red"]))
        for text in truth
    ]
    return {"target": truth}, {}, {"target": guess}, {"target": truth}


def _tags(rng: np.random.Generator, n: int):
    names = ("wet", "torn", "old")
    holds = rng.integers(0, 2, (n, 3))
    holds[:3] = np.eye(3)  # each tag alone once, so that it matters within a row which one holds
    truth = {name: [str(i) for i in holds[:, k]] for k, name in enumerate(names)}
    guess = {name: _text(rng.random(n).round(1)) for name in names}
    return truth, {}, guess, truth


def _shares(rng: np.random.Generator, n: int):
    names = ("sand", "silt", "clay")
    truth = rng.dirichlet(np.full(3, 0.5), n)
    truth[0] = (0, 1, 0)
    guess = rng.dirichlet(np.ones(3), n).round(3)
    spelled_truth, spelled_guess = (
        {name: _text(table[:, i]) for i, name in enumerate(names)} for table in (truth, guess)
    )
    return spelled_truth, {}, spelled_guess, spelled_truth


_BUILDERS = {
    "label": _labels,
    "number": _numbers,
    "nonnegative": _nonnegative,
    "probability": _binary,
    "score": _binary,
    "probabilities": _probabilities,
    "ranking": _ranking,
    "lists": _lists,
    "masks": _masks,
    "boxes": _boxes,
    "texts": _texts,
    "columns": _tags,
    "shares": _shares,
    "grouped": _grouped,
    "part": _part,
    "identities": _identities,
    "table": _table,
    "nonnegative_table": _nonnegative_table,
    "uncertain": _uncertain,
    "angles": _angles,
    "places": _places,
    "shaped_masks": _masks,
    "class_masks": _class_masks,
    "class_boxes": _class_boxes,
    "sets": _sets,
}
_SPECIAL = {"f1": _two_labels, "order_tau": _orders}
