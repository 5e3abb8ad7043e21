"""Units and outliers: the target is a product of powers of several amounts, its noise has long tails.

Amounts come in mixed units and with impossible entries. Whoever repairs those and works in
logarithms has a linear problem; a model of the raw values has a few huge cells to look at.
"""

from typing import ClassVar, Self

import numpy as np

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    Names,
    Outcome,
    OutcomeKind,
    Sample,
    Solution,
    Split,
    TableFamily,
    Variable,
    spell,
)
from sandmle.types import Record

# amounts in the rule, others, size of the noise; by level
_LEVELS = ((3, 0, 0.12), (3, 1, 0.15), (4, 0, 0.18), (4, 1, 0.21), (5, 1, 0.24))
_EVEN = (0.75, 1.25)  # how much more one amount may count than another


class UnitsOutliersConfig(Record):
    """The drawn parameters; each amount has a spread of its logarithm and an exponent.

    `freedom` is that of Student's t, from which the noise is drawn, `noise` its scale; both in
    spreads of the target's logarithm.
    """

    spreads: tuple[float, ...]
    exponents: tuple[float, ...]
    noise: float
    freedom: int


@FAMILIES.register("units_outliers")
class UnitsOutliers(TableFamily[UnitsOutliersConfig]):
    """See the module's text."""

    name: ClassVar[str] = "units_outliers"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("amount",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["amount"]
    mutations: ClassVar[tuple[str, ...]] = (
        "unit_mixup", "sentinel", "decimal_comma", "unit_text", "double_entry", "biased_recorder",
    )  # fmt: skip
    forced: ClassVar[tuple[str, ...]] = ("unit_mixup", "sentinel")
    n_train: ClassVar[tuple[int, int]] = (60, 200)
    config_type = UnitsOutliersConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw spreads, and exponents such that every amount in the rule counts about as much."""
        n_used, n_others, noise = _LEVELS[level - 1]
        n = n_used + n_others
        spreads = rng.uniform(0.45, 0.85, n).round(3)
        weights = rng.uniform(*_EVEN, n_used)
        weights *= rng.choice([-1.0, 1.0], n_used) / np.sqrt(np.sum(weights**2))
        used = rng.permutation(n)[:n_used]
        exponents = np.zeros(n)
        exponents[used] = (weights / spreads[used]).round(3)
        return cls(
            UnitsOutliersConfig(
                spreads=tuple(spreads.tolist()),
                exponents=tuple(exponents.tolist()),
                noise=noise,
                freedom=int(rng.integers(3, 6)),
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the amounts; those without an exponent are not in the rule."""
        return tuple(
            Variable(
                name=f"feat_{i}",
                kind="amount",
                abstract="positive, skewed, over several orders of magnitude",
                relevant=exponent != 0,
            )
            for i, exponent in enumerate(self.config.exponents)
        )

    def outcome(self) -> Outcome:
        """Return a positive quantity."""
        return Outcome("amount")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent log-normal amounts; the noise of the target's logarithm is Student's."""
        config = self.config
        logs = rng.normal(size=(n, len(config.spreads))) * np.array(config.spreads)
        clean = np.zeros(n)  # summed term by term: no BLAS, so the same bits on every machine
        for i, exponent in enumerate(config.exponents):
            clean += exponent * logs[:, i]
        observed = clean + config.noise * rng.standard_t(config.freedom, size=n)
        features = {v.name: logs[:, i] for i, v in enumerate(self.variables())}
        return Sample(features, observed, clean)

    def rule(self) -> str:
        """Return the formula."""
        terms = [spell(b, f"l(feat_{i})") for i, b in enumerate(self.config.exponents) if b]
        return (
            f"l(target) / s = {' '.join(terms)}, l() being the natural logarithm of a value in "
            "units of its typical one, s the spread of the target's logarithm; in train "
            f"{self.config.noise:g} times a number from Student's t with {self.config.freedom} "
            "degrees of freedom is added to the sum"
        )

    def solution(self, names: Names) -> Solution:
        """Return logarithms and a linear model."""
        columns = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(columns=columns), "linear")


_FEATURES = """\
columns = {columns}
least = train[columns].where(train[columns] > 0).min()

def features(frame):
    return np.log(frame[columns].clip(lower=least, axis=1)).to_numpy()
"""
