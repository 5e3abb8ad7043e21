"""Missing not at random: the pattern of gaps decides which way the numbers count.

Where exactly one of two fields is empty, part of the linear rule is turned over. Neither the gaps
of one column nor those of all columns together say anything about the class, and what stands in
those columns says nothing either; whoever marks the gaps before filling them, and crosses "exactly
one of two is empty" with the numbers, sees the whole rule.
"""

from typing import ClassVar, Literal, Self

import numpy as np

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
    binary,
    spell,
)
from sandmle.types import Record

# columns with gaps, numbers in the rule, idle numbers, size of the part of the rule that is never
# turned, steepness of the logistic noise; by level
_LEVELS = (
    (2, 3, 0, 0.85, 9.0),
    (3, 3, 0, 0.65, 8.0),
    (3, 3, 1, 0.45, 8.0),
    (4, 3, 1, 0.3, 7.0),
    (4, 4, 1, 0.15, 7.0),
)


class MnarColumn(Record):
    """A column: the share of its cells that are empty, and its two weights in the rule."""

    kind: Literal["number", "reading", "amount"]
    gaps: float = 0.0
    turned: float = 0.0
    steady: float = 0.0


class MnarConfig(Record):
    """The drawn parameters; `pair` are the positions of the columns whose gaps count."""

    columns: tuple[MnarColumn, ...]
    pair: tuple[int, int]
    steepness: float


@FAMILIES.register("mnar")
class Mnar(FamilyOf[MnarConfig]):
    """See the module's text."""

    name: ClassVar[str] = "mnar"
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["binary"]
    # not those that make gaps of another kind
    mutations: ClassVar[tuple[str, ...]] = (
        "unit_mixup", "decimal_comma", "unit_text", "swapped_fields", "recalibrated",
        "double_entry", "biased_recorder",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (110, 200)
    config_type = MnarConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which columns have gaps, which two of them count, and the weights."""
        n_gaps, n_used, n_idle, steady, steepness = _LEVELS[level - 1]
        columns = [
            # no plain numbers: two fields that are exchanged cannot be told apart by a gap
            MnarColumn(kind="amount" if coin < 0.5 else "reading", gaps=gaps)
            for coin, gaps in zip(
                rng.random(n_gaps), rng.uniform(0.38, 0.55, n_gaps).round(3), strict=True
            )
        ]
        weights = rng.uniform(0.8, 1.3, (n_used, 2)) * rng.choice([-1.0, 1.0], (n_used, 2))
        for turned, kept in (weights * (1, steady)).round(4).tolist():
            columns.append(MnarColumn(kind="number", turned=turned, steady=kept))
        columns += [MnarColumn(kind="number")] * n_idle
        order = rng.permutation(len(columns)).tolist()
        places = rng.permutation([i for i, j in enumerate(order) if j < n_gaps])[:2]
        config = MnarConfig(
            columns=tuple(columns[j] for j in order),
            pair=(int(places.min()), int(places.max())),
            steepness=steepness,
        )
        return cls(config)

    def variables(self) -> tuple[Variable, ...]:
        """Return all columns; a fault in the values of one with gaps would change nothing."""
        return tuple(
            Variable(
                name=f"feat_{i}",
                kind=column.kind,
                abstract="continuous, often empty" if column.gaps else "continuous, bell-shaped",
                relevant=column.turned != 0,
            )
            for i, column in enumerate(self.config.columns)
        )

    def outcome(self) -> Outcome:
        """Return two balanced classes."""
        return Outcome("binary", 2)

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent columns and gaps; the observed class has logistic noise."""
        columns = self.config.columns
        x = rng.normal(size=(len(columns), n))
        empty = rng.random((len(columns), n)) < np.array([[c.gaps] for c in columns])
        first, second = self.config.pair
        turn = np.where(empty[first] ^ empty[second], -1.0, 1.0)
        latent = np.zeros(n)
        for values, column in zip(x, columns, strict=True):
            latent += (column.turned * turn + column.steady) * values
        observed, clean = binary(rng, latent / self._spread(), self.config.steepness)
        features = {}
        for i, column in enumerate(columns):
            size = 0.6 if column.kind == "amount" else 1.0
            features[f"feat_{i}"] = np.where(empty[i], np.nan, size * x[i])
        return Sample(features, observed, clean)

    def _spread(self) -> float:
        """Return the standard deviation of the sum, were half of the rows turned."""
        squares = [column.turned**2 + column.steady**2 for column in self.config.columns]
        return float(f"{np.sqrt(sum(squares)):.5g}")

    def rule(self) -> str:
        """Return the formula."""
        first, second = self.config.pair
        used = [(i, column) for i, column in enumerate(self.config.columns) if column.turned]
        turned = " ".join(spell(column.turned, f"z(feat_{i})") for i, column in used)
        steady = " ".join(spell(column.steady, f"z(feat_{i})") for i, column in used)
        return (
            f"class 1 iff s * ({turned}) {steady} > 0, z() being a feature standardised and s -1 "
            f"where exactly one of feat_{first} and feat_{second} is empty, else 1; in train the "
            f"class is drawn with probability logistic({self.config.steepness:g} * that sum / "
            f"{self._spread():g})"
        )

    def solution(self, names: Names) -> Solution:
        """Return the numbers crossed with each pair of gaps, and a sparse linear model."""
        columns = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES, "sparse", _BEFORE.format(columns=columns))


_BEFORE = """\
# whether a cell is empty is kept before gaps are filled
columns = {columns}
with_gaps = [name for name in columns if train[name].isna().any()]
numbers = [name for name in columns if name not in with_gaps]
for frame in (train, test):
    for name in with_gaps:
        frame["no " + name] = frame[name].isna()
"""

_FEATURES = """\
def features(frame):
    z = ((frame[numbers] - train[numbers].mean()) / train[numbers].std()).to_numpy()
    found = [z]
    for i, first in enumerate(with_gaps):
        for second in with_gaps[i + 1 :]:
            one = frame["no " + first] != frame["no " + second]
            found.append(z * np.where(one, -1.0, 1.0)[:, None])
    return np.hstack(found)
"""
