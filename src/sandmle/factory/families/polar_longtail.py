"""Polar: two readings are a point in the plane, classes are sectors around an unknown centre.

The sectors wind with the distance from the centre and turn with a number. Sizes of the classes have
a long tail. Once centre, twist and turn are fitted, one angle says it all.
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
    cuts_of,
    spell,
)
from sandmle.types import Record

# classes, numbers that turn the sectors, idle ones, twist and turn in radians, distance of the
# centre, noise in turns; by level
_LEVELS = (
    (3, 1, 0, 0.7, 0.6, 0.2, 0.02),
    (3, 1, 1, 0.9, 0.7, 0.3, 0.025),
    (4, 1, 1, 1.1, 0.8, 0.4, 0.025),
    (4, 2, 0, 1.2, 0.7, 0.4, 0.03),
    (5, 2, 0, 1.3, 0.8, 0.5, 0.03),
)


class PolarConfig(Record):
    """The drawn parameters.

    `turns` are the weights of the numbers, 0 for an idle one. Class `labels[i]` lies between the
    `cuts` i - 1 and i of the twisted angle in turns.
    """

    centre: tuple[float, float]
    twist: float
    phase: float
    turns: tuple[float, ...]
    cuts: tuple[float, ...]
    labels: tuple[int, ...]
    noise: float


@FAMILIES.register("polar_longtail")
class PolarLongtail(FamilyOf[PolarConfig]):
    """See the module's text."""

    name: ClassVar[str] = "polar_longtail"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("classes",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["classes"]
    # an earlier wrong entry does little harm: the search and the harmonics average over many rows
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    config_type = PolarConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the centre, how the sectors are twisted and turned, and how wide they are."""
        n_classes, n_turning, n_idle, twist, turn, away, noise = _LEVELS[level - 1]
        bearing = rng.uniform(0, 2 * np.pi)
        distance = away * rng.uniform(0.8, 1.2)
        signs = rng.choice([-1.0, 1.0], n_turning + 1)
        turns = np.zeros(n_turning + n_idle)
        chosen = rng.permutation(n_turning + n_idle)[:n_turning]
        turns[chosen] = turn * rng.uniform(0.8, 1.2, n_turning) * signs[1:]
        # each class has six to eight tenths of the rows of the one before it
        sizes = np.cumprod([1.0, *rng.uniform(0.6, 0.8, n_classes - 1)])
        labels = rng.permutation(n_classes)
        shares = np.cumsum(sizes[labels] / sizes.sum())[:-1]
        config = PolarConfig(
            centre=(
                round(float(distance * np.cos(bearing)), 3),
                round(float(distance * np.sin(bearing)), 3),
            ),
            twist=round(float(signs[0] * twist * rng.uniform(0.85, 1.15)), 3),
            phase=round(float(rng.uniform(0, 2 * np.pi)), 3),
            turns=tuple(turns.round(3).tolist()),
            cuts=(),
            labels=tuple(labels.tolist()),
            noise=noise,
        )
        angle = cls(config)._angle(rng.normal(size=(4000, 2 + len(turns))))
        return cls(config.model_copy(update={"cuts": cuts_of(angle, tuple(shares.tolist()))}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the two coordinates, then the numbers."""
        text = "continuous, symmetric, bell-shaped"
        return (
            Variable(name="feat_0", kind="reading", abstract=text),
            Variable(name="feat_1", kind="reading", abstract=text),
            *(
                Variable(name=f"feat_{2 + i}", kind="number", abstract=text, relevant=turn != 0)
                for i, turn in enumerate(self.config.turns)
            ),
        )

    def outcome(self) -> Outcome:
        """Return classes of falling size."""
        return Outcome("classes", len(self.config.labels))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw normal points and numbers; the observed class is that of a noisy angle."""
        z = rng.normal(size=(n, 2 + len(self.config.turns))).clip(-4, 4)
        angle = self._angle(z)
        noisy = (angle + self.config.noise * rng.normal(size=n)) % 1
        features = {f"feat_{i}": column for i, column in enumerate(z.T)}
        return Sample(features, self._sectors(noisy), self._sectors(angle))

    def _angle(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the twisted angle in turns, from 0 to 1."""
        x, y = (z[:, i] - self.config.centre[i] for i in range(2))
        angle = self.config.phase + np.arctan2(y, x) + self.config.twist * np.hypot(x, y)
        for i, turn in enumerate(self.config.turns):
            angle = angle + turn * z[:, 2 + i]
        turned: NDArray[np.float64] = angle / (2 * np.pi) % 1
        return turned

    def _sectors(self, angle: NDArray[np.float64]) -> NDArray[Any]:
        """Return the class at each angle."""
        return np.array(self.config.labels)[np.digitize(angle, self.config.cuts)]

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        x, y = config.centre
        turns = " ".join(spell(t, f"z(feat_{2 + i})") for i, t in enumerate(config.turns) if t)
        ends = (0, *config.cuts, 1)
        sectors = [f"{k} from {ends[i]:g} to {ends[i + 1]:g}" for i, k in enumerate(config.labels)]
        return (
            f"x = z(feat_0) {-x:+g}, y = z(feat_1) {-y:+g}, z() being a feature standardised; "
            f"angle = {config.phase:g} + atan2(y, x) {config.twist:+.4g} * sqrt(x^2 + y^2) "
            f"{turns}; the class by angle / (2 pi) modulo 1 is {', '.join(sectors)}; in train "
            f"normal noise of {config.noise:g} is added to angle / (2 pi)"
        )

    def solution(self, names: Names) -> Solution:
        """Return harmonics of the angle, with centre, twist and turns fitted by random search."""
        places, numbers = (
            [names[v.name] for v in self.variables() if v.kind == kind]
            for kind in ("reading", "number")
        )
        return Solution(_FEATURES.format(places=places, numbers=numbers), "linear")


_FEATURES = """\
places, numbers = {places}, {numbers}

def parts(frame):
    xy = (frame[places] - train[places].mean()) / train[places].std().mean()
    z = (frame[numbers] - train[numbers].mean()) / train[numbers].std()
    return xy.to_numpy(), z.to_numpy()

def harmonics(xy, z, fit, n):
    x, y = (xy - fit[:2]).T
    angle = np.arctan2(y, x) + fit[2] * np.hypot(x, y) + z @ fit[3:]
    waves = angle[:, None] * np.arange(1, n + 1)
    return np.hstack([np.sin(waves), np.cos(waves)])

xy, z = parts(train)
classes = pd.get_dummies(train[TARGET]).to_numpy(dtype=float)
classes = (classes - classes.mean(axis=0)) / classes.std(axis=0) ** 0.5

def misfit(fit):
    waves = np.hstack([np.ones((len(z), 1)), harmonics(xy, z, fit, 3)])
    return ((classes - waves @ np.linalg.lstsq(waves, classes, rcond=None)[0]) ** 2).sum()

# centre, twist, and how much each number turns: search at random, then ever closer to the best
rng = np.random.default_rng(0)
wide = np.array([0.8, 0.8, 1.8, *[1.2] * len(numbers)])
tried = rng.uniform(-wide, wide, (800, len(wide)))
for step in (0.3, 0.2, 0.12, 0.08, 0.05, 0.03):
    best = tried[np.argsort([misfit(fit) for fit in tried])[:8]]
    near = np.repeat(best, 25, axis=0)
    tried = np.vstack([best, near + step * wide * rng.normal(size=near.shape)])
best = min(tried, key=misfit)

def features(frame):
    return harmonics(*parts(frame), best, 4)
"""
