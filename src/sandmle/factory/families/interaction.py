"""Interaction: the class is the sign of one or two products of features, plus a linear part.

A linear model sees next to nothing, trees see some of it, and whoever adds the pairwise products of
the standardised features to a sparse linear model sees all of it.
"""

from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    FamilyOf,
    Names,
    Outcome,
    Sample,
    Solution,
    Split,
    Variable,
    binary,
    spell,
)
from sandmle.types import Record

# features, products, how much one more feature counts by itself, steepness of the logistic noise;
# by level
_LEVELS = (
    (5, 1, 0.8, 8.0), (6, 1, 0.7, 7.5), (7, 1, 0.6, 7.0), (7, 2, 0.0, 8.0), (8, 2, 0.0, 7.0),
)  # fmt: skip
_WEAK = 0.2  # features that do not matter have at most this weight


class Product(Record):
    """One term of the rule: `weight` times the product of two features."""

    first: int
    second: int
    weight: float


class InteractionConfig(Record):
    """The drawn parameters; `linear` has one weight for each feature."""

    products: tuple[Product, ...]
    linear: tuple[float, ...]
    steepness: float


@FAMILIES.register("interaction")
class Interaction(FamilyOf[InteractionConfig]):
    """See the module's text."""

    name: ClassVar[str] = "interaction"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    config_type = InteractionConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which features meet, how strongly, and how weak the linear part is."""
        n_features, n_products, alone, steepness = _LEVELS[level - 1]
        order = rng.permutation(n_features).tolist()
        signs = rng.choice([-1.0, 1.0], n_products)
        weights = (rng.uniform(0.8, 1.5, n_products) * signs).round(4).tolist()
        linear = rng.uniform(-_WEAK, _WEAK, n_features)
        if alone:
            linear[order[-1]] = alone * abs(weights[0]) * rng.choice([-1.0, 1.0])
        products = tuple(
            Product(first=order[2 * i], second=order[2 * i + 1], weight=weights[i])
            for i in range(n_products)
        )
        return cls(
            InteractionConfig(
                products=products, linear=tuple(linear.round(4).tolist()), steepness=steepness
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return as many continuous features as the linear part has weights."""
        used = {i for p in self.config.products for i in (p.first, p.second)}
        return tuple(
            Variable(
                name=f"feat_{i}",
                kind="number",
                abstract="continuous, symmetric, bell-shaped",
                relevant=i in used or abs(weight) > _WEAK,
            )
            for i, weight in enumerate(self.config.linear)
        )

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent normal features; the observed class has logistic noise."""
        z = rng.normal(size=(n, len(self.config.linear)))
        latent = np.zeros(n)  # summed term by term: no BLAS, so the same bits on every machine
        for product in self.config.products:
            latent += product.weight * z[:, product.first] * z[:, product.second]
        for i, weight in enumerate(self.config.linear):
            latent += weight * z[:, i]
        squares = [product.weight**2 for product in self.config.products]
        scale = np.sqrt(sum(squares) + sum(weight**2 for weight in self.config.linear))
        observed, clean = binary(rng, latent / scale, self.config.steepness)
        features = {v.name: z[:, i] for i, v in enumerate(self.variables())}
        return Sample(features, observed, clean)

    def rule(self) -> str:
        """Return the formula."""
        terms = [
            spell(p.weight, f"z(feat_{p.first}) * z(feat_{p.second})") for p in self.config.products
        ]
        terms += [spell(w, f"z(feat_{i})") for i, w in enumerate(self.config.linear)]
        return (
            f"class 1 iff {' '.join(terms)} > 0, z() being a feature standardised; "
            f"in train the class is drawn with probability logistic({self.config.steepness:g} * "
            "that sum in units of its standard deviation)"
        )

    def solution(self, names: Names) -> Solution:
        """Return pairwise products of the standardised features and a sparse linear model."""
        columns = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(columns=columns), "sparse")


_FEATURES = """\
columns = {columns}

def features(frame):
    z = ((frame[columns] - train[columns].mean()) / train[columns].std()).to_numpy()
    first, second = np.triu_indices(z.shape[1], 1)
    return np.hstack([z, z[:, first] * z[:, second]])
"""
