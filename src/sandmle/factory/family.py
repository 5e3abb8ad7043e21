"""What a procedural family is: a hidden rule with parameters, told without any story.

One family is one file in `factory/families/`. It draws its parameters from a generator, samples
rows in the abstract (features by name, target as it is seen and as it truly is), states its rule
in words, and says how to solve it. Names, units and the story come from a skin.
"""

from pkgutil import iter_modules
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sandmle.factory import families
from sandmle.registry import Registry
from sandmle.types import Feature, Record, TargetInfo, TaskDNA

Split = Literal["train", "test"]
VariableKind = Literal[
    "number", "amount", "reading", "category", "group", "code", "time", "latitude", "longitude",
    "image", "frames", "audio", "note", "document", "series", "plan", "node", "query",
]  # fmt: skip
OutcomeKind = Literal[
    "binary", "link", "ordinal", "classes", "number", "amount", "forecast", "count", "relevance",
    "tags", "shares", "mask", "boxes", "span",
]  # fmt: skip

LEVELS = 5
_BINARY = ("roc_auc", "accuracy", "mcc", "log_loss", "balanced_accuracy", "average_precision")
# what each kind of target may be scored by; a family can choose fewer
METRICS_OF: dict[OutcomeKind, tuple[str, ...]] = {
    "binary": _BINARY,
    "link": _BINARY,
    "ordinal": ("quadratic_kappa", "accuracy", "macro_f1"),
    "classes": ("accuracy", "macro_f1", "balanced_accuracy", "log_loss_multiclass", "mcc"),
    "number": ("rmse", "mae", "r2", "spearman"),
    "amount": ("rmsle", "mae", "spearman"),
    "forecast": ("smape", "rmsle", "mae"),
    "count": ("mae", "rmse", "r2"),
    "relevance": ("ndcg",),
    "tags": ("mean_roc_auc", "mean_log_loss"),
    "shares": ("kl_divergence",),
    "mask": ("dice", "mean_iou"),
    "boxes": ("ap50",),
    "span": ("word_jaccard",),
}


class Variable(Record):
    """One feature in the abstract.

    What `Sample.features` holds for it, by `kind`, and what a skin makes of that:

    - `number`: float, mean 0, spread about 1; becomes `center + spread * value`; NaN an empty cell
    - `reading`: the same, but all readings of a task share one unit, center and spread
    - `amount`: float, the logarithm; becomes `typical * exp(value)`
    - `category`: int, 0 to `size` - 1; becomes one of the skin's names
    - `group`: int, a number for each group of rows that no other split has
    - `code`: str, as it is shown
    - `time`: int, minutes since 2023-01-01 00:00 (a Sunday)
    - `latitude`, `longitude`: float, degrees
    - `node`, `query`: like `group`; a node is named in two columns or more, and in other tables
    - `series`: float (n, length), the logarithm of a daily quantity, the last day last
    - `plan`: int (n, length), 0 or 1 for each of the coming days
    - `note`: str; `<3>` in it becomes the fourth of the `size` nouns that are drawn for the task
    - `document`: the same, but in a file of its own
    - `image`: object (n,) of uint8 (height, width) or (height, width, 3), all of one shape
    - `frames`: object (n,) of lists of such pictures
    - `audio`: object (n,) of `Sound`

    `relevant` features are in the rule: a mutation of another would change nothing.
    """

    name: str
    kind: VariableKind
    abstract: str
    relevant: bool = True
    size: int = 0


class Sound(NamedTuple):
    """A recording: samples a second, and float samples (n,) from -1 to 1."""

    rate: int
    samples: NDArray[np.float64]


class Outcome(NamedTuple):
    """The target in the abstract, and what `observed` and `clean` of a sample hold for it.

    - `binary`, `link`, `ordinal`, `classes`: int64 classes (n,), of which there are `size`
    - `number`: float (n,), mean 0, spread 1; `amount`, `forecast`: float (n,), the logarithm
    - `count`, `relevance` (0 to 4): int64 (n,)
    - `tags`: int64 (n, `size`), 0 or 1; `shares`: float (n, `size`), rows add up to 1
    - `mask`: bool (n, *`shape`); `boxes`: object (n,) of float (k, 4) with x, y, width, height,
      at most `size` of them; `shape` is that of the picture
    - `span`: object (n,) of str, with nouns as in a `note`
    """

    kind: OutcomeKind
    size: int = 0
    shape: tuple[int, int] | None = None


class Cells(NamedTuple):
    """A column of a table beside train and test.

    `rows` are positions in the sample, shown as ids; `nodes` numbers of nodes (or groups), shown as
    their names; `numbers` are shown with `decimals`. `marks`, where there are any, are texts that
    stand behind the ids or names.
    """

    kind: Literal["rows", "nodes", "numbers"]
    values: NDArray[Any]
    decimals: int = 0
    marks: NDArray[Any] | None = None


class Sample(NamedTuple):
    """Rows of a family: features (n, ...) each, the target as observed and free of noise (n, ...).

    `tables` are what else belongs to these rows: columns by name, for each of `Family.tables()`.
    """

    features: dict[str, NDArray[Any]]
    observed: NDArray[Any]
    clean: NDArray[Any]
    tables: dict[str, dict[str, Cells]] = {}


class Table(Record):
    """A table that every sample brings its own rows of, such as the edges of a network.

    `path` is below `public/`. `{id}` in names of columns is the name of the id column, `{edge}` in
    descriptions what the story says of an edge.
    """

    path: str
    description: str
    columns: dict[str, str]


class SideTable(NamedTuple):
    """A small table beside train and test: its key is the value of a `category`.

    `columns` are in the abstract like `Sample.features`; the order of rows is that of the values.
    """

    key: str
    columns: dict[str, NDArray[Any]]


class Solution(NamedTuple):
    """How to solve a family, as source: what the reference script is assembled from.

    `features` defines a function `features(frame)` from a frame with the story's columns (numeric
    ones are float without gaps, pictures and sounds are loaded) to an array (n, k); pandas is `pd`,
    numpy `np`, and `train` is the repaired training frame. `model` is what learns from the array,
    see `factory/ladder.py`. `before` runs on the frames `train` and `test` while gaps are still
    NaN. `mask`, `boxes` and `span` want other arrays, see their programs.
    """

    features: str
    model: Literal["linear", "sparse", "trees", "kernel"]
    before: str = ""


Names = dict[str, str]


class Family(Protocol):
    """A drawn member of a family; the class is what is registered.

    `mutations` are the names of those that leave the family's rule recoverable, `forced` those that
    belong to it. `n_train` are the least and most training rows; `n_test` hidden rows tell the
    milestones apart; `n_pool` more are drawn to measure the thresholds on.
    """

    name: ClassVar[str]
    modality: ClassVar[str]
    task_type: ClassVar[str]
    outcomes: ClassVar[tuple[OutcomeKind, ...]]
    metrics: ClassVar[tuple[str, ...]]
    mutations: ClassVar[tuple[str, ...]]
    forced: ClassVar[tuple[str, ...]]
    n_train: ClassVar[tuple[int, int]]
    n_test: ClassVar[int]
    n_pool: ClassVar[int]

    @property
    def config(self) -> Record:
        """Return the drawn parameters; they and a generator determine every sample."""
        ...

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw parameters of difficulty `level`, 1 to `LEVELS`."""
        ...

    @classmethod
    def load(cls, parameters: dict[str, Any]) -> Self:
        """Return the member with these parameters (`config.model_dump()`)."""
        ...

    @classmethod
    def supports(cls, dna: TaskDNA) -> bool:
        """Return whether the family can imitate a task of this structure."""
        ...

    def variables(self) -> tuple[Variable, ...]:
        """Return the features in the order of their columns."""
        ...

    def outcome(self) -> Outcome:
        """Return what is predicted."""
        ...

    def side_table(self) -> SideTable | None:
        """Return the table that the rule joins, if there is one."""
        ...

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that every sample has rows of."""
        ...

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw `n` rows."""
        ...

    def look(self, names: Names) -> str:
        """Return the source of `look(frame)`: what anybody would make of the tables (n, k).

        Empty where the columns of the frame are all there is.
        """
        ...

    def rule(self) -> str:
        """Return the hidden rule in words and symbols, with abstract feature names."""
        ...

    def solution(self, names: Names) -> Solution:
        """Return the reference; `names` maps each variable, and `target`, to its column.

        A side table's file is under `side_table`, its columns under their abstract names; `id` is
        the id column, `nouns` the nouns of a note in their order, separated by blanks.
        """
        ...


FAMILIES: Registry[type[Family]] = Registry(
    "family",
    builtins=tuple(f"{families.__name__}.{m.name}" for m in iter_modules(families.__path__)),
    group="sandmle.families",
)

Config = TypeVar("Config", bound=Record)


# the type that a TaskDNA has for each kind of target
TARGET_TYPES: dict[OutcomeKind, str] = {
    **dict.fromkeys(("binary", "link", "ordinal", "classes", "tags", "shares"), "label"),
    **dict.fromkeys(("number", "amount", "forecast", "count"), "number"),
    "relevance": "ranking",
    "mask": "mask",
    "boxes": "bounding_box",
    "span": "text",
}
_SPECIAL = ("mask", "bounding_box", "text", "ranking")


class FamilyOf(Generic[Config]):
    """What families share; one adds `draw`, `variables`, `outcome`, `sample`, `rule`, `solution`.

    What stands here suits a table.
    """

    modality: ClassVar[str] = "tabular"
    task_type: ClassVar[str] = "classification"
    outcomes: ClassVar[tuple[OutcomeKind, ...]] = ("binary",)
    mutations: ClassVar[tuple[str, ...]] = ()
    forced: ClassVar[tuple[str, ...]] = ()
    n_train: ClassVar[tuple[int, int]] = (50, 200)
    n_test: ClassVar[int] = 1000
    n_pool: ClassVar[int] = 2000
    config_type: ClassVar[type[Record]]

    def __init__(self, config: Config) -> None:
        self.config = config

    @classmethod
    def load(cls, parameters: dict[str, Any]) -> Self:
        """Return the member with these parameters."""
        # a class variable cannot have the type of the parameter
        return cls(cls.config_type.model_validate(parameters))  # type: ignore[arg-type]

    @classmethod
    def supports(cls, dna: TaskDNA) -> bool:
        """Return whether modality, type of task, target and number of classes can be had."""
        return (dna.modality, dna.task_type) == (cls.modality, cls.task_type) and any(
            _imitates(kind, dna.target_info) for kind in cls.outcomes
        )

    def side_table(self) -> SideTable | None:
        """Return None: most rules need no other table."""
        return None

    def tables(self) -> tuple[Table, ...]:
        """Return none: most samples are train and test alone."""
        return ()

    def look(self, names: Names) -> str:
        """Return nothing: most columns speak for themselves."""
        return ""


def _imitates(kind: OutcomeKind, wanted: TargetInfo) -> bool:
    """Return whether a kind of target is of the wanted type, with as many classes."""
    if kind in ("binary", "link"):
        return wanted.cardinality == 2
    if kind in ("ordinal", "classes"):
        return (wanted.cardinality or 0) > 2 and wanted.type not in _SPECIAL
    if TARGET_TYPES[kind] == "number":
        return wanted.cardinality is None and wanted.type not in _SPECIAL
    return wanted.type == TARGET_TYPES[kind]


def dna_features(family: Family) -> tuple[Feature, ...]:
    """Return the features as a TaskDNA lists them."""
    return tuple(Feature(name=v.name, abstract=v.abstract) for v in family.variables())


# --- from a latent score to a target --------------------------------------------------------------


class Scale(Record):
    """Center and spread of a rule's latent score, measured once when a member is drawn."""

    center: float
    spread: float

    @classmethod
    def of(cls, latent: NDArray[np.float64]) -> "Scale":
        """Take median and standard deviation, to five digits."""
        return cls(
            center=float(f"{np.median(latent):.5g}"), spread=float(f"{max(latent.std(), 1e-9):.5g}")
        )

    def __call__(self, latent: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardise."""
        return (latent - self.center) / self.spread


def binary(
    rng: np.random.Generator, z: NDArray[np.float64], steepness: float, cut: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return classes drawn with chance logistic(steepness (z - cut)), and those without noise."""
    chance = 1 / (1 + np.exp(-steepness * (z - cut)))
    return (rng.random(len(z)) < chance).astype(np.int64), (z > cut).astype(np.int64)


def graded(
    rng: np.random.Generator, z: NDArray[np.float64], noise: float, cuts: tuple[float, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes between `cuts` of z with normal noise, and of z itself."""
    seen = z + noise * rng.normal(size=len(z))
    return np.digitize(seen, cuts).astype(np.int64), np.digitize(z, cuts).astype(np.int64)


def quantity(
    rng: np.random.Generator, z: NDArray[np.float64], noise: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return z with normal noise, and z itself."""
    return z + noise * rng.normal(size=len(z)), z


def cuts_of(z: NDArray[np.float64], shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return the values below which each share of `z` lies, to four digits after the point."""
    return tuple(round(float(q), 4) for q in np.quantile(z, shares))


def spell(weight: float, term: str) -> str:
    """Return one summand of a formula."""
    return f"{weight:+.4g} * {term}"
