"""A corpus: a folder of task folders with `corpus.json`; also one task folder alone."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from sandmle.errors import TaskError, UsageError
from sandmle.files import sha256, to_json, write_atomic
from sandmle.tasks.folder import CARD, Task, open_task
from sandmle.types import JsonDict, Record, first_fault

INDEX = "corpus.json"


class CorpusIndex(Record):
    """The content of `corpus.json`: how the corpus was made, and its splits by task id."""

    schema_version: Literal[1] = 1
    name: str
    version: str
    generator: str
    seed: int | None = None
    mix: JsonDict = {}
    splits: dict[str, tuple[str, ...]] = {}
    funnel: dict[str, int] = {}
    root_hash: str = Field(pattern=r"^[0-9a-f]{64}$")


class Broken(NamedTuple):
    """A folder that should have been a task, and why it is not."""

    path: Path
    reason: str


class Corpus:
    """The tasks of a corpus in the order of their ids; broken ones are listed apart."""

    def __init__(
        self, root: Path, tasks: Sequence[Task], broken: Sequence[Broken], index: CorpusIndex | None
    ) -> None:
        self.root = root
        self.tasks = tuple(sorted(tasks, key=lambda task: task.id))
        self.broken = tuple(broken)
        self.index = index

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, number: int) -> Task:
        return self.tasks[number]

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @property
    def root_hash(self) -> str:
        """Return the SHA-256 over the ids and content hashes of the tasks."""
        return root_hash(self.tasks)

    def get(self, task_id: str) -> Task:
        """Return the task with this id; `UsageError` if there is none."""
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise UsageError(f"{self.root}: no task {task_id!r}; `sandmle tasks list` shows them")

    def filter(self, keep: Callable[[Task], bool]) -> "Corpus":
        """Return the corpus with only the tasks for which `keep` is true."""
        return Corpus(self.root, [t for t in self.tasks if keep(t)], self.broken, self.index)

    def head(self, n: int) -> "Corpus":
        """Return the corpus with only its first `n` tasks."""
        return Corpus(self.root, self.tasks[:n], self.broken, self.index)

    def split(self, name: str) -> "Corpus":
        """Return one of the splits that `corpus.json` names."""
        splits = self.index.splits if self.index else {}
        if name not in splits:
            known = ", ".join(sorted(splits)) or "none"
            raise UsageError(f"{self.root}: no split {name!r}; there are: {known}")
        members = set(splits[name])
        return self.filter(lambda task: task.id in members)


def open_corpus(path: Path | str) -> Corpus:
    """Open a corpus, or a single task folder as a corpus of one.

    A broken task does not stop the rest: it is in `broken`. Raises `UsageError` if nothing is
    there.
    """
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder; `sandmle generate` makes a corpus")
    if (root / CARD).exists():
        return Corpus(root, [open_task(root)], [], None)
    tasks, broken = [], []
    try:
        folders = sorted(root.iterdir())
    except OSError as error:
        raise UsageError(f"{root}: cannot be read ({error.strerror})") from None
    for folder in folders:
        if folder.name.startswith(".") or not _looks_like_a_task(folder):
            continue
        try:
            tasks.append(open_task(folder))
        except TaskError as error:
            broken.append(Broken(folder, str(error)))
    if not tasks and not broken:
        raise UsageError(f"{root}: holds no task folder; `sandmle generate` makes a corpus")
    return Corpus(root, tasks, broken, _read_index(root))


def _looks_like_a_task(folder: Path) -> bool:
    return any((folder / name).exists() for name in (CARD, "public", "private"))


def write_index(root: Path, index: CorpusIndex) -> None:
    """Write `corpus.json`, whole or not at all."""
    write_atomic(root / INDEX, to_json(index.model_dump(mode="json"), indent=2) + "\n")


def root_hash(tasks: Sequence[Task]) -> str:
    """Return one hash for a set of tasks, independent of where they lie."""
    pairs = sorted((task.id, task.content_hash) for task in tasks)
    return sha256(to_json(pairs).encode())


def split_tasks(
    tasks: Sequence[Task],
    fraction: float,
    seed: int,
    stratum: Callable[[Task], str] = lambda task: task.card.metric.name,
    clusters: Mapping[str, str] | None = None,
) -> tuple[list[Task], list[Task]]:
    """Split tasks into train and validation, about `fraction` of each stratum to the latter.

    Tasks with the same cluster (by id; a task without one is its own) stay on one side. The result
    depends on ids and `seed` only, not on the order of `tasks`.
    """
    if not 0 <= fraction < 1:
        raise UsageError(f"a validation fraction of {fraction} is not within [0, 1)")
    clusters = clusters or {}
    groups: dict[str, list[Task]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: task.id):
        groups[clusters.get(task.id, task.id)].append(task)
    strata: dict[str, list[list[Task]]] = defaultdict(list)
    for members in groups.values():
        strata[stratum(members[0])].append(members)
    train: list[Task] = []
    validation: list[Task] = []
    for name in sorted(strata):
        rng = random.Random(f"{seed}/{name}")
        rng.shuffle(strata[name])
        wanted = round(fraction * sum(map(len, strata[name])))
        for members in strata[name]:
            side = validation if wanted >= len(members) else train
            wanted -= len(members) if side is validation else 0
            side.extend(members)
    return train, validation


def _read_index(root: Path) -> CorpusIndex | None:
    path = root / INDEX
    try:
        return CorpusIndex.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TaskError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise TaskError(f"{path}: {first_fault(error)}") from None
