"""Soft votes: several people vote on each row; what moves them are products, turns and sizes.

The target are the shares of the votes for each class. No number moves votes by itself: one counts
times another, one by a kind, one by its distance from the middle. Whoever makes these terms and
fits how votes are cast, class against class, sees through the noise of a few voters.
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
from sandmle.types import Record

# classes, products, numbers that a kind turns, that count by size, that do not count, voters; by
# level
_LEVELS = (
    (3, 1, 1, 0, 1, 9), (3, 1, 1, 1, 0, 9), (4, 1, 1, 1, 0, 8), (4, 1, 2, 1, 0, 7),
    (5, 1, 2, 1, 0, 7),
)  # fmt: skip
_MEAN_SIZE = 0.798  # of a standard normal number


class SoftVotesConfig(Record):
    """The drawn parameters.

    Terms are products of two numbers, numbers times the sign of the row's kind, and sizes of
    numbers. `loads` has for each class the weight of every term, in this order.
    """

    products: tuple[tuple[int, int], ...]
    turned: tuple[int, ...]
    sizes: tuple[int, ...]
    idle: int
    signs: tuple[int, ...]
    loads: tuple[tuple[float, ...], ...]
    voters: int


@FAMILIES.register("soft_votes")
class SoftVotes(FamilyOf[SoftVotesConfig]):
    """See the module's text."""

    name: ClassVar[str] = "soft_votes"
    task_type: ClassVar[str] = "soft_labels"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("shares",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["shares"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "recalibrated",
        "spelling",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    config_type = SoftVotesConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which numbers make which terms, and what each term does for each class."""
        n_classes, n_products, n_turned, n_sizes, idle, voters = _LEVELS[level - 1]
        order = rng.permutation(2 * n_products + n_turned + n_sizes + idle).tolist()
        products = [(order.pop(), order.pop()) for _ in range(n_products)]
        turned = [order.pop() for _ in range(n_turned)]
        sizes = [order.pop() for _ in range(n_sizes)]
        # each term is for some classes and against others, and each class has its own mixture
        n_terms = n_products + n_turned + n_sizes
        ladder = np.linspace(-1.6, 1.6, n_classes)[:, None]
        loads = rng.permuted(np.repeat(ladder, n_terms, axis=1), axis=0)
        loads *= rng.uniform(0.8, 1.2, loads.shape)
        loads[:, n_products + n_turned :] *= 1.5  # a size varies less
        return cls(
            SoftVotesConfig(
                products=tuple(products),
                turned=tuple(turned),
                sizes=tuple(sizes),
                idle=idle,
                signs=tuple((rng.permutation(2) * 2 - 1).tolist()),
                loads=tuple(tuple(row) for row in loads.round(3).tolist()),
                voters=voters,
            )
        )

    @property
    def _n_numbers(self) -> int:
        config = self.config
        return 2 * len(config.products) + len(config.turned) + len(config.sizes) + config.idle

    def variables(self) -> tuple[Variable, ...]:
        """Return the numbers, then the kind."""
        config = self.config
        used = {i for pair in config.products for i in pair} | {*config.turned, *config.sizes}
        numbers = [
            Variable(
                name=f"feat_{i}",
                kind="number",
                abstract="continuous, symmetric, bell-shaped",
                relevant=i in used,
            )
            for i in range(self._n_numbers)
        ]
        kind = Variable(
            name=f"feat_{self._n_numbers}",
            kind="category",
            abstract="categorical, two values of equal frequency",
            size=len(config.signs),
        )
        return (*numbers, kind)

    def outcome(self) -> Outcome:
        """Return the shares of the classes."""
        return Outcome("shares", len(self.config.loads))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent normal numbers and kinds, and the votes of a few people on each row."""
        config = self.config
        z = rng.normal(size=(self._n_numbers, n)).clip(-4, 4)
        kind = rng.integers(0, len(config.signs), n)
        terms = [z[i] * z[k] for i, k in config.products]
        terms += [z[i] * np.array(config.signs)[kind] for i in config.turned]
        terms += [np.abs(z[i]) - _MEAN_SIZE for i in config.sizes]
        # summed term by term: no BLAS, so the same bits on every machine
        scores = np.zeros((n, len(config.loads)))
        for number, loads in enumerate(config.loads):
            for load, term in zip(loads, terms, strict=True):
                scores[:, number] += load * term
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        votes = rng.multinomial(config.voters, chances)
        features: dict[str, NDArray[Any]] = {f"feat_{i}": one for i, one in enumerate(z)}
        features[f"feat_{len(z)}"] = kind
        return Sample(features, votes / config.voters, chances)

    def rule(self) -> str:
        """Return the score of each class."""
        config, kind = self.config, f"feat_{self._n_numbers}"
        terms = [f"z(feat_{i}) * z(feat_{k})" for i, k in config.products]
        terms += [f"s * z(feat_{i})" for i in config.turned]
        terms += [f"(|z(feat_{i})| - {_MEAN_SIZE:g})" for i in config.sizes]
        scores = "; ".join(
            f"{' '.join(spell(w, t) for w, t in zip(loads, terms, strict=True))} for class {i}"
            for i, loads in enumerate(config.loads)
        )
        signs = " and ".join(f"{sign:+d}" for sign in config.signs)
        return (
            f"shares are proportional to exp(score); scores are {scores}; s is {signs} where {kind}"
            f" is 0 and 1, z() a feature standardised; in train the shares are those of "
            f"{config.voters} votes drawn with these chances"
        )

    def solution(self, names: Names) -> Solution:
        """Return the chances that a model of single votes gives, for a linear model."""
        *columns, kind = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(columns=columns, kind=kind), "linear")


_FEATURES = '''
columns = {columns}
kinds = sorted(train["{kind}"].unique())

def terms(frame):
    """Products and sizes of the numbers, and the numbers by kind."""
    z = ((frame[columns] - train[columns].mean()) / train[columns].std()).to_numpy()
    first, second = np.triu_indices(z.shape[1], 1)
    by_kind = [z * (frame["{kind}"] == kind).to_numpy()[:, None] for kind in kinds]
    return np.hstack([z, np.abs(z), z[:, first] * z[:, second], *by_kind])

def fitted(x, shares, strength):
    """A model of single votes: every row stands once for each class, with its share as weight."""
    n, k = shares.shape
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))
    weight = shares.T.ravel() + 1e-6  # every class must be there
    return model.fit(np.tile(x, (k, 1)), np.repeat(np.arange(k), n),
                     logisticregression__sample_weight=weight)

# how strongly to believe single rows, by cross-validation
x, shares, fold = terms(train), train[TARGET].to_numpy(), np.arange(len(train)) % 4
losses = {{}}
for strength in (0.03, 0.1, 0.3, 1, 3):
    losses[strength] = 0
    for k in range(4):
        model = fitted(x[fold != k], shares[fold != k], strength)
        losses[strength] -= (shares[fold == k] * model.predict_log_proba(x[fold == k])).sum()
votes = fitted(x, shares, min(losses, key=losses.get))

def features(frame):
    return votes.predict_proba(terms(frame))
'''
