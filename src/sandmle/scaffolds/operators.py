"""Operators: what a model is asked for, and which parts of what is known it is shown.

A pack is one set of operators. The same search with another pack is another scaffold.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sandmle.env.packages import installed
from sandmle.env.workbench import Workbench
from sandmle.files import render
from sandmle.llm.base import Message
from sandmle.scaffolds.memory import Memory, nothing, recall
from sandmle.scaffolds.review import METRIC_LINE
from sandmle.scaffolds.tree import Node, Tree

_PACKAGE = "sandmle.scaffolds"


class Pack(NamedTuple):
    """By operator, what it is shown: `output` of the program it works on, the data's preview, the
    installed packages, and what it remembers. `name` begins the names of the templates.
    """

    name: str
    memory: Mapping[str, Memory]
    output: frozenset[str]
    preview: frozenset[str]
    packages: frozenset[str]
    k_fold: int = 1


def proposal(
    pack: Pack,
    operator: str,
    parents: tuple[Node, ...],
    tree: Tree,
    workbench: Workbench,
    steps_left: int,
) -> list[Message]:
    """Return what a model is told when it is to write a program."""
    remembered = pack.memory.get(operator, nothing)(tree, parents[0])
    left = workbench.seconds_left()
    facts: dict[str, Any] = {
        **_task(workbench),
        "preview": workbench.preview() if operator in pack.preview else "",
        "memory": recall(remembered, tree.best()),
        "parents": [node for node in parents if node is not tree.root],
        "outputs": operator in pack.output,
        "instructions": _text(f"{pack.name}_{operator}"),
        "k_fold": pack.k_fold,
        "metric_line": METRIC_LINE,
        "limits": workbench.limits,
        "packages": installed() if operator in pack.packages else {},
        "steps_left": steps_left,
        "seconds_left": None if left is None else max(0.0, left),
        "wall_s": workbench.config.wall_s,
    }
    # the seconds stand at the very end, where a replay leaves them out of account
    text = _text("proposal", **facts).rstrip()
    return [Message("system", _text("system")), Message("user", text)]


def reviewing(workbench: Workbench, code: str, output: str) -> list[Message]:
    """Return what a model is told when it is to judge a program that has run."""
    text = _text("review", **_task(workbench), code=code, output=output)
    return [Message("system", _text("review_system")), Message("user", text)]


def _task(workbench: Workbench) -> dict[str, Any]:
    return {"card": workbench.task.card, "description": workbench.task.description.strip()}


def _text(name: str, **facts: Any) -> str:
    return render(_PACKAGE, f"prompts/{name}.md.j2", **facts)
