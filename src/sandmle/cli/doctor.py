"""`sandmle doctor`."""

import logging
import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, table

if TYPE_CHECKING:
    from sandmle.types import Isolation

_NEEDED = ("sandmle", "numpy", "pandas", "scipy", "scikit-learn")
_FOR_TRAINING = ("torch", "transformers", "trl")
_ENABLES = "would enable sandmle train: pip install 'sandmle[train]'"


class Fact(NamedTuple):
    """One thing that works or does not, and what that means."""

    name: str
    ok: bool
    detail: str


def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine, and what each missing thing would enable."""
    facts = [
        Fact("python", True, platform.python_version()),
        Fact("cores", True, str(os.cpu_count())),
        *(_package(name, "") for name in _NEEDED),
    ]
    sandboxes = _sandboxes()
    optional = [_package(name, _ENABLES) for name in _FOR_TRAINING]
    works = all(fact.ok for fact in facts) and any(fact.ok for fact in sandboxes)
    facts += [*sandboxes, *optional]
    if as_json:
        emit({"ok": works, "facts": [fact._asdict() for fact in facts]})
    else:
        rows = [(f.name, "ok" if f.ok else "missing", f.detail) for f in facts]
        table(("what", "state", "detail"), rows)
    raise typer.Exit(0 if works else 1)


def _package(name: str, missing: str) -> Fact:
    try:
        return Fact(name, True, version(name))
    except PackageNotFoundError:
        return Fact(name, False, missing)


def _sandboxes() -> list[Fact]:
    """Run a program in every sandbox: does it work, and what does it leave open?"""
    from sandmle.config import SandboxSection
    from sandmle.errors import SandboxError
    from sandmle.sandbox.base import SANDBOXES, open_sandbox
    from sandmle.types import Limits

    logging.getLogger("sandmle").setLevel(logging.ERROR)  # the table says what a warning would
    facts = []
    for name in SANDBOXES.names():
        try:
            sandbox = open_sandbox(SandboxSection(backend=name, preload="none"))
        except SandboxError as error:
            facts.append(Fact(f"sandbox {name}", False, str(error)))
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = sandbox.open(Path(folder), Limits(wall_s=20)).run("print(6 * 7)")
        sandbox.close()
        works = result.stdout == "42\n"
        detail = _describe(name, sandbox.isolation) if works else result.stderr.strip()[-200:]
        facts.append(Fact(f"sandbox {name}", works, detail))
    return facts


def _describe(name: str, isolation: "Isolation") -> str:
    """Say what a sandbox is here, what it leaves open, and why it is not a stronger one."""
    gaps = [guarantee for guarantee, held in isolation.model_dump().items() if held is False]
    mode = "" if isolation.mode == name else f"{isolation.mode}; "
    reasons = "".join(f"; not {other}: {why}" for other, why in isolation.refused.items())
    return f"{mode}leaves open: {', '.join(gaps) or 'nothing'}{reasons}"
