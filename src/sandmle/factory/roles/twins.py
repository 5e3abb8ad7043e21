"""Duplicates: within a corpus by structure or text, and of the evaluation tasks by structure."""

import re
import threading
from collections.abc import Sequence
from typing import NamedTuple

from sandmle.factory.seeds.nearness import MOST_ALIKE, alike, nearest_evaluation
from sandmle.tasks.folder import Task
from sandmle.types import TaskDNA, TaskSpec

MOST_SHARED = 0.8  # of two texts, or two rules, the share of their runs of words that both have
_RUN = 4

Runs = frozenset[tuple[str, ...]]


class Structure(NamedTuple):
    """What makes a task hard, without its story: numbers and names are taken out of the rule."""

    dna: TaskDNA
    mutations: frozenset[str]
    rule: Runs


class Twins:
    """Knows the tasks of a corpus so far; safe to use from several threads."""

    def __init__(self, tasks: Sequence[Task] = ()) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Structure, Runs]] = {}
        for task in tasks:
            if task.spec is not None:
                self.add(task.id, structure(task.spec), task.description)

    def add(self, name: str, shape: Structure, text: str) -> tuple[str, str] | None:
        """Add a task unless it is like another; returns the reason and which one, or None."""
        runs = _runs(text)
        with self._lock:
            for other, (known, said) in self._known.items():
                if _same(shape, known):
                    return "duplicate_structure", other
                if _shared(runs, said) > MOST_SHARED:
                    return "duplicate_text", other
            self._known[name] = shape, runs
        return None


def structure(spec: TaskSpec) -> Structure:
    """Return what two tasks are compared by."""
    names = [one.name for one in spec.feature_mapping.values()]
    rule = re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", "x", spec.hidden_rule_logic)
    return Structure(
        dna=with_metric(spec),
        mutations=frozenset(mutation.name for mutation in spec.mutations),
        rule=_runs(re.sub(r"\d+(\.\d+)?", "0", rule)),
    )


def like_evaluation(spec: TaskSpec) -> str | None:
    """Return the evaluation task that a specification has the structure of, if there is one."""
    name, how = nearest_evaluation(with_metric(spec))
    return name if round(how, 6) > MOST_ALIKE else None


def with_metric(spec: TaskSpec) -> TaskDNA:
    """Return the structure of a task with what it is measured by."""
    extra = {**spec.dna.extra, "metric": spec.evaluation_specs.metric}
    return spec.dna.model_copy(update={"extra": extra})


def _same(first: Structure, second: Structure) -> bool:
    """Return whether faults, rule and structure are those of one task in two stories."""
    return (
        first.mutations == second.mutations
        and _shared(first.rule, second.rule) > MOST_SHARED
        and round(alike(first.dna, second.dna).whole, 6) > MOST_ALIKE
    )


def _shared(first: Runs, second: Runs) -> float:
    return len(first & second) / max(1, len(first | second))


def _runs(text: str) -> Runs:
    words = re.findall(r"\w+", text.lower())
    return frozenset(tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1))
