"""Tags of a table: each of several tags holds by a product of numbers, or by one that a kind turns.

Most tags share their numbers with others, so that nothing can be told by one column alone. Whoever
adds products of the numbers, and the numbers by kind, to a sparse linear model for each tag sees
the whole rule.
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
    binary,
    cuts_of,
    spell,
)
from sandmle.types import Record

# tags, numbers, kinds, how much one more number counts by itself, steepness of the logistic noise;
# by level
_LEVELS = (
    (3, 4, 2, 0.8, 8.0), (3, 4, 2, 0.65, 7.0), (4, 4, 2, 0.5, 7.0), (4, 5, 3, 0.4, 6.0),
    (5, 5, 3, 0.3, 6.0),
)  # fmt: skip


class Tag(Record):
    """The rule of one tag: it holds where a sum is above `cut`.

    The sum is `weight` times the number `first`, times the number `second` or, if that is None, the
    sign in `signs` of the row's kind; plus `alone` times the number `third`.
    """

    first: int
    second: int | None
    third: int
    weight: float
    alone: float
    signs: tuple[int, ...] = ()
    cut: float = 0.0
    spread: float = 1.0


class TableTagsConfig(Record):
    """The drawn parameters."""

    numbers: int
    kinds: int
    tags: tuple[Tag, ...]
    steepness: float


@FAMILIES.register("table_tags")
class TableTags(FamilyOf[TableTagsConfig]):
    """See the module's text."""

    name: ClassVar[str] = "table_tags"
    task_type: ClassVar[str] = "multilabel"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("tags",)
    metrics: ClassVar[tuple[str, ...]] = METRICS_OF["tags"]
    mutations: ClassVar[tuple[str, ...]] = (
        "sentinel", "unit_mixup", "spikes", "decimal_comma", "unit_text", "recalibrated",
        "spelling",
    )  # fmt: skip
    n_train: ClassVar[tuple[int, int]] = (120, 200)
    config_type = TableTagsConfig

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw which numbers make up each tag; tags with a product and with a kind take turns."""
        n_tags, n_numbers, kinds, alone, steepness = _LEVELS[level - 1]
        # every number is in a product or turned by the kind somewhere
        start, order = int(rng.integers(2)), np.tile(rng.permutation(n_numbers), 2).tolist()
        tags = []
        for i in range(n_tags):
            first = order.pop()
            second = order.pop() if (start + i) % 2 == 0 else None
            others = [k for k in range(n_numbers) if k not in (first, second)]
            tag = Tag(
                first=first,
                second=second,
                third=others[int(rng.integers(len(others)))],
                weight=round(float(rng.uniform(0.9, 1.3) * rng.choice([-1.0, 1.0])), 3),
                alone=round(float(alone * rng.uniform(0.8, 1.2) * rng.choice([-1.0, 1.0])), 3),
                signs=tuple((rng.permutation(np.arange(kinds) % 2) * 2 - 1).tolist()),
            )
            tags.append(tag)
        drafted = cls(
            TableTagsConfig(numbers=n_numbers, kinds=kinds, tags=tuple(tags), steepness=steepness)
        )
        z, kind = drafted._drawn(rng, 4000)
        sums = [_sum(tag, z, kind) for tag in tags]
        measured = tuple(
            tag.model_copy(
                update={
                    "cut": cuts_of(one, (float(rng.uniform(0.55, 0.7)),))[0],
                    "spread": round(float(one.std()), 3),
                }
            )
            for tag, one in zip(tags, sums, strict=True)
        )
        return cls(drafted.config.model_copy(update={"tags": measured}))

    def variables(self) -> tuple[Variable, ...]:
        """Return the numbers, then the kind."""
        numbers = [
            Variable(name=f"feat_{i}", kind="number", abstract="continuous, symmetric, bell-shaped")
            for i in range(self.config.numbers)
        ]
        kind = Variable(
            name=f"feat_{self.config.numbers}",
            kind="category",
            abstract=f"categorical, {self.config.kinds} values of equal frequency",
            size=self.config.kinds,
        )
        return (*numbers, kind)

    def outcome(self) -> Outcome:
        """Return the tags."""
        return Outcome("tags", len(self.config.tags))

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw independent normal numbers and kinds; observed tags have logistic noise."""
        z, kind = self._drawn(rng, n)
        drawn = [
            binary(rng, (_sum(tag, z, kind) - tag.cut) / tag.spread, self.config.steepness)
            for tag in self.config.tags
        ]
        observed, clean = (np.column_stack(tags) for tags in zip(*drawn, strict=True))
        features: dict[str, NDArray[Any]] = {f"feat_{i}": one for i, one in enumerate(z)}
        return Sample({**features, f"feat_{len(z)}": kind}, observed, clean)

    def _drawn(
        self, rng: np.random.Generator, n: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the numbers (k, n) and the kind of each row."""
        z = rng.normal(size=(self.config.numbers, n)).clip(-4, 4)
        return z, rng.integers(0, self.config.kinds, n)

    def rule(self) -> str:
        """Return the formula of each tag."""
        rules = []
        for number, tag in enumerate(self.config.tags):
            other = "s" if tag.second is None else f"z(feat_{tag.second})"
            terms = [
                spell(tag.weight, f"z(feat_{tag.first}) * {other}"),
                spell(tag.alone, f"z(feat_{tag.third})"),
            ]
            rule = f"tag {number} iff {' '.join(terms)} > {tag.cut:g}"
            if tag.second is None:
                signs = ", ".join(f"{sign:+d}" for sign in tag.signs)
                rule += f", s being {signs} where feat_{self.config.numbers} is 0, 1, ..."
            rules.append(rule)
        return (
            f"{'; '.join(rules)}; z() is a feature standardised; in train a tag is drawn with "
            f"probability logistic({self.config.steepness:g} * (its sum - its limit) in units of "
            "the sum's standard deviation)"
        )

    def solution(self, names: Names) -> Solution:
        """Return products of the numbers, the numbers by kind, and a sparse model for each tag."""
        *columns, kind = [names[v.name] for v in self.variables()]
        return Solution(_FEATURES.format(columns=columns, kind=kind), "sparse")


def _sum(tag: Tag, z: NDArray[np.float64], kind: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what decides a tag, term by term: no BLAS, so the same bits on every machine."""
    other = np.array(tag.signs)[kind] if tag.second is None else z[tag.second]
    total: NDArray[np.float64] = tag.weight * z[tag.first] * other + tag.alone * z[tag.third]
    return total


_FEATURES = """\
columns = {columns}
kinds = sorted(train["{kind}"].unique())

def features(frame):
    z = ((frame[columns] - train[columns].mean()) / train[columns].std()).to_numpy()
    first, second = np.triu_indices(z.shape[1], 1)
    by_kind = [z * (frame["{kind}"] == kind).to_numpy()[:, None] for kind in kinds]
    return np.hstack([z, z[:, first] * z[:, second], *by_kind])
"""
