"""Forecast with a season: each history swings with the period of its kind, from a phase of its own.

Means of the last days and weeks mix up where a swing is going. Whoever sees the periods in the
histories, one for each kind, takes weekdays out of them and carries every swing on, knows the level
of the coming days; what is planned, and a number whose effect depends on the kind, do the rest.
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
    quantity,
)
from sandmle.factory.modalities.series.weekdays import WEEKDAYS
from sandmle.types import Record

# kinds, least and greatest height of a swing, spread of the growth over four weeks, noise of a day
# and of the target; by level
_LEVELS = (
    (2, 0.4, 0.8, 0.05, 0.08, 0.04),
    (2, 0.4, 0.8, 0.07, 0.1, 0.05),
    (3, 0.4, 0.8, 0.08, 0.12, 0.06),
    (3, 0.35, 0.75, 0.09, 0.15, 0.07),
    (4, 0.35, 0.75, 0.1, 0.18, 0.08),
)
_AHEAD = 14  # days
_DAY = 1440  # minutes
_DATES = {"train": (90, 500), "test": (500, 700)}  # days of the first coming day


class ForecastSeasonConfig(Record):
    """The drawn parameters; weekdays are counted from Sunday.

    `profile` has the logarithm of each weekday's part, `lift` that of the factor of a planned day.
    Each kind has a period in days, and a slope of the logarithm of the coming days on the number.
    `level` is the spread of the rows' levels, `growth` that of their growth over four weeks,
    `daily` and `noise` are the noise of a day and of the target.
    """

    length: int
    profile: tuple[float, ...]
    lift: float
    periods: tuple[float, ...]
    slopes: tuple[float, ...]
    heights: tuple[float, float]
    level: float
    growth: float
    daily: float
    noise: float


@FAMILIES.register("forecast_season")
class ForecastSeason(FamilyOf[ForecastSeasonConfig]):
    """See the module's text."""

    name: ClassVar[str] = "forecast_season"
    task_type: ClassVar[str] = "forecasting"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("forecast",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["forecast"]
    mutations: ClassVar[tuple[str, ...]] = (
        "outages", "negative_days", "old_unit", "backward_days", "inverted_plan",
        "sentinel", "spikes", "unit_mixup", "decimal_comma", "unit_text", "recalibrated",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (90, 200)
    n_pool: ClassVar[int] = 1000
    config_type = ForecastSeasonConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the weekdays' parts, and period and slope of each kind."""
        kinds, low, high, growth, daily, noise = _LEVELS[level - 1]
        profile = rng.permutation(np.linspace(-0.5, 0.5, 7)) + rng.normal(size=7) * 0.1
        profile -= np.log(np.exp(profile).mean())
        periods = np.linspace(23, 41, kinds) + rng.uniform(-2, 2, kinds)
        signs = np.arange(kinds) % 2 * 2.0 - 1.0
        slopes = signs * rng.uniform(0.15, 0.25, kinds)
        lift = float(rng.choice([rng.uniform(0.5, 0.7), -rng.uniform(0.9, 1.2)]))
        return cls(
            ForecastSeasonConfig(
                length=int(rng.choice([63, 70, 77, 84])),
                profile=tuple(profile.round(3).tolist()),
                lift=round(lift, 3),
                periods=tuple(rng.permutation(periods).round(1).tolist()),
                slopes=tuple(rng.permutation(slopes).round(3).tolist()),
                heights=(low, high),
                level=round(float(rng.uniform(0.25, 0.45)), 3),
                growth=growth,
                daily=daily,
                noise=noise,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the history, the day it leads up to, the plan, the number and the kind."""
        length, kinds = self.config.length, len(self.config.periods)
        return (
            Variable(name="feat_0", kind="time", abstract="day after the last of the history"),
            Variable(
                name="feat_1",
                kind="series",
                abstract=f"a positive quantity on each of {length} days",
                size=length,
            ),
            Variable(name="feat_2", kind="plan", abstract="which of 14 days are planned"),
            Variable(name="feat_3", kind="number", abstract="continuous, symmetric, bell-shaped"),
            Variable(
                name="feat_4",
                kind="category",
                abstract=f"categorical, {kinds} values of equal frequency",
                size=kinds,
            ),
        )

    def outcome(self) -> Outcome:
        """Return the mean of the coming days."""
        return Outcome("forecast")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw rows of different level, growth, height and phase; those of test lie later."""
        config = self.config
        first = rng.integers(*_DATES[split], n)
        kind = rng.integers(0, len(config.periods), n)
        z = rng.normal(size=n).clip(-4, 4)
        level, growth = rng.normal(size=(2, n, 1)) * [[[config.level]], [[config.growth / 28]]]
        height = rng.uniform(*config.heights, (n, 1))
        phase = rng.uniform(0, 2 * np.pi, (n, 1))
        planned = rng.random((n, _AHEAD)) < rng.beta(0.6, 0.9, (n, 1))

        days = np.arange(-config.length, _AHEAD)
        turns = days / np.array(config.periods)[kind][:, None]
        logs = level + growth * days + height * np.sin(2 * np.pi * turns + phase)
        logs += np.array(config.profile)[(first[:, None] + days) % 7]
        past, coming = logs[:, : config.length], logs[:, config.length :]
        past = past + config.daily * rng.normal(size=past.shape)
        coming = coming + config.lift * planned + (np.array(config.slopes)[kind] * z)[:, None]
        mean = np.log(np.exp(coming).mean(axis=1))
        observed, clean = quantity(rng, mean, config.noise)
        features: dict[str, NDArray[Any]] = {
            "feat_0": first * _DAY,
            "feat_1": past,
            "feat_2": planned.astype(np.int64),
            "feat_3": z,
            "feat_4": kind,
        }
        return Sample(features, observed, clean)

    def rule(self) -> str:
        """Return how days come about."""
        config = self.config
        parts = ", ".join(f"{p:g}" for p in config.profile)
        periods = ", ".join(f"{period:g}" for period in config.periods)
        slopes = ", ".join(f"{slope:g}" for slope in config.slopes)
        return (
            "target = mean over the 14 days from feat_0 of exp(a + b * day + h * sin(2 pi * day / "
            f"P + phase) + p(weekday) {config.lift:+g} * planned + g * z(feat_3)), planned by "
            f"feat_2; P is {periods} and g is {slopes} where feat_4 is 0, 1, ...; from Sunday on "
            f"p is {parts}; level a, growth b, height h and phase of a row are those of its "
            f"history feat_1, the logarithm of each day of which has normal noise of "
            f"{config.daily:g} and neither plan nor g; z() is a feature standardised; in train the "
            f"logarithm of the target has normal noise of {config.noise:g}; test is later than "
            "train"
        )

    def solution(self, names: Names) -> Solution:
        """Return the swing carried on, the plan, and the number by kind, and a linear model."""
        return Solution((WEEKDAYS + _FEATURES).format(**names), "linear")


_FEATURES = '''
def swing(days, period):
    """What a history is made of: level, growth, and a wave of this period."""
    turns = 2 * np.pi * days / period
    return np.column_stack([np.ones(len(days)), days, np.sin(turns), np.cos(turns)])

def rest(frame, kind):
    """Histories of a kind without weekdays, one a column."""
    return (logs(frame) - profile[weekdays(frame, past)])[frame["{feat_4}"] == kind].T

# the period that leaves least of the histories of a kind
kinds, period = sorted(train["{feat_4}"].unique()), {{}}
for kind in kinds:
    mine, left = rest(train, kind), {{}}
    for tried in np.arange(15, 60, 0.5):
        basis = np.linalg.qr(swing(past, tried))[0]
        left[tried] = np.sum((mine - basis @ (basis.T @ mine)) ** 2)
    period[kind] = min(left, key=left.get)

def features(frame):
    """The swing of the coming days, the weight of those planned, and the number by kind."""
    carried = np.zeros((len(frame), len(ahead)))
    for kind in kinds:
        parts = np.linalg.lstsq(swing(past, period[kind]), rest(frame, kind), rcond=None)[0]
        carried[frame["{feat_4}"] == kind] = (swing(ahead, period[kind]) @ parts).T
    weight = np.exp(carried + profile[weekdays(frame, ahead)])
    planned = (weight * np.stack(frame["{feat_2}"])).sum(axis=1) / weight.sum(axis=1)
    z = (frame["{feat_3}"] - train["{feat_3}"].mean()) / train["{feat_3}"].std()
    by_kind = [z * (frame["{feat_4}"] == kind) for kind in kinds]
    return np.column_stack([np.log(weight.mean(axis=1)), planned, planned**2, *by_kind])
'''
