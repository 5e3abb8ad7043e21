"""Interaction: the class is the sign of one or two products of features, plus a weak linear part.

A linear model sees next to nothing, trees see some of it, and whoever adds the pairwise products of
the standardised features to a sparse linear model sees all of it.
"""

from typing import Any, ClassVar, Self

import numpy as np

from sandmle.factory.family import FAMILIES, Sample, Script, Split, Target
from sandmle.factory.ladder import generic_rungs, script
from sandmle.types import Feature, Mutation, Record, TaskDNA

# features, products, steepness of the logistic noise; by level
_LEVELS = ((5, 1, 6.0), (6, 1, 5.0), (7, 1, 4.0), (7, 2, 6.0), (8, 2, 5.0))


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
class Interaction:
    """See the module's text."""

    name: ClassVar[str] = "interaction"
    modality: ClassVar[str] = "tabular"
    task_type: ClassVar[str] = "classification"
    metrics: ClassVar[tuple[str, ...]] = ("roc_auc", "accuracy", "mcc")
    levels: ClassVar[int] = len(_LEVELS)

    def __init__(self, config: InteractionConfig) -> None:
        self.config = config

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which features meet, how strongly, and how weak the linear part is."""
        n_features, n_products, steepness = _LEVELS[level - 1]
        order = rng.permutation(n_features).tolist()
        signs = rng.choice([-1.0, 1.0], n_products)
        weights = (rng.uniform(0.8, 1.5, n_products) * signs).round(4).tolist()
        linear = rng.normal(0, 0.15, n_features).round(4).tolist()
        products = tuple(
            Product(first=order[2 * i], second=order[2 * i + 1], weight=weights[i])
            for i in range(n_products)
        )
        return cls(InteractionConfig(products=products, linear=tuple(linear), steepness=steepness))

    @classmethod
    def load(cls, parameters: dict[str, Any]) -> Self:
        """Return the member with these parameters."""
        return cls(InteractionConfig.model_validate(parameters))

    @classmethod
    def supports(cls, dna: TaskDNA) -> bool:
        """Return whether the task is a binary classification of a table."""
        binary = dna.target_info.cardinality == 2
        return (dna.modality, dna.task_type) == (cls.modality, cls.task_type) and binary

    def features(self) -> tuple[Feature, ...]:
        """Return as many continuous features as the linear part has weights."""
        abstract = "continuous, symmetric, bell-shaped"
        return tuple(
            Feature(name=f"feat_{i}", abstract=abstract) for i in range(len(self.config.linear))
        )

    def mutations(self) -> tuple[Mutation, ...]:
        """Return the label noise of the training rows."""
        return (
            Mutation(
                name="label_noise",
                parameters={"steepness": self.config.steepness},
                recovery="a regularised model with the right features averages it away; "
                "hidden labels are free of it",
            ),
        )

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent normal features; the observed class has logistic noise."""
        z = rng.normal(size=(n, len(self.config.linear))).round(4)
        latent = np.zeros(n)  # summed term by term: no BLAS, so the same bits on every machine
        for product in self.config.products:
            latent += product.weight * z[:, product.first] * z[:, product.second]
        for i, weight in enumerate(self.config.linear):
            latent += weight * z[:, i]
        squares = [product.weight**2 for product in self.config.products]
        scale = np.sqrt(sum(squares) + sum(weight**2 for weight in self.config.linear))
        chance = 1 / (1 + np.exp(-self.config.steepness * latent / scale))
        features = {feature.name: z[:, i] for i, feature in enumerate(self.features())}
        observed = (rng.random(n) < chance).astype(np.int64)
        return Sample(features, observed, (latent > 0).astype(np.int64))

    def rule(self) -> str:
        """Return the formula."""
        products = [
            f"{p.weight:+.4f} * z(feat_{p.first}) * z(feat_{p.second})"
            for p in self.config.products
        ]
        linear = [f"{w:+.4f} * z(feat_{i})" for i, w in enumerate(self.config.linear)]
        return (
            f"class 1 iff {' '.join(products + linear)} > 0, z() being a feature standardised; "
            f"in train the class is drawn with probability logistic({self.config.steepness:g} * "
            "that sum in units of its standard deviation)"
        )

    def solutions(self, target: Target) -> list[Script]:
        """Return the generic rungs and the reference: products and a sparse linear model."""
        reference = script(target, _REFERENCE_IMPORTS, _REFERENCE)
        return [*generic_rungs(target), Script(90, "reference", "reference", reference)]


_REFERENCE_IMPORTS = """\
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler"""
_REFERENCE = """
pipeline = make_pipeline(
    StandardScaler(),
    PolynomialFeatures(2, interaction_only=True, include_bias=False),
    LogisticRegression(l1_ratio=1.0, solver="liblinear", max_iter=1000, random_state=0),
)
grid = {"logisticregression__C": [0.05, 0.1, 0.2, 0.5, 1.0]}
clf = GridSearchCV(pipeline, grid, cv=4, scoring="neg_log_loss").fit(X, y)
"""
