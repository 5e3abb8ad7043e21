"""One task that is to be made, what it is made with, and how far it came."""

from typing import Literal, NamedTuple

from sandmle.errors import AnswerError, ModelError
from sandmle.factory.mix import Seed
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.roles.report import Stage
from sandmle.factory.roles.twins import Twins, like_evaluation, structure
from sandmle.factory.roles.workshop import Unfit
from sandmle.files import sha256, to_json
from sandmle.sandbox.base import Sandbox
from sandmle.types import Limits, Record, TaskSpec

Factory = Literal["llm", "hybrid"]


class Order(Record):
    """What is wanted: of each seed so many scenarios, of each of these so many mutation sets."""

    seeds: tuple[Seed, ...]
    scenarios: int = 5
    mutation_sets: int = 4
    seed: int = 0
    factory: Factory = "llm"


class Item(NamedTuple):
    """One task that is to be made."""

    seed: Seed
    scenario: int
    mutation: int

    @property
    def where(self) -> tuple[int, int]:
        """Return scenario and mutation set."""
        return self.scenario, self.mutation

    @property
    def number(self) -> int:
        """Return a number that no other item has, by chance."""
        return int(self._hash[:7], 16)

    @property
    def task_id(self) -> str:
        """Return its id, which tells nothing."""
        return f"task-{self._hash[:10]}"

    def call(self, role: str) -> Call:
        """Return a role's call for it."""
        return Call(role, self.seed.name, *self.where)

    @property
    def _hash(self) -> str:
        return sha256(to_json([self.seed.name, self.scenario, self.mutation]).encode())


class Room(NamedTuple):
    """What the items of a corpus are made with; `limits` are those of a model's programs."""

    desk: Desk
    box: Sandbox
    twins: Twins
    limits: Limits

    def require_new(self, spec: TaskSpec) -> None:
        """Refuse the structure of a task that results are reported on."""
        like = like_evaluation(spec)
        if like is not None:
            raise Unfit("like_evaluation", like)

    def take(self, spec: TaskSpec, text: str) -> None:
        """Take a task into the corpus, or refuse it as the twin of one that is there."""
        twin = self.twins.add(spec.id, structure(spec), text)
        if twin is not None:
            raise Unfit(*twin)


class Halted(Unfit):
    """An item that went no further than a stage."""

    def __init__(self, stage: Stage, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.stage = stage


def halted(stage: Stage, error: ModelError | Unfit) -> Halted:
    """Return what ended an item, with its name."""
    if isinstance(error, Unfit):
        return Halted(stage, error.reason, str(error))
    named = "bad_answer" if isinstance(error, AnswerError) else "model_failed"
    return Halted(stage, named, str(error))
