"""Ranking by offsets: what counts is how far a number lies from the mean of its own query.

Queries differ a lot and none is on both sides, so the raw numbers say little. Whoever subtracts the
mean of the query, and looks at sizes and products of the differences, can order its rows.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    FamilyOf,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    Variable,
    spell,
)
from sandmle.factory.modalities.tabular.queries import GRADES, graded_within, in_queries
from sandmle.types import Record

# numbers that count by their difference, by its size, in a product with another, not at all; share
# of the variance that lies between queries, noise; by level
_LEVELS = (
    (3, 0, 0, 1, 0.6, 0.2),
    (2, 1, 0, 1, 0.65, 0.25),
    (2, 1, 0, 2, 0.72, 0.3),
    (2, 1, 2, 0, 0.78, 0.3),
    (2, 2, 2, 0, 0.82, 0.35),
)


class RankingOffsetsConfig(Record):
    """The drawn parameters; `signed` and `distance` have one weight for each number.

    `pair` are the numbers whose product counts by `product`, if that is not 0.
    """

    size: int
    between: float
    signed: tuple[float, ...]
    distance: tuple[float, ...]
    pair: tuple[int, int]
    product: float
    noise: float


@FAMILIES.register("ranking_offsets")
class RankingOffsets(FamilyOf[RankingOffsetsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "ranking_offsets"
    task_type: ClassVar[str] = "ranking"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("relevance",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["relevance"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "recalibrated",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    config_type = RankingOffsetsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the size of queries, how much they differ, and which numbers count in which way."""
        n_signed, n_distances, n_paired, n_idle, between, noise = _LEVELS[level - 1]
        n = n_signed + n_distances + n_paired + n_idle
        order = rng.permutation(n)
        drawn = rng.uniform(0.8, 1.3, n) * rng.choice([-1.0, 1.0], n)
        weights = np.zeros((2, n))
        signed, distance = np.split(order[: n_signed + n_distances], [n_signed])
        weights[0, signed] = drawn[signed]
        # the size of a difference varies less than the difference itself
        weights[1, distance] = 1.6 * drawn[distance]
        return cls(
            RankingOffsetsConfig(
                size=int(rng.integers(8, 13)),
                between=round(between + float(rng.uniform(-0.04, 0.04)), 3),
                signed=tuple(weights[0].round(3).tolist()),
                distance=tuple(weights[1].round(3).tolist()),
                pair=(int(order[-2]), int(order[-1])),
                product=round(1.1 * float(drawn[0]), 3) if n_paired else 0.0,
                noise=noise,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the query and the numbers."""
        config = self.config
        paired = config.pair if config.product else ()
        numbers = [
            Variable(
                name=f"feat_{i + 1}",
                kind="number",
                abstract="continuous, bell-shaped, alike within a query",
                relevant=any(weights) or i in paired,
            )
            for i, weights in enumerate(zip(config.signed, config.distance, strict=True))
        ]
        return (Variable(name="feat_0", kind="query", abstract="query of the row"), *numbers)

    def outcome(self) -> Outcome:
        """Return a relevance from 0 to 4."""
        return Outcome("relevance")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw whole queries one after another; noise comes before the grades."""
        config = self.config
        query = in_queries(n, config.size)
        middles = rng.normal(size=(len(config.signed), query.max() + 1))
        own = rng.normal(size=(len(config.signed), n))
        x = np.sqrt(config.between) * middles[:, query] + np.sqrt(1 - config.between) * own
        worth = self._worth(query, x)
        observed = graded_within(query, worth + config.noise * worth.std() * rng.normal(size=n))
        features: dict[str, NDArray[Any]] = {"feat_0": query}
        features |= {f"feat_{i}": column for i, column in enumerate(x, 1)}
        return Sample(features, observed, graded_within(query, worth))

    def _worth(self, query: NDArray[np.int64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what rows are ordered by, summed term by term."""
        config, worth = self.config, np.zeros(len(query))
        # differences in units of their own spread
        apart = [
            (column - (np.bincount(query, column) / np.bincount(query))[query])
            / np.sqrt(1 - config.between)
            for column in x
        ]
        for one, signed, distance in zip(apart, config.signed, config.distance, strict=True):
            worth += signed * one + distance * np.abs(one)
        first, second = config.pair
        worth += config.product * apart[first] * apart[second]
        return worth

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [spell(w, f"d(feat_{i})") for i, w in enumerate(config.signed, 1) if w]
        terms += [spell(w, f"|d(feat_{i})|") for i, w in enumerate(config.distance, 1) if w]
        if config.product:
            first, second = (f"d(feat_{i + 1})" for i in config.pair)
            terms.append(spell(config.product, f"{first} * {second}"))
        spread = np.sqrt(1 - config.between)
        return (
            f"rows with the same feat_0 are ordered by {' '.join(terms)}, d() being a feature "
            f"standardised minus its mean over these rows, divided by {spread:.4g}; "
            f"{GRADES}; in train the sum has normal noise of {config.noise:g} of its spread"
        )

    def solution(self, names: Names) -> Solution:
        """Return the differences, their sizes and products, and a sparse model."""
        columns = [names[v.name] for v in self.variables() if v.kind == "number"]
        facts = {"columns": columns, "query": names["feat_0"]}
        return Solution(_FEATURES.format(**facts), "sparse", _BEFORE.format(**facts))


_BEFORE = """\
# a gap is best filled with the mean of its query
for frame in (train, test):
    for name in {columns}:
        value = pd.to_numeric(frame[name], errors="coerce")
        frame[name] = value.fillna(value.groupby(frame["{query}"]).transform("mean"))
"""

_FEATURES = """\
columns = {columns}

def features(frame):
    apart = frame[columns] - frame.groupby("{query}")[columns].transform("mean")
    apart = apart.to_numpy()
    first, second = np.triu_indices(len(columns), 1)
    return np.hstack([apart, np.abs(apart), apart[:, first] * apart[:, second]])
"""
