"""A corpus: a folder of task folders with `corpus.json`; also one task folder alone."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from sandmle.display import facts_table
from sandmle.errors import TaskError, UsageError
from sandmle.files import sha256, to_json, write_atomic
from sandmle.tasks.folder import CARD, Task, open_task
from sandmle.types import JsonDict, Record, first_fault

INDEX = "corpus.json"
PAGE = "page.html"  # what `sandmle view` writes beside the tasks


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

    def _repr_html_(self) -> str:
        counts = Counter(task.card.modality for task in self.tasks)
        facts = {
            "tasks": len(self),
            "broken": len(self.broken),
            "modalities": ", ".join(f"{n} {name}" for name, n in counts.most_common()),
            "splits": ", ".join(f"{len(v)} {k}" for k, v in self.index.splits.items())
            if self.index
            else "none",
            "folder": self.root,
        }
        return facts_table(f"Corpus {self.index.name if self.index else self.root.name}", facts)

    @property
    def root_hash(self) -> str:
        """Return the SHA-256 over the ids and content hashes of the tasks."""
        return root_hash((task.id, task.content_hash) for task in self.tasks)

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


def root_hash(hashes: Iterable[tuple[str, str]]) -> str:
    """Return one hash for tasks by id and content hash, independent of where they lie."""
    return sha256(to_json(sorted(hashes)).encode())


def split_ids(
    strata: Mapping[str, str],
    fraction: float,
    seed: int,
    clusters: Mapping[str, str] | None = None,
) -> tuple[list[str], list[str]]:
    """Split task ids into train and validation, about `fraction` of each stratum to the latter.

    `strata` has the stratum of each id. Ids of one cluster (one without any is its own) stay on one
    side; the first of them says of which stratum a cluster is. The result depends on ids and `seed`
    only, not on any order. Strata that are too small for a whole task of their own share a quota.
    """
    if not 0 <= fraction < 1:
        raise UsageError(f"a validation fraction of {fraction} is not within [0, 1)")
    clusters = clusters or {}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(strata):
        groups[clusters.get(name, name)].append(name)
    members: dict[str, list[list[str]]] = defaultdict(list)
    for group in groups.values():
        members[strata[group[0]]].append(group)
    train: list[str] = []
    validation: list[str] = []
    owed = 0.0  # what rounding has left of the quotas so far
    for stratum in sorted(members):
        rng = random.Random(f"{seed}/{stratum}")
        rng.shuffle(members[stratum])
        owed += fraction * sum(map(len, members[stratum]))
        for group in members[stratum]:
            side = validation if owed >= len(group) - 0.5 else train
            owed -= len(group) if side is validation else 0
            side.extend(group)
    return sorted(train), sorted(validation)


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
