"""Regime: a category chooses the coefficients with which the numbers make up the target.

Slopes change their sign between the modes, so that over all rows they nearly cancel; whoever lets
the mode meet every number sees a plain linear rule in each mode.
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

# modes, numbers that turn with the mode and that do not, categories, noise; by level
_LEVELS = (
    (2, 1, 2, 1, 0.25),
    (2, 2, 2, 1, 0.3),
    (3, 2, 2, 2, 0.3),
    (3, 4, 0, 2, 0.35),
    (4, 5, 0, 2, 0.35),
)


class RegimeConfig(Record):
    """The drawn parameters.

    `sizes` of the categories, of which the one at `mode` rules; `cuts` are the cumulative shares of
    its modes, each of which has an offset and a slope for every number.
    """

    sizes: tuple[int, ...]
    mode: int
    cuts: tuple[float, ...]
    offsets: tuple[float, ...]
    slopes: tuple[tuple[float, ...], ...]
    scale: Scale
    noise: float


@FAMILIES.register("regime")
class Regime(FamilyOf[RegimeConfig]):
    """See the module's text."""

    name: ClassVar[str] = "regime"
    task_type: ClassVar[str] = "regression"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("number",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["number"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "spelling", "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    config_type = RegimeConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the modes and their slopes."""
        n_modes, n_turning, n_steady, n_categories, noise = _LEVELS[level - 1]
        weights = rng.uniform(0.8, 1.2, n_modes)
        shares = weights / weights.sum()
        slopes = np.zeros((n_modes, n_turning + n_steady))
        order = rng.permutation(slopes.shape[1])
        for column in order[:n_turning]:
            # half of the modes go up, rounded at random, and over all rows nothing is left
            n_up = n_modes // 2 + (n_modes % 2) * int(rng.integers(2))
            signs = np.where(rng.permutation(n_modes) < n_up, 1.0, -1.0)
            drawn = rng.uniform(0.7, 1.3, n_modes) * signs
            slopes[:, column] = drawn - (shares * drawn).sum()
        for column in order[n_turning:]:
            slopes[:, column] = rng.uniform(0.4, 0.8, n_modes) * rng.choice([-1.0, 1.0])
        sizes = [int(size) for size in rng.integers(2, 5, n_categories)]
        mode = int(rng.integers(n_categories))
        sizes[mode] = n_modes
        config = RegimeConfig(
            sizes=tuple(sizes),
            mode=mode,
            cuts=tuple(np.cumsum(shares)[:-1].round(3).tolist()),
            offsets=tuple(rng.normal(0, 0.4, n_modes).round(3).tolist()),
            slopes=tuple(tuple(row) for row in slopes.round(3).tolist()),
            scale=Scale(center=0.0, spread=1.0),
            noise=noise,
        )
        latent = cls(config).sample(rng, 4000, "train").clean
        return cls(config.model_copy(update={"scale": Scale.of(latent)}))

    @property
    def _n_numbers(self) -> int:
        return len(self.config.slopes[0])

    def variables(self) -> tuple[Variable, ...]:
        """Return the numbers, then the categories."""
        n, text = self._n_numbers, "continuous, symmetric, bell-shaped"
        numbers = [Variable(name=f"feat_{i}", kind="number", abstract=text) for i in range(n)]
        categories = [
            Variable(
                name=f"feat_{n + i}",
                kind="category",
                abstract=f"categorical, {size} values of similar frequency",
                relevant=i == self.config.mode,
                size=size,
            )
            for i, size in enumerate(self.config.sizes)
        ]
        return (*numbers, *categories)

    def outcome(self) -> Outcome:
        """Return a symmetric quantity."""
        return Outcome("number")

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw normal numbers and independent categories."""
        config = self.config
        z = rng.normal(size=(n, self._n_numbers)).clip(-4, 4)
        kinds = [rng.integers(0, size, n) for size in config.sizes]
        mode = np.digitize(rng.random(n), config.cuts)
        kinds[config.mode] = mode
        latent = np.array(config.offsets)[mode]
        for i, slope in enumerate(np.array(config.slopes).T):
            latent += slope[mode] * z[:, i]
        observed, clean = quantity(rng, config.scale(latent), config.noise)
        columns: list[NDArray[np.float64] | NDArray[np.int64]] = [*z.T, *kinds]
        return Sample({f"feat_{i}": c for i, c in enumerate(columns)}, observed, clean)

    def rule(self) -> str:
        """Return the formula of each mode."""
        config = self.config
        modes = [
            f"{offset:.4g} "
            + " ".join(spell(w, f"z(feat_{i})") for i, w in enumerate(slopes))
            + f" where it is {k}"
            for k, (offset, slopes) in enumerate(zip(config.offsets, config.slopes, strict=True))
        ]
        return (
            f"target = (s {-config.scale.center:+g}) / {config.scale.spread:g} spreads from its "
            f"center, s by the value (counted from 0) of feat_{self._n_numbers + config.mode}: "
            f"{'; '.join(modes)}; z() being a feature standardised; "
            f"in train with normal noise of {config.noise:g} spreads"
        )

    def solution(self, names: Names) -> Solution:
        """Return the numbers crossed with the category that explains most, for a linear model."""
        columns = [names[v.name] for v in self.variables()]
        numbers, categories = columns[: self._n_numbers], columns[self._n_numbers :]
        return Solution(_FEATURES.format(numbers=numbers, categories=categories), "linear")


_FEATURES = """\
numbers, categories = {numbers}, {categories}

def crossed(frame, mode):
    z = ((frame[numbers] - train[numbers].mean()) / train[numbers].std()).to_numpy()
    z = np.hstack([np.ones((len(z), 1)), z])
    modes = sorted(train[mode].unique())
    return np.hstack([z * (frame[mode] == value).to_numpy()[:, None] for value in modes])

# the mode is the category within whose values a linear model does best
fits = [
    cross_val_score(RidgeCV(np.logspace(-3, 3, 13)), crossed(train, c), train[TARGET], cv=4).mean()
    for c in categories
]
mode = categories[int(np.argmax(fits))]

def features(frame):
    return crossed(frame, mode)
"""
