"""Scripted searches: what a model says node by node, and what the trajectory shows of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from build import build_task

from sandmle.config import EnvSection
from sandmle.env.workbench import Outcome, Workbench
from sandmle.llm.base import Completion, Message
from sandmle.sandbox.base import Sandbox
from sandmle.scaffolds.base import SCAFFOLDS
from sandmle.tasks.folder import Task
from sandmle.types import Limits

ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
RIGHT = ["1", "0", "1", "0"]


def writes(right: int = 4) -> str:
    """Return a program that leaves a valid submission with this many right answers."""
    labels = [label if i < right else str(1 - int(label)) for i, label in enumerate(RIGHT)]
    rows = "".join(f"{name},{label}\\n" for name, label in zip("abcd", labels, strict=True))
    return f"open('submission.csv', 'w').write('id,label\\n{rows}')"


def fenced(code: str, plan: str = "A plan.") -> str:
    return f"{plan}\n```python\n{code}\n```"


def verdict(metric: float | None, is_bug: bool = False) -> str:
    return json.dumps({"is_bug": is_bug, "summary": "It ran.", "metric": metric})


def good(metric: float, right: int = 4) -> list[str]:
    """Return what is said of a node that is good: its program, and its review."""
    program = f"{writes(right)}\nprint('validation metric:', {metric})"
    return [fenced(program, f"Reaches {metric}."), verdict(metric)]


CRASH = [fenced("raise ValueError('no such column')", "Fails.")]


def script(*nodes: float | None) -> list[str]:
    """Return the replies for nodes in order: a metric, or None for a program that crashes."""
    return [reply for one in nodes for reply in (CRASH if one is None else good(one))]


def together(*nodes: float | None) -> list[str]:
    """Return the replies for nodes of one round: all programs, then the reviews of the good."""
    said = [CRASH if one is None else good(one) for one in nodes]
    return [one[0] for one in said] + [reply for one in said for reply in one[1:]]


class Listening:
    """Gives its replies in order and keeps what it was asked; an exception is raised."""

    def __init__(self, replies: Sequence[str | Exception]) -> None:
        self._replies = list(replies)
        self.asked: list[list[Message]] = []

    def complete(self, messages: Sequence[Message]) -> Completion:
        self.asked.append(list(messages))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply, prompt_tokens=10, completion_tokens=1)

    @property
    def left(self) -> int:
        return len(self._replies)


class Dice:
    """Chance that comes out as it is written down; `weights` are those of the draws."""

    def __init__(self, *values: float) -> None:
        self._values = list(values)
        self.weights: list[list[float]] = []

    def random(self) -> float:
        return self._values.pop(0)

    def choice(self, among: Sequence[Any]) -> Any:
        return among[int(self._values.pop(0))]

    def choices(self, among: Sequence[Any], weights: Sequence[float]) -> list[Any]:
        self.weights.append(list(weights))
        value = int(self._values.pop(0))
        assert value in among
        return [value]


def cast(monkeypatch: pytest.MonkeyPatch, *values: float) -> Dice:
    """Let the next search have these chances."""
    dice = Dice(*values)
    monkeypatch.setattr("sandmle.scaffolds.lab.Random", lambda seed: dice)
    return dice


def play(
    task: Task, sandbox: Sandbox, name: str, llm: Any, limits: Limits | None = None, **env: Any
) -> Outcome:
    """Play one episode; `env` are keys of `[env]`."""
    section = EnvSection(scaffold=name, **env)
    return SCAFFOLDS.get(name)(Workbench(task, sandbox, section, limits or Limits()), llm)


def grown(outcome: Outcome) -> list[tuple[str, tuple[int, ...], float | None]]:
    """Return operator, parents and metric of each node."""
    nodes = [turn.node for turn in outcome.turns]
    return [(n.operator, n.parents, n.metric) for n in nodes if n is not None]


def small_task(folder: Path, metric: str = "accuracy") -> Task:
    """Return a task of four rows; more is better with accuracy, less with rmse."""
    classes = ("0", "1") if metric == "accuracy" else ()
    return build_task(folder, ANSWERS, metric, classes)
