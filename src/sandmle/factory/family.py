"""What a procedural family is: a hidden rule with parameters, told without any story.

One family is one file in `factory/families/`. It draws its parameters from a generator, samples
rows in the abstract (features by name, target as it is seen and as it truly is), states its rule
in words, and writes the ladder's scripts. Names, units and the story come from a skin.
"""

from typing import ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sandmle.registry import Registry
from sandmle.types import Feature, Mutation, Record, TaskDNA

Split = Literal["train", "test"]


class Sample(NamedTuple):
    """Rows of a family: features (n,) each, the target as observed and free of noise (n,)."""

    features: dict[str, NDArray[np.float64]]
    observed: NDArray[np.int64]
    clean: NDArray[np.int64]


class Target(NamedTuple):
    """What a script of the ladder must know about its task; classes as spelled in train.csv."""

    id_column: str
    name: str
    classes: tuple[str, ...]
    wants_score: bool


class Script(NamedTuple):
    """A script of the ladder; `order` is its two-digit prefix, low is easy."""

    order: int
    name: str
    kind: Literal["dummy", "generic", "reference"]
    code: str


class Family(Protocol):
    """A drawn member of a family; the class is what is registered."""

    name: ClassVar[str]
    modality: ClassVar[str]
    task_type: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    levels: ClassVar[int]

    @property
    def config(self) -> Record:
        """Return the drawn parameters; they and a generator determine every sample."""
        ...

    @classmethod
    def draw(cls, rng: np.random.Generator, level: int) -> Self:
        """Draw parameters of difficulty `level`, 1 to `levels`."""
        ...

    @classmethod
    def load(cls, parameters: dict[str, object]) -> Self:
        """Return the member with these parameters (`config.model_dump()`)."""
        ...

    @classmethod
    def supports(cls, dna: TaskDNA) -> bool:
        """Return whether the family can imitate a task of this structure."""
        ...

    def features(self) -> tuple[Feature, ...]:
        """Return the feature columns in their order."""
        ...

    def mutations(self) -> tuple[Mutation, ...]:
        """Return the degradations that are built into the data."""
        ...

    def sample(self, rng: np.random.Generator, n: int, split: Split) -> Sample:
        """Draw `n` rows."""
        ...

    def rule(self) -> str:
        """Return the hidden rule in words and symbols, with abstract feature names."""
        ...

    def solutions(self, target: Target) -> list[Script]:
        """Return the ladder's scripts: they read only `input/` and write `submission.csv`."""
        ...


FAMILIES: Registry[type[Family]] = Registry(
    "family", builtins=("sandmle.factory.families.interaction",), group="sandmle.families"
)
