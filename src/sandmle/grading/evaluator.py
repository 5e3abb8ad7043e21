"""Renders a task's `evaluator.py`: the grading code itself, cut out of this package.

The script must run where sandmle is not installed and must never disagree with `Grader`. So it is
not written a second time: `cut` collects the source of the functions that grade, with everything
they use, and the template adds a command line.
"""

import ast
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.errors import UsageError
from sandmle.files import render, safe_read
from sandmle.grading.grader import read_answers, score, threshold_keys
from sandmle.metrics.registry import METRICS
from sandmle.types import TaskCard


def render_evaluator(card: TaskCard) -> str:
    """Return the source of a task's evaluator; it needs numpy, scipy and scikit-learn at most."""
    metric = METRICS.get(card.metric.name)
    return render(
        "sandmle.grading",
        "evaluator.py.j2",
        title="".join(c for c in card.title if c.isprintable() and c not in '"\\'),
        metric=metric.title,
        code=cut(safe_read, read_answers, score, metric.kind.arrays, metric.function),
        schema=card.submission.model_dump(mode="json"),
        extra_truth=metric.kind.extra_truth,
        arrays=metric.kind.arrays.__name__,
        function=metric.function.__name__,
        params={**metric.params, **card.metric.params},
        lower=card.milestones.direction == "min",
        thresholds=threshold_keys(card.milestones),
    )


def cut(*functions: Callable[..., Any]) -> str:
    """Return the source of `functions` and of all they use from their packages, in working order.

    Decorators of functions are dropped, imports of other packages come first. Raises `UsageError`
    for what cannot be cut out: two definitions with one name, or an import under another name.
    """
    packages = {function.__module__.partition(".")[0] for function in functions}
    cutter = _Cutter(packages | {"sandmle"})
    for function in functions:
        cutter.take(function.__module__, function.__name__)
    return "\n".join(sorted(cutter.imports)) + "\n\n\n" + "\n\n\n".join(cutter.pieces)


class _Binding(NamedTuple):
    """A name that an import statement binds in a module."""

    origin: str
    original: str | None
    statement: str


class _Outline(NamedTuple):
    """The top level of a module: its lines, what it defines and what it imports."""

    lines: list[str]
    definitions: dict[str, ast.stmt]
    bindings: dict[str, _Binding]


class _Cutter:
    def __init__(self, packages: set[str]) -> None:
        self.packages = packages
        self.imports: set[str] = set()
        self.pieces: list[str] = []
        self._homes: dict[str, str] = {}

    def take(self, module: str, name: str) -> None:
        """Add the definition that `name` has in `module`, after all that it uses."""
        outline = _outline(module)
        binding = outline.bindings.get(name)
        if binding is not None:
            if binding.origin.partition(".")[0] not in self.packages:
                self.imports.add(binding.statement)
            elif binding.original != name:
                raise UsageError(f"{module}: import {binding.origin} names as they are")
            else:
                self.take(binding.origin, name)
        elif name in outline.definitions and self._homes.get(name) != module:
            if name in self._homes:
                raise UsageError(f"both {self._homes[name]} and {module} define {name!r}")
            self._homes[name] = module
            node = outline.definitions[name]
            for used in sorted(_names(node)):
                self.take(module, used)
            self.pieces.append(_source(outline.lines, node))


@cache
def _outline(module: str) -> _Outline:
    path = sys.modules[module].__file__
    if path is None:
        raise UsageError(f"{module} has no source file")
    source = Path(path).read_text(encoding="utf-8")
    outline = _Outline(source.splitlines(), {}, {})
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            outline.definitions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    outline.definitions[target.id] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            outline.bindings.update(_bindings(node))
    return outline


def _bindings(node: ast.Import | ast.ImportFrom) -> dict[str, _Binding]:
    bindings = {}
    for alias in node.names:
        renamed = f" as {alias.asname}" if alias.asname else ""
        if isinstance(node, ast.ImportFrom):
            origin, original = node.module or "", alias.name
            statement = f"from {origin} import {original}{renamed}"
            bindings[alias.asname or original] = _Binding(origin, original, statement)
        else:
            name = alias.asname or alias.name.partition(".")[0]
            bindings[name] = _Binding(alias.name, None, f"import {alias.name}{renamed}")
    return bindings


def _names(node: ast.stmt) -> set[str]:
    """Return the names that a definition loads when it runs: not those of its annotations."""
    unused: list[ast.AST] = list(node.decorator_list) if isinstance(node, ast.FunctionDef) else []
    for part in ast.walk(node):
        unused += [getattr(part, field, None) or ast.Pass() for field in ("annotation", "returns")]
    skipped = {id(part) for root in unused for part in ast.walk(root)}
    return {
        part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in skipped
    }


def _source(lines: list[str], node: ast.stmt) -> str:
    start = node.lineno
    if isinstance(node, ast.ClassDef) and node.decorator_list:
        start = node.decorator_list[0].lineno
    return "\n".join(lines[start - 1 : node.end_lineno])
