"""Ratio: the class depends on the logarithm of a ratio of amounts, and turns back in its core.

Far below the usual ratio it is one class, far above the other, and in between the other way round;
what is usual moves with a number. The amounts are log-normal: whoever takes logarithms and finds
which amounts make up the ratio has one figure that says it all.
"""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

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
    VariableKind,
    binary,
    cuts_of,
    spell,
)
from sandmle.types import Record

Floats = NDArray[np.float64]

# amounts, those in the ratio, numbers, share of the rows in the core, steepness of the logistic
# noise; by level
_LEVELS = (
    (4, 3, 1, 0.3, 20.0),
    (5, 3, 1, 0.36, 18.0),
    (5, 3, 2, 0.45, 16.0),
    (6, 3, 2, 0.52, 15.0),
    (6, 4, 2, 0.6, 14.0),
)


class RatioLogConfig(Record):
    """The drawn parameters.

    `powers` and `spreads` of the amounts: a power of 0 is that of one which is not in the ratio.
    `shifts` are the weights of the numbers, one of them not 0. The class changes at each of the
    `cuts` of the shifted logarithm, below the first it is `lowest`; `unit` is its spread.
    """

    powers: tuple[int, ...]
    shifts: tuple[float, ...]
    spreads: tuple[float, ...]
    cuts: tuple[float, ...]
    unit: float
    lowest: int
    steepness: float


@FAMILIES.register("ratio_log")
class RatioLog(FamilyOf[RatioLogConfig]):
    """See the module's text."""

    name: ClassVar[str] = "ratio_log"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    # a sentinel or an earlier wrong entry does little harm where only ranks are looked at
    mutations: ClassVar[tuple[str, ...]] = (
        "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields", "recalibrated",
        "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    config_type = RatioLogConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw what is divided by what, and where the class changes."""
        n_amounts, n_used, n_numbers, core, steepness = _LEVELS[level - 1]
        powers = np.zeros(n_amounts, dtype=int)
        # at least one is below the line, one above
        powers[rng.permutation(n_amounts)[:n_used]] = [-1, 1, *rng.choice([-1, 1], n_used - 2)]
        spreads = rng.uniform(0.5, 0.75, n_amounts).round(3)
        shifts = np.zeros(n_numbers)
        spread = np.sqrt((np.abs(powers) * spreads**2).sum())
        shifts[rng.integers(n_numbers)] = rng.uniform(0.5, 0.9) * rng.choice([-1.0, 1.0]) * spread
        low = (1 - core) / 2 + rng.uniform(-0.05, 0.05)
        inside = low + core * rng.uniform(0.44, 0.56)
        config = RatioLogConfig(
            powers=tuple(powers.tolist()),
            shifts=tuple(shifts.round(3).tolist()),
            spreads=tuple(spreads.tolist()),
            cuts=(),
            unit=1.0,
            lowest=int(rng.integers(2)),
            steepness=steepness,
        )
        u = cls(config)._draws(rng, 4000)[1]
        found = {"cuts": cuts_of(u, (low, inside, low + core)), "unit": round(float(u.std()), 4)}
        return cls(config.model_copy(update=found))

    def variables(self) -> tuple[Variable, ...]:
        """Return the amounts, then the numbers."""
        powers, shifts = self.config.powers, self.config.shifts
        amounts: list[tuple[VariableKind, str]] = [("amount", "continuous, positive, log-normal")]
        numbers: list[tuple[VariableKind, str]] = [("number", "continuous, symmetric, bell-shaped")]
        sorts = amounts * len(powers) + numbers * len(shifts)
        return tuple(
            Variable(name=f"feat_{i}", kind=kind, abstract=text, relevant=weight != 0)
            for i, ((kind, text), weight) in enumerate(zip(sorts, (*powers, *shifts), strict=True))
        )

    def outcome(self) -> Outcome:
        """Return two classes, nearly balanced."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent amounts; near a cut the observed class has logistic noise."""
        columns, u = self._draws(rng, n)
        observed, clean = binary(rng, self._score(u), self.config.steepness)
        return Sample({f"feat_{i}": c for i, c in enumerate(columns)}, observed, clean)

    def _draws(self, rng: np.random.Generator, n: int) -> tuple[list[Floats], Floats]:
        """Draw the columns, and return them with the shifted logarithm of the ratio."""
        config, u = self.config, np.zeros(n)
        columns: list[Floats] = [(s * rng.normal(size=n)).clip(-3, 3) for s in config.spreads]
        columns += [rng.normal(size=n).clip(-4, 4) for _ in config.shifts]
        for weight, column in zip((*config.powers, *config.shifts), columns, strict=True):
            u += weight * column
        return columns, u

    def _score(self, u: Floats) -> Floats:
        """Return the distance from the nearest cut, positive where the class is 1."""
        cuts = np.array(self.config.cuts)
        distance: Floats = np.abs(u[:, None] - cuts).min(axis=1) / self.config.unit
        sides: Floats = np.where((np.digitize(u, cuts) + self.config.lowest) % 2 == 1, 1.0, -1.0)
        return sides * distance

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [f"{power:+d} * l(feat_{i})" for i, power in enumerate(config.powers) if power]
        terms += [
            spell(shift, f"z(feat_{len(config.powers) + i})")
            for i, shift in enumerate(config.shifts)
            if shift
        ]
        low, middle, high = config.cuts
        first, second = config.lowest, 1 - config.lowest
        return (
            f"u = {' '.join(terms)}; l(x) = ln(x / typical x), z() is a feature standardised; the "
            f"class is {first} for u < {low:g}, {second} up to {middle:g}, {first} up to {high:g}, "
            f"{second} above; in train it is 1 with probability logistic({config.steepness:g} * "
            "d), d being the distance of u from the nearest of these three limits, negative where "
            f"the class is 0, in units of {config.unit:g}"
        )

    def solution(self, names: Names) -> Solution:
        """Return the log-ratio, out of all, that orders the classes best; harmonics of its rank."""
        amounts, numbers = (
            [names[v.name] for v in self.variables() if v.kind == kind]
            for kind in ("amount", "number")
        )
        return Solution(_FEATURES.format(amounts=amounts, numbers=numbers), "linear")


_FEATURES = """\
import itertools

amounts, numbers = {amounts}, {numbers}

def parts(frame):
    z = (frame[numbers] - train[numbers].mean()) / train[numbers].std()
    return np.log(frame[amounts].clip(lower=1e-3)).to_numpy(), z.to_numpy()

logs, z = parts(train)
ranks = (np.arange(len(train)) + 0.5) / len(train)
slow = np.cos(np.pi * ranks[:, None] * np.arange(1, 9))
event = (train[TARGET] == train[TARGET].max()).to_numpy() - 0.5

# how slowly the classes change along a ratio that is shifted by a number
def order(powers, column, shift):
    ratio = logs @ powers
    ratio = ratio / ratio.std() + shift * z[:, column]
    return ((event[np.argsort(ratio)] @ slow) ** 2).sum()

# all products and quotients of three or four amounts, one of each pair of reciprocals
tried = [np.array(p) for p in itertools.product((-1, 0, 1), repeat=len(amounts))]
tried = [p for p in tried if 3 <= np.abs(p).sum() <= 4 and p[p != 0][0] > 0]
shifts = np.linspace(-1.2, 1.2, 25)
best = max(itertools.product(tried, range(len(numbers)), shifts), key=lambda one: order(*one))

def features(frame):
    powers, column, shift = best
    (known, new), (others, moved) = (logs @ powers, z[:, column]), parts(frame)
    spread = known.std()
    known = np.sort(known / spread + shift * new)
    ratio = others @ powers / spread + shift * moved[:, column]
    return np.cos(np.pi * np.interp(ratio, known, ranks)[:, None] * np.arange(1, 9))
"""
