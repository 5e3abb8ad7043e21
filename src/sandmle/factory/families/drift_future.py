"""Drift into the future: what a feature counts for changes with time; the test comes after train.

A model of the past has the average of what was; the test asks for what comes next. Crossing the
features with time, beside trend and season, makes it a linear problem that can be carried on.
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

# features in the rule, others, how many of the former turn around, season, noise; by level
_LEVELS = (
    (3, 0, 0, 0.2, 0.2), (3, 1, 1, 0.3, 0.24), (4, 0, 2, 0.4, 0.27), (4, 1, 3, 0.5, 0.3),
    (5, 1, 5, 0.6, 0.33),
)  # fmt: skip
_DAY, _YEAR = 1440, 365.25
_PAST = 0.8  # the share of the time that train covers


class DriftFutureConfig(Record):
    """The drawn parameters: what each feature counts for at the start and at the end.

    Time runs from 0 to 1 in `days` days. `trend` is over all of it, `season` the height of a wave
    of one year, `phase` in radians.
    """

    start: tuple[float, ...]
    end: tuple[float, ...]
    trend: float
    season: float
    phase: float
    days: int
    noise: float
    scale: Scale


@FAMILIES.register("drift_future")
class DriftFuture(FamilyOf[DriftFutureConfig]):
    """See the module's text."""

    name: ClassVar[str] = "drift_future"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("number",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["number"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (90, 200)
    config_type = DriftFutureConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the coefficients at both ends; some turn around, the others grow."""
        n_used, n_others, n_turned, season, noise = _LEVELS[level - 1]
        n = n_used + n_others
        used = rng.permutation(n)[:n_used]
        start, end = np.zeros(n), np.zeros(n)
        end[used] = rng.uniform(0.9, 1.4, n_used) * rng.choice([-1.0, 1.0], n_used)
        start[used] = end[used] * rng.uniform(0.1, 0.5, n_used)
        start[used[:n_turned]] = -end[used[:n_turned]] * rng.uniform(0.6, 1.2, n_turned)
        config = DriftFutureConfig(
            start=tuple(start.round(3).tolist()),
            end=tuple(end.round(3).tolist()),
            trend=round(float(rng.uniform(0.2, 0.6) * rng.choice([-1.0, 1.0])), 3),
            season=round(season * float(rng.uniform(0.8, 1.25)), 3),
            phase=round(float(rng.uniform(0, 2 * np.pi)), 3),
            days=int(rng.integers(690, 781)),
            noise=noise,
            scale=Scale(center=0, spread=1),
        )
        time, z = cls(config)._drawn(rng, 4000, 0, _PAST)
        scale = Scale.of(cls(config)._latent(time, z))
        return cls(DriftFutureConfig(**{**dict(config), "scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the time and as many continuous features as there are coefficients."""
        time = Variable(name="feat_0", kind="time", abstract="time of the row over two years")
        others = tuple(
            Variable(
                name=f"feat_{i + 1}",
                kind="number",
                abstract="continuous, symmetric, bell-shaped",
                relevant=end != 0,
            )
            for i, end in enumerate(self.config.end)
        )
        return (time, *others)

    def outcome(self) -> Outcome:
        """Return a quantity."""
        return Outcome("number")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw normal features at times before or after the split, in no order."""
        low, high = (0.0, _PAST) if split == "train" else (_PAST, 1.0)
        time, z = self._drawn(rng, n, low, high)
        observed, clean = quantity(rng, self.config.scale(self._latent(time, z)), self.config.noise)
        features = {f"feat_{i + 1}": z[:, i] for i in range(z.shape[1])}
        return Sample({"feat_0": time, **features}, observed, clean)

    def _drawn(
        self, rng: np.random.Generator, n: int, low: float, high: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Draw minutes in a part of the time, and standard normal features."""
        total = self.config.days * _DAY
        minutes = rng.integers(round(low * total), round(high * total), n)
        return minutes.astype(np.int64), rng.normal(size=(n, len(self.config.end)))

    def _latent(self, time: NDArray[np.int64], z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum, term by term: no BLAS, so the same bits on every machine."""
        config = self.config
        days = time / _DAY
        t = days / config.days
        latent = config.trend * t + config.season * np.sin(2 * np.pi * days / _YEAR + config.phase)
        for i, (start, end) in enumerate(zip(config.start, config.end, strict=True)):
            latent += (start + (end - start) * t) * z[:, i]
        return latent

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [
            f"+ ({start:.4g} {end - start:+.4g} * t) * z(feat_{i + 1})"
            for i, (start, end) in enumerate(zip(config.start, config.end, strict=True))
            if end
        ]
        terms.append(spell(config.trend, "t"))
        terms.append(spell(config.season, f"sin(2 pi days / {_YEAR} + {config.phase:g})"))
        return (
            f"z(target) = ({' '.join(terms)} {-config.scale.center:+g}) / {config.scale.spread:g}, "
            f"days being those since 2023-01-01 by feat_0, t = days / {config.days}, z() a value "
            f"less its center in units of its spread; train has t < {_PAST:g} and normal noise of "
            f"{config.noise:g} on z(target), test the rest of the time"
        )

    def solution(self, names: Names) -> Solution:
        """Return features crossed with time, trend and season, and a linear model."""
        time, *columns = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(time=time, columns=columns), "linear")


_FEATURES = """\
columns = {columns}

def features(frame):
    since = pd.to_datetime(frame["{time}"]) - pd.Timestamp("2023-01-01")
    years = (since / pd.Timedelta(days=365.25)).to_numpy()
    wave = np.column_stack([np.sin(2 * np.pi * years), np.cos(2 * np.pi * years)])
    z = ((frame[columns] - train[columns].mean()) / train[columns].std()).to_numpy()
    return np.hstack([z, z * years[:, None], years[:, None], wave])
"""
