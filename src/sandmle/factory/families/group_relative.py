"""Group relative: what counts is how far a number lies from the mean of its own group.

Groups differ a lot and none is on both sides, so the raw numbers say little. Whoever subtracts the
mean of the group, and also looks at the size of the difference, sees the whole rule.
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
    Sample,
    Scale,
    Solution,
    Split,
    Variable,
    binary,
    spell,
)
from sandmle.types import Record

# numbers, of them in the rule, of those by their size, share of the variance that lies between
# groups, steepness of the logistic noise; by level
_LEVELS = (
    (3, 3, 0, 0.4, 8.0),
    (4, 3, 0, 0.55, 7.0),
    (4, 3, 1, 0.68, 7.0),
    (5, 4, 1, 0.8, 6.0),
    (6, 4, 2, 0.87, 6.0),
)


class GroupRelativeConfig(Record):
    """The drawn parameters; `signed` and `distance` have one weight for each number."""

    size: int
    between: float
    signed: tuple[float, ...]
    distance: tuple[float, ...]
    steepness: float
    scale: Scale = Scale(center=0, spread=1)


@FAMILIES.register("group_relative")
class GroupRelative(FamilyOf[GroupRelativeConfig]):
    """See the module's text."""

    name: ClassVar[str] = "group_relative"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "swapped_fields",
        "recalibrated", "biased_recorder",  # a double entry would cost a group the row it replaces
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    config_type = GroupRelativeConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw the size of groups, how much they differ, and which numbers count in which way."""
        n_numbers, n_used, n_distances, between, steepness = _LEVELS[level - 1]
        used = rng.permutation(n_numbers)[:n_used]
        weights = np.zeros((2, n_numbers))
        drawn = rng.uniform(0.8, 1.4, n_used) * rng.choice([-1.0, 1.0], n_used)
        weights[0, used[n_distances:]] = drawn[n_distances:]
        # the size of a difference varies less than the difference itself
        weights[1, used[:n_distances]] = 1.7 * drawn[:n_distances]
        config = GroupRelativeConfig(
            size=int(rng.choice([4, 5, 8])),
            between=round(between + float(rng.uniform(-0.04, 0.04)), 3),
            signed=tuple(weights[0].round(4).tolist()),
            distance=tuple(weights[1].round(4).tolist()),
            steepness=steepness,
        )
        drafted = cls(config)
        scale = Scale.of(drafted._latent(*drafted._rows(rng, 4000)))
        return cls(config.model_copy(update={"scale": scale}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the group and the numbers."""
        text = "continuous, bell-shaped, alike within a group"
        numbers = [
            Variable(name=f"feat_{i}", kind="number", abstract=text, relevant=any(weights))
            for i, weights in enumerate(
                zip(self.config.signed, self.config.distance, strict=True), 1
            )
        ]
        return (Variable(name="feat_0", kind="group", abstract="group of rows"), *numbers)

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw whole groups one after another; the observed class has logistic noise."""
        group, x = self._rows(rng, n)
        latent = self.config.scale(self._latent(group, x))
        observed, clean = binary(rng, latent, self.config.steepness)
        features: dict[str, NDArray[Any]] = {"feat_0": group}
        features |= {f"feat_{i}": column for i, column in enumerate(x, 1)}
        return Sample(features, observed, clean)

    def _rows(
        self, rng: np.random.Generator, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the group of each row, and the numbers (k, n); what is left joins the last."""
        size, between = self.config.size, self.config.between
        n_groups = max(n // size, 1)
        group = np.minimum(np.arange(n) // size, n_groups - 1)
        middles = rng.normal(size=(len(self.config.signed), n_groups))
        own = rng.normal(size=(len(self.config.signed), n))
        return group, np.sqrt(between) * middles[:, group] + np.sqrt(1 - between) * own

    def _latent(self, group: NDArray[np.int64], x: NDArray[np.float64]) -> NDArray[np.float64]:
        latent, config = np.zeros(len(group)), self.config
        for column, signed, distance in zip(x, config.signed, config.distance, strict=True):
            means = np.bincount(group, column) / np.bincount(group)
            apart = column - means[group]
            latent += signed * apart + distance * np.abs(apart)
        return latent

    def rule(self) -> str:
        """Return the formula."""
        config = self.config
        terms = [spell(w, f"d(feat_{i})") for i, w in enumerate(config.signed, 1) if w]
        terms += [spell(w, f"|d(feat_{i})|") for i, w in enumerate(config.distance, 1) if w]
        return (
            f"class 1 iff {' '.join(terms)} > {config.scale.center:g}, d() being a feature "
            "standardised minus its mean over all rows of the split with the same feat_0; in train "
            f"the class is drawn with probability logistic({config.steepness:g} * (that sum - "
            f"{config.scale.center:g}) / {config.scale.spread:g})"
        )

    def solution(self, names: Names) -> Solution:
        """Return the differences from the group's mean and their sizes, and a sparse model."""
        columns = [names[v.name] for v in self.variables() if v.kind == "number"]
        group = names["feat_0"]
        return Solution(
            _FEATURES.format(columns=columns, group=group),
            "sparse",
            _BEFORE.format(columns=columns, group=group),
        )


_BEFORE = """\
# a gap is best filled with the mean of its group
for frame in (train, test):
    for name in {columns}:
        value = pd.to_numeric(frame[name], errors="coerce")
        frame[name] = value.fillna(value.groupby(frame["{group}"]).transform("mean"))
"""

_FEATURES = """\
columns = {columns}

def features(frame):
    apart = frame[columns] - frame.groupby("{group}")[columns].transform("mean")
    return np.hstack([apart.to_numpy(), apart.abs().to_numpy()])
"""
