"""Forecast with a plan: what a planned day does depends on its weekday and on a number of the row.

Planned days raise the quantity on some weekdays and lower it on others, so that how many there are
says little. Whoever finds the weekday of each coming day, and crosses what is planned on it with
the number, sees what moves the mean away from where the history was going.
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

# spread of the growth over four weeks, noise of a day and of the target; by level
_LEVELS = (
    (0.08, 0.08, 0.04), (0.1, 0.1, 0.05), (0.12, 0.12, 0.06), (0.14, 0.15, 0.07),
    (0.16, 0.18, 0.08),
)  # fmt: skip
_AHEAD = 14  # days
_PAST_PLANS = 0.04  # share of the days of the past that were planned
_DAY = 1440  # minutes
_DATES = {"train": (60, 480), "test": (480, 680)}  # days of the first coming day


class ForecastPromoConfig(Record):
    """The drawn parameters; weekdays are counted from Sunday.

    `profile` has the logarithm of each weekday's part, `lifts` that of the factor of a planned day;
    of coming days the latter is multiplied by 1 + `response` times the number. `level` is the
    spread of the rows' levels, `growth` that of their growth over four weeks, `daily` and `noise`
    are the noise of a day and of the target.
    """

    length: int
    profile: tuple[float, ...]
    lifts: tuple[float, ...]
    response: float
    level: float
    growth: float
    daily: float
    noise: float


@FAMILIES.register("forecast_promo")
class ForecastPromo(FamilyOf[ForecastPromoConfig]):
    """See the module's text."""

    name: ClassVar[str] = "forecast_promo"
    task_type: ClassVar[str] = "forecasting"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("forecast",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["forecast"]
    mutations: ClassVar[tuple[str, ...]] = (
        "outages", "negative_days", "old_unit", "backward_days", "inverted_plan",
        "sentinel", "spikes", "unit_mixup", "decimal_comma", "unit_text", "recalibrated",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    n_pool: ClassVar[int] = 1000
    config_type = ForecastPromoConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the weekdays' parts, and which of them planned days raise or lower."""
        growth, daily, noise = _LEVELS[level - 1]
        profile = rng.permutation(np.linspace(-0.4, 0.4, 7)) + rng.normal(size=7) * 0.1
        profile -= np.log(np.exp(profile).mean())
        # a factor cannot go as far down as up: what four days lose, three days win
        rise = rng.uniform(0.75, 0.95)
        lifts = np.r_[np.full(3, rise), np.full(4, -1.5 * rise)] * rng.uniform(0.85, 1.15, 7)
        response = rng.uniform(0.3, 0.45) * rng.choice([-1.0, 1.0])
        return cls(
            ForecastPromoConfig(
                length=int(rng.choice([56, 63, 70, 77, 84])),
                profile=tuple(profile.round(3).tolist()),
                lifts=tuple(rng.permutation(lifts).round(3).tolist()),
                response=round(float(response), 3),
                level=round(float(rng.uniform(0.25, 0.45)), 3),
                growth=growth,
                daily=daily,
                noise=noise,
            )
        )

    def variables(self) -> tuple[Variable, ...]:
        """Return the history, the day it leads up to, the plan and the number."""
        return (
            Variable(name="feat_0", kind="time", abstract="day after the last of the history"),
            Variable(
                name="feat_1",
                kind="series",
                abstract=f"a positive quantity on each of {self.config.length} days",
                size=self.config.length,
            ),
            Variable(name="feat_2", kind="plan", abstract="which of 14 days are planned"),
            Variable(name="feat_3", kind="number", abstract="continuous, symmetric, bell-shaped"),
        )

    def outcome(self) -> Outcome:
        """Return the mean of the coming days."""
        return Outcome("forecast")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw rows of different units, level and growth; those of test lie later."""
        config = self.config
        first = rng.integers(*_DATES[split], n)
        days = np.arange(-config.length, _AHEAD)
        weekday = (first[:, None] + days) % 7
        level, growth = rng.normal(size=(2, n, 1)) * [[[config.level]], [[config.growth / 28]]]
        z = rng.normal(size=n).clip(-3, 3)
        planned = self._planned(rng, weekday)
        lift = np.array(config.lifts)[weekday]
        lift[:, config.length :] *= 1 + config.response * z[:, None]
        logs = level + growth * days + np.array(config.profile)[weekday] + planned * lift
        past, coming = logs[:, : config.length], logs[:, config.length :]
        past = past + config.daily * rng.normal(size=past.shape)
        mean = np.log(np.exp(coming).mean(axis=1))
        observed, clean = quantity(rng, mean, config.noise)
        features: dict[str, NDArray[Any]] = {
            "feat_0": first * _DAY,
            "feat_1": past,
            "feat_2": planned[:, config.length :].astype(np.int64),
            "feat_3": z,
        }
        return Sample(features, observed, clean)

    def _planned(self, rng: np.random.Generator, weekday: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which days are planned: every row prefers some weekdays, raised or lowered ones.

        How often either sort is planned differs from row to row, and does not depend on the other.
        """
        raised = (np.array(self.config.lifts) > 0)[weekday]
        often = rng.beta(0.5, 0.5, size=(2, len(weekday), 1))
        share = np.where(raised, often[0], often[1])
        share[:, : self.config.length] = _PAST_PLANS
        return np.asarray(rng.random(weekday.shape) < share)

    def rule(self) -> str:
        """Return how days come about."""
        config = self.config
        parts = ", ".join(f"{p:g}" for p in config.profile)
        lifts = ", ".join(f"{lift:g}" for lift in config.lifts)
        return (
            "target = mean over the 14 days from feat_0 of exp(a + b * day + p(weekday) + "
            f"planned * l(weekday) * (1 {config.response:+g} * z(feat_3))), planned by feat_2; "
            f"from Sunday on p is {parts} and l is {lifts}; level a and growth b of a row "
            f"are those of its history feat_1, which has normal noise of {config.daily:g} on the "
            f"logarithm of each day, and in which a share of {_PAST_PLANS:g} of the days was "
            "planned and moved by l alone; z() is a feature standardised; in train the logarithm "
            f"of the target has normal noise of {config.noise:g}; test is later than train"
        )

    def solution(self, names: Names) -> Solution:
        """Return level and growth, and the plan by weekday crossed with the number."""
        return Solution((WEEKDAYS + _FEATURES).format(**names), "linear")


_FEATURES = '''
def features(frame):
    """Level and growth, and the weight of what is planned on each weekday."""
    rest = logs(frame) - profile[weekdays(frame, past)]
    levels = [rest[:, -k:].mean(axis=1) for k in (14, 28, len(past))]
    days = past - past.mean()
    growth = rest @ days / (days @ days)
    weekday = weekdays(frame, ahead)
    weight = np.stack(frame["{feat_2}"]) * np.exp(profile)[weekday]
    planned = np.column_stack([(weight * (weekday == k)).sum(axis=1) for k in range(7)])
    z = (frame["{feat_3}"] - train["{feat_3}"].mean()) / train["{feat_3}"].std()
    z = z.to_numpy()[:, None]
    return np.column_stack([*levels, growth, z, planned, planned * z])
'''
