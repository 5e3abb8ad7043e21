"""Periodic: cycles of the day that weekends shift, of the year, and loads of changing sign.

A date as such says little; hour, kind of day and season have to be taken out of it, and the sign of
each load out of a category.
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
    Scale,
    Solution,
    Split,
    Variable,
    quantity,
    spell,
)
from sandmle.types import Record

# values of the category, loads whose sign it turns, others, years, height of the cycle of weekdays
# and of the year, noise; by level
_LEVELS = (
    (2, 1, 2, 1, 0.9, 0.7, 0.2),
    (2, 2, 1, 1, 1.0, 0.7, 0.25),
    (2, 3, 0, 2, 1.1, 0.7, 0.25),
    (3, 3, 0, 2, 1.2, 0.6, 0.3),
    (3, 3, 0, 3, 1.4, 0.6, 0.35),
)
_DAY, _YEAR = 1440, 525_960  # minutes


class Wave(Record):
    """`height` times the sine of so many `cycles` and a `phase` in radians."""

    cycles: int
    height: float
    phase: float

    def __call__(self, turns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the wave after a number of days or years."""
        return self.height * np.sin(2 * np.pi * self.cycles * turns + self.phase)

    def told(self, turns: str) -> str:
        """Return its formula."""
        return f"{self.height:.4g} * sin(2 pi * {self.cycles} * {turns} + {self.phase:.4g})"


class PeriodicConfig(Record):
    """The drawn parameters; `slopes` has for every value of the category those of the loads."""

    weekday: Wave
    weekend: Wave
    season: Wave
    slopes: tuple[tuple[float, ...], ...]
    years: int
    scale: Scale
    noise: float


@FAMILIES.register("periodic")
class Periodic(FamilyOf[PeriodicConfig]):
    """See the module's text."""

    name: ClassVar[str] = "periodic"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("amount",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["amount"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "spelling", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    config_type = PeriodicConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the waves and the slopes."""
        size, n_turning, n_steady, years, daily, yearly, noise = _LEVELS[level - 1]
        phase, ahead, year = rng.uniform(0, 2 * np.pi, 3)
        # between a third and two thirds of a cycle ahead of the weekdays
        shift = phase + 2 * np.pi / 3 + ahead / 3
        cycles = int(rng.integers(1, 3))
        heights = rng.uniform([0.9, 0.8, 0.85], [1.1, 1.2, 1.15]) * (daily, daily, yearly)
        phases = np.mod([phase, shift, year], 2 * np.pi)
        day, end, season = (
            Wave(cycles=c, height=round(float(h), 3), phase=round(float(p), 3))
            for c, h, p in zip((cycles, cycles, 1), heights, phases, strict=True)
        )
        slopes = np.zeros((size, n_turning + n_steady))
        order = rng.permutation(n_turning + n_steady)
        for place, column in enumerate(order):
            signs = rng.permutation(np.arange(size) % 2) * 2.0 - 1.0
            if place >= n_turning:
                signs = np.full(size, signs[0])
            slopes[:, column] = signs * rng.uniform(0.6, 0.85)
        config = PeriodicConfig(
            weekday=day,
            weekend=end,
            season=season,
            slopes=tuple(tuple(row) for row in slopes.round(3).tolist()),
            years=years,
            scale=Scale(center=0.0, spread=1.0),
            noise=noise,
        )
        latent = cls(config).sample(rng, 4000, "train").clean
        return cls(config.model_copy(update={"scale": Scale.of(latent)}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the time, the loads and the category."""
        loads = len(self.config.slopes[0])
        bell = "continuous, symmetric, bell-shaped"
        text = f"time of the record, over {self.config.years} years"
        return (
            Variable(name="feat_0", kind="time", abstract=text),
            *(Variable(name=f"feat_{1 + i}", kind="number", abstract=bell) for i in range(loads)),
            Variable(
                name=f"feat_{1 + loads}",
                kind="category",
                abstract=f"categorical, {len(self.config.slopes)} values of equal frequency",
                size=len(self.config.slopes),
            ),
        )

    def outcome(self) -> Outcome:
        """Return a positive, skewed quantity."""
        return Outcome("amount")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw times evenly over the years, normal loads and an independent category."""
        config = self.config
        slopes = np.array(config.slopes)
        minutes = rng.integers(0, int(config.years * _YEAR), n)
        z = rng.normal(size=(n, slopes.shape[1])).clip(-4, 4)
        kind = rng.integers(0, len(slopes), n)
        days = minutes / _DAY
        weekend = np.isin(minutes // _DAY % 7, (0, 6))  # day 0 is a Sunday
        latent = np.where(weekend, config.weekend(days), config.weekday(days))
        latent += config.season(minutes / _YEAR)
        for i, slope in enumerate(slopes.T):
            latent += slope[kind] * z[:, i]
        observed, clean = quantity(rng, config.scale(latent), config.noise)
        columns: list[NDArray[Any]] = [minutes, *z.T, kind]
        return Sample({f"feat_{i}": c for i, c in enumerate(columns)}, observed, clean)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        sums = (
            " ".join(spell(w, f"z(feat_{1 + i})") for i, w in enumerate(slopes))
            for slopes in config.slopes
        )
        loads = "; ".join(f"{total} where it is {k}" for k, total in enumerate(sums))
        return (
            f"ln(target / typical) = 0.8 (s {-config.scale.center:+g}) / {config.scale.spread:g}; "
            f"s = {config.weekday.told('d')} on Monday to Friday, {config.weekend.told('d')} on "
            f"Saturday and Sunday, plus {config.season.told('d / 365.25')}, plus by the value "
            f"(counted from 0) of feat_{1 + len(config.slopes[0])}: {loads}; "
            "d are days of feat_0 since 2023-01-01 00:00, z() is a feature standardised; in train "
            f"ln(target / typical) has normal noise of {0.8 * config.noise:.4g}"
        )

    def solution(self, names: Names) -> Solution:
        """Return harmonics of hour and year, and loads by category, for a linear model."""
        (time,), numbers, (category,) = (
            [names[v.name] for v in self.variables() if v.kind == kind]
            for kind in ("time", "number", "category")
        )
        return Solution(_FEATURES.format(time=time, numbers=numbers, category=category), "sparse")


_FEATURES = """\
numbers = {numbers}

def features(frame):
    when = pd.to_datetime(frame["{time}"])
    days = ((when - pd.Timestamp("2023-01-01")) / pd.Timedelta(days=1)).to_numpy()[:, None]
    free = (when.dt.dayofweek >= 5).to_numpy()[:, None]
    hours = 2 * np.pi * days * [1, 2]
    hours = np.hstack([np.sin(hours), np.cos(hours)])
    year = 2 * np.pi * days / 365.25 * [1, 2]
    z = ((frame[numbers] - train[numbers].mean()) / train[numbers].std()).to_numpy()
    z = np.hstack([np.ones((len(z), 1)), z])
    kinds = sorted(train["{category}"].unique())
    by_kind = [z * (frame["{category}"] == kind).to_numpy()[:, None] for kind in kinds]
    return np.hstack([hours * free, hours * ~free, free, np.sin(year), np.cos(year), *by_kind])
"""
