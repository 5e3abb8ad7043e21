"""Ordered classes by how far readings lie apart: a difference, a maximum, a deviation.

Each term bends where two readings meet or where one crosses the center all of them share. Linear
models see half of it and trees need many rows; the pairwise terms and a sparse model see all of it.
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
    cuts_of,
    graded,
    spell,
)
from sandmle.types import Record

# readings, classes (from, to), noise; by level
_LEVELS = (
    (5, (3, 3), 0.15), (6, (3, 4), 0.17), (6, (3, 5), 0.19), (7, (4, 5), 0.21), (8, (4, 5), 0.23),
)  # fmt: skip
_SPREADS = (0.853, 0.826, 0.603)  # of the three terms, of independent standard normal readings


class OrdinalMinmaxConfig(Record):
    """The drawn parameters.

    `order` are the readings: two whose difference counts, two whose maximum does, one whose
    deviation does, then those that do not count. `weights` are of the three terms; `cuts` lie
    between the classes, in units of the sum's `scale`.
    """

    order: tuple[int, ...]
    weights: tuple[float, ...]
    cuts: tuple[float, ...]
    noise: float
    scale: Scale


@FAMILIES.register("ordinal_minmax")
class OrdinalMinmax(FamilyOf[OrdinalMinmaxConfig]):
    """See the module's text."""

    name: ClassVar[str] = "ordinal_minmax"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("ordinal",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["ordinal"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "recalibrated",
        "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (100, 200)
    config_type = OrdinalMinmaxConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which readings meet, how much each term counts, and where the classes end."""
        n, (fewest, most), noise = _LEVELS[level - 1]
        weights = rng.uniform(0.8, 1.25, 3) * rng.choice([-1.0, 1.0], 3) / np.array(_SPREADS)
        size = int(rng.integers(fewest, most + 1))
        shares = np.arange(1, size) / size + rng.uniform(-0.05, 0.05, size - 1)
        config = OrdinalMinmaxConfig(
            order=tuple(rng.permutation(n).tolist()),
            weights=tuple(weights.round(3).tolist()),
            cuts=(),
            noise=noise,
            scale=Scale(center=0, spread=1),
        )
        latent = cls(config)._latent(rng.normal(size=(4000, n)))
        scale = Scale.of(latent)
        cuts = cuts_of(scale(latent), tuple(shares.tolist()))
        return cls(OrdinalMinmaxConfig(**{**dict(config), "cuts": cuts, "scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the readings; the last ones of `order` do not count."""
        used = self.config.order[:5]
        return tuple(
            Variable(
                name=f"feat_{i}",
                kind="reading",
                abstract="continuous, bell-shaped, in the unit and range of all others",
                relevant=i in used,
            )
            for i in range(len(self.config.order))
        )

    def outcome(self) -> Outcome:
        """Return ordered classes of about the same size."""
        return Outcome("ordinal", len(self.config.cuts) + 1)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent normal readings; the observed class is that of a noisy sum."""
        config = self.config
        z = rng.normal(size=(n, len(config.order)))
        latent = config.scale(self._latent(z))
        observed, clean = graded(rng, latent, config.noise, config.cuts)
        features = {v.name: z[:, i] for i, v in enumerate(self.variables())}
        return Sample(features, observed, clean)

    def _latent(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b, c, d, e = (z[:, i] for i in self.config.order[:5])
        apart, highest, away = self.config.weights
        return apart * np.abs(a - b) + highest * np.maximum(c, d) + away * np.abs(e)

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        a, b, c, d, e = (f"z(feat_{i})" for i in config.order[:5])
        terms = (f"|{a} - {b}|", f"max({c}, {d})", f"|{e}|")
        total = " ".join(spell(w, term) for w, term in zip(config.weights, terms, strict=True))
        return (
            f"s = ({total} {-config.scale.center:+g}) / {config.scale.spread:g}, z() being a "
            "reading less the center of all readings in units of their spread; the class, counted "
            f"from 0, is the number of cuts {', '.join(f'{cut:g}' for cut in config.cuts)} that s "
            f"reaches; in train, normal noise of {config.noise:g} is added to s"
        )

    def solution(self, names: Names) -> Solution:
        """Return the place on a line that a sparse model of the pairwise terms learns."""
        columns = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(columns=columns), "linear")


_FEATURES = """\
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

columns = {columns}
first, second = np.triu_indices(len(columns), 1)

def terms(frame):
    z = ((frame[columns] - train[columns].mean()) / train[columns].std().median()).to_numpy()
    a, b = z[:, first], z[:, second]
    return np.hstack([z, np.abs(z), np.abs(a - b), np.maximum(a, b)])

# the classes lie along one line: the discriminant finds where, the lasso which terms count
line = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
along = make_pipeline(StandardScaler(), line).fit(terms(train), train[TARGET])
places = pd.Series(along.transform(terms(train))[:, 0]).groupby(train[TARGET].to_numpy())
score = make_pipeline(StandardScaler(), LassoCV(cv=4, max_iter=5000))
score.fit(terms(train), places.transform("mean"))

def features(frame):
    return score.predict(terms(frame))[:, None]
"""
