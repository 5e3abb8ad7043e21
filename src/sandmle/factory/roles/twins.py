"""Duplicates within a corpus: the same structure in the same domain, or nearly the same text."""

import re
import threading
from collections.abc import Sequence

from sandmle.files import sha256, to_json
from sandmle.tasks.folder import Task
from sandmle.types import TaskDNA

MOST_ALIKE = 0.8  # of two texts, the share of their runs of words that both have
_RUN = 4


class Twins:
    """Knows the tasks of a corpus so far; safe to use from several threads."""

    def __init__(self, tasks: Sequence[Task] = ()) -> None:
        self._lock = threading.Lock()
        self._structures: dict[str, str] = {}
        self._texts: dict[str, frozenset[tuple[str, ...]]] = {}
        for task in tasks:
            spec = task.spec
            if spec is not None:
                names = [mutation.name for mutation in spec.mutations]
                self.add(
                    task.id, structure(spec.dna, spec.scenario.domain, names), task.description
                )

    def add(self, name: str, shape: str, text: str) -> str | None:
        """Add a task unless it is like another; returns the reason and which one, or None."""
        runs = _runs(text)
        with self._lock:
            twin = self._structures.get(shape)
            if twin is not None:
                return f"duplicate_structure: {twin}"
            for other, known in self._texts.items():
                if len(runs & known) > MOST_ALIKE * len(runs | known):
                    return f"duplicate_text: {other}"
            self._structures[shape], self._texts[name] = name, runs
        return None


def structure(dna: TaskDNA, domain: str, mutations: Sequence[str]) -> str:
    """Return a hash of what two tasks of one structure share: sizes and stories do not count."""
    facts = dna.model_dump(mode="json", exclude={"dataset_stats", "extra"})
    return sha256(to_json([facts, domain.casefold(), sorted(mutations)]).encode())


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return frozenset(tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1))
