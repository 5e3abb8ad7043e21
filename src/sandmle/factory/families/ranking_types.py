"""Ranking by types: each query has a type, which says what its rows are ordered by.

A number that is wanted in one type of query is unwanted in another, so that over all of them it
says little. Whoever compares rows within their query, and lets the type meet every number, sees a
plain linear order in each type.
"""

from typing import Any, ClassVar, Literal, Self

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

# types, columns whose weight turns with the type, that have one weight, that do not count, share of
# the variance that lies between queries, noise; by level
_LEVELS = (
    (2, 2, 2, 0, 0.2, 0.2),
    (2, 3, 1, 0, 0.3, 0.25),
    (3, 3, 1, 0, 0.35, 0.25),
    (3, 4, 0, 1, 0.4, 0.3),
    (4, 4, 0, 1, 0.45, 0.3),
)
_AMOUNT = 0.6  # spread of the logarithm of an amount
Kind = Literal["number", "amount"]


class RankingTypesConfig(Record):
    """The drawn parameters; `weights` has for each type those of the columns."""

    size: int
    between: float
    kinds: tuple[Kind, ...]
    weights: tuple[tuple[float, ...], ...]
    noise: float


@FAMILIES.register("ranking_types")
class RankingTypes(FamilyOf[RankingTypesConfig]):
    """See the module's text."""

    name: ClassVar[str] = "ranking_types"
    task_type: ClassVar[str] = "ranking"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("relevance",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["relevance"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "recalibrated",
        "spelling",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    config_type = RankingTypesConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the size of queries and the weights of each type; signs differ between types."""
        n_types, n_turning, n_steady, n_idle, between, noise = _LEVELS[level - 1]
        n = n_turning + n_steady + n_idle
        weights = np.zeros((n_types, n))
        for place, column in enumerate(rng.permutation(n)[: n_turning + n_steady]):
            signs = rng.permutation(np.arange(n_types) % 2) * 2.0 - 1.0
            if place >= n_turning:
                signs = np.full(n_types, signs[0])
            weights[:, column] = signs * rng.uniform(0.7, 1.3, n_types)
        kinds: list[Kind] = ["amount" if dice < 0.35 else "number" for dice in rng.random(n)]
        return cls(
            RankingTypesConfig(
                size=int(rng.integers(8, 13)),
                between=round(between + float(rng.uniform(-0.05, 0.05)), 3),
                kinds=tuple(kinds),
                weights=tuple(tuple(row) for row in weights.round(3).tolist()),
                noise=noise,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the query, its type, the numbers and amounts."""
        config = self.config
        columns = [
            Variable(
                name=f"feat_{i}",
                kind=kind,
                abstract="continuous, bell-shaped, in logarithms if an amount",
                relevant=weights[0] != 0,
            )
            for i, (kind, *weights) in enumerate(zip(config.kinds, *config.weights, strict=True), 2)
        ]
        return (
            Variable(name="feat_0", kind="query", abstract="query of the row"),
            Variable(
                name="feat_1",
                kind="category",
                abstract="type of the query, of similar frequency",
                size=len(config.weights),
            ),
            *columns,
        )

    def outcome(self) -> Outcome:
        """Return a relevance from 0 to 4."""
        return Outcome("relevance")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw whole queries one after another; noise comes before the grades."""
        config = self.config
        query = in_queries(n, config.size)
        n_queries = int(query.max()) + 1
        kind = rng.permutation(np.arange(n_queries) % len(config.weights))[query]
        features: dict[str, NDArray[Any]] = {"feat_0": query, "feat_1": kind}
        weights = np.array(config.weights)
        worth = np.zeros(n)
        for i, column in enumerate(config.kinds):
            middle = np.sqrt(config.between) * rng.normal(size=n_queries)[query]
            z = (middle + np.sqrt(1 - config.between) * rng.normal(size=n)).clip(-4.4, 4.4)
            worth += weights[kind, i] * z
            features[f"feat_{i + 2}"] = _AMOUNT * z if column == "amount" else z
        observed = graded_within(query, worth + config.noise * worth.std() * rng.normal(size=n))
        return Sample(features, observed, graded_within(query, worth))

    def rule(self) -> str:
        """Return the formula of each type."""
        terms = [
            f"z(feat_{i})" if kind == "number" else f"z(log feat_{i})"
            for i, kind in enumerate(self.config.kinds, 2)
        ]
        sums = "; ".join(
            " ".join(spell(w, term) for w, term in zip(weights, terms, strict=True) if w)
            + f" where it is {k}"
            for k, weights in enumerate(self.config.weights)
        )
        return (
            "rows with the same feat_0 are ordered by a sum that depends on the value (counted "
            f"from 0) of feat_1: {sums}; z() being a feature standardised; {GRADES}; in train the "
            f"sum has normal noise of {self.config.noise:g} of its spread"
        )

    def solution(self, names: Names) -> Solution:
        """Return the differences within a query crossed with its type, and a linear model."""
        numbers, amounts = (
            [names[v.name] for v in self.variables() if v.kind == kind]
            for kind in ("number", "amount")
        )
        facts = {"numbers": numbers, "amounts": amounts, **names}
        return Solution(_FEATURES.format(**facts), "linear", _BEFORE.format(**facts))


_BEFORE = """\
# a gap is best filled with the mean of its query
for frame in (train, test):
    for name in {numbers} + {amounts}:
        value = pd.to_numeric(frame[name], errors="coerce")
        frame[name] = value.fillna(value.groupby(frame["{feat_0}"]).transform("mean"))
"""

_FEATURES = """\
numbers, amounts = {numbers}, {amounts}
kinds = sorted(train["{feat_1}"].unique())

def features(frame):
    x = pd.concat([frame[numbers], np.log(frame[amounts].clip(lower=0.01))], axis=1)
    apart = (x - x.groupby(frame["{feat_0}"]).transform("mean")).to_numpy()
    of_kind = [(frame["{feat_1}"] == kind).to_numpy()[:, None] for kind in kinds]
    return np.hstack([apart, *(apart * mine for mine in of_kind)])
"""
