"""Units and outliers: the target is a product of powers of amounts, its noise has long tails.

Amounts come in mixed units and with impossible entries. Whoever repairs those and works in
logarithms has a linear problem; a model of the raw values has a few huge cells to look at.
"""

from typing import ClassVar, Self

import numpy as np

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

# amounts in the rule, others, what amounts have in common, noise; by level
_LEVELS = (
    (3, 0, 0.0, 0.12), (3, 1, 0.1, 0.14), (3, 2, 0.25, 0.16), (4, 2, 0.4, 0.18), (4, 3, 0.5, 0.2),
)  # fmt: skip


class UnitsOutliersConfig(Record):
    """The drawn parameters; each amount has a spread of its logarithm and an exponent.

    `common` is the correlation of any two logarithms. The noise is drawn from Student's t with
    `freedom` degrees of freedom, `noise` is its scale in spreads of the target's logarithm.
    """

    spreads: tuple[float, ...]
    exponents: tuple[float, ...]
    common: float
    noise: float
    freedom: int


@FAMILIES.register("units_outliers")
class UnitsOutliers(FamilyOf[UnitsOutliersConfig]):
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
        """Draw spreads, and exponents of both signs, such that amounts count about the same."""
        n_used, n_others, common, noise = _LEVELS[level - 1]
        n = n_used + n_others
        spreads = rng.uniform(0.45, 0.85, n).round(3)
        used = rng.permutation(n)[:n_used]
        weights = rng.uniform(0.7, 1.3, n_used) * rng.choice([-1.0, 1.0])
        weights[1::2] *= -1
        # for a sum of spread 1
        weights /= np.sqrt((1 - common) * np.sum(weights**2) + common * np.sum(weights) ** 2)
        exponents = np.zeros(n)
        exponents[used] = (weights / spreads[used]).round(3)
        return cls(
            UnitsOutliersConfig(
                spreads=tuple(spreads.tolist()),
                exponents=tuple(exponents.tolist()),
                common=common,
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
        """Draw log-normal amounts; the noise of the target's logarithm is Student's."""
        config = self.config
        logs = np.sqrt(1 - config.common) * rng.normal(size=(n, len(config.spreads)))
        logs = (logs + np.sqrt(config.common) * rng.normal(size=(n, 1))) * np.array(config.spreads)
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
