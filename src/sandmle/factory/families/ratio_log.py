"""Ratio: the class depends on the logarithm of a ratio of amounts, and turns back in its core.

Far below the usual ratio it is one class, far above the other, and in between the other way round.
The amounts are log-normal: whoever takes logarithms and finds which amounts make up the ratio has
one number that says it all.
"""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.family import (
    FAMILIES,
    METRICS_OF,
    Names,
    Outcome,
    Sample,
    Solution,
    Split,
    TableFamily,
    Variable,
    binary,
    cuts_of,
)
from sandmle.types import Record

# amounts, those in the ratio, share of the rows in the core, steepness of the logistic noise; by level
_LEVELS = ((4, 3, 0.3, 20.0), (5, 3, 0.36, 18.0), (5, 3, 0.44, 16.0), (6, 3, 0.5, 14.0), (6, 4, 0.5, 14.0))


class RatioLogConfig(Record):
    """The drawn parameters.

    `powers` and `spreads` of the amounts: a power of 0 is that of one which is not in the ratio.
    The class changes at each of the `cuts` of the logarithm, below the first it is `lowest`.
    """

    powers: tuple[int, ...]
    spreads: tuple[float, ...]
    cuts: tuple[float, ...]
    lowest: int
    steepness: float


@FAMILIES.register("ratio_log")
class RatioLog(TableFamily[RatioLogConfig]):
    """See the module's text."""

    name: ClassVar[str] = "ratio_log"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "decimal_comma", "unit_text", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    config_type = RatioLogConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what is divided by what, and where the class changes."""
        n_amounts, n_used, core, steepness = _LEVELS[level - 1]
        powers = np.zeros(n_amounts, dtype=int)
        # one or two below the line, the others above
        powers[rng.permutation(n_amounts)[:n_used]] = [-1, 1, *rng.choice([-1, 1], n_used - 2)]
        spreads = rng.uniform(0.5, 0.75, n_amounts).round(3)
        low = (1 - core) / 2 + rng.uniform(-0.05, 0.05)
        inside = low + core * rng.uniform(0.44, 0.56)
        u = np.zeros(4000)
        for power, spread in zip(powers.tolist(), spreads.tolist(), strict=True):
            u += power * spread * rng.normal(size=4000)
        config = RatioLogConfig(
            powers=tuple(powers.tolist()),
            spreads=tuple(spreads.tolist()),
            cuts=cuts_of(u, (low, inside, low + core)),
            lowest=int(rng.integers(2)),
            steepness=steepness,
        )
        return cls(config)

    def variables(self) -> tuple[Variable, ...]:
        """Return the amounts."""
        return tuple(
            Variable(
                name=f"feat_{i}",
                kind="amount",
                abstract="continuous, positive, log-normal",
                relevant=power != 0,
            )
            for i, power in enumerate(self.config.powers)
        )

    def outcome(self) -> Outcome:
        """Return two classes, nearly balanced."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent amounts; near a cut the observed class has logistic noise."""
        config = self.config
        logs = (rng.normal(size=(n, len(config.powers))) * config.spreads).clip(-3, 3)
        u = np.zeros(n)
        for i, power in enumerate(config.powers):
            u += power * logs[:, i]
        observed, clean = binary(rng, self._score(u), config.steepness)
        return Sample({f"feat_{i}": logs[:, i] for i in range(logs.shape[1])}, observed, clean)

    @property
    def _spread(self) -> float:
        """Return the standard deviation of the logarithm of the ratio."""
        pairs = zip(self.config.powers, self.config.spreads, strict=True)
        return float(np.sqrt(sum((power * spread) ** 2 for power, spread in pairs)))

    def _score(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance from the nearest cut, positive where the class is 1."""
        cuts = np.array(self.config.cuts)
        distance = np.abs(u[:, None] - cuts).min(axis=1) / self._spread
        return np.where((np.digitize(u, cuts) + self.config.lowest) % 2 == 1, distance, -distance)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = " ".join(f"{p:+d} * l(feat_{i})" for i, p in enumerate(config.powers) if p)
        low, middle, high = config.cuts
        return (
            f"u = {terms} with l(x) = ln(x / typical x); the class is {config.lowest} for u < {low:g}, "
            f"{1 - config.lowest} up to {middle:g}, {config.lowest} up to {high:g}, "
            f"{1 - config.lowest} above; in train it is drawn with probability logistic("
            f"{config.steepness:g} * d), d being the distance of u from the nearest of these three "
            f"limits in units of {self._spread:.4g}"
        )

    def solution(self, names: Names) -> Solution:
        """Return the log-ratio, out of all, that explains the class best, as harmonics of its rank."""
        columns = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(columns=columns), "linear")


_FEATURES = """\
import itertools

columns = {columns}

def logs(frame):
    return np.log(frame[columns].clip(lower=1e-3)).to_numpy()

def waves(ratio, among):
    rank = np.searchsorted(np.sort(among), ratio) / len(among)
    return np.cos(np.pi * rank[:, None] * np.arange(9))

def misfit(powers):
    known = logs(train) @ powers
    basis = waves(known, known)
    return np.linalg.lstsq(basis, train[TARGET] == train[TARGET].max(), rcond=None)[1].sum()

# every product and quotient of two to four columns, one of a pair of reciprocals
tried = [np.array(p) for p in itertools.product((-1, 0, 1), repeat=len(columns))]
tried = [p for p in tried if 2 <= np.abs(p).sum() <= 4 and p[p != 0][0] > 0]
powers = min(tried, key=misfit)

def features(frame):
    return waves(logs(frame) @ powers, logs(train) @ powers)[:, 1:]
"""
