"""`sandmle doctor`."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, table

# package -> what it is for
_OPTIONAL = {
    "torch": "train grpo: pip install 'sandmle[train]'",
    "transformers": "train grpo: pip install 'sandmle[train]'",
    "trl": "train grpo: pip install 'sandmle[train]'",
}


def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine, and what each missing thing would enable."""
    facts = [("python", True, platform.python_version()), ("cores", True, str(os.cpu_count()))]
    facts += [
        _package(name, "the package itself") for name in ("sandmle", "scikit-learn", "pandas")
    ]
    sandboxes = _sandboxes()
    facts += [(f"sandbox {name}", not fault, fault or open_) for name, fault, open_ in sandboxes]
    facts += [_package(name, purpose) for name, purpose in _OPTIONAL.items()]
    if as_json:
        emit({"ok": True, "facts": [{"name": n, "ok": ok, "detail": d} for n, ok, d in facts]})
    else:
        table(("what", "", "detail"), [(n, "ok" if ok else "missing", d) for n, ok, d in facts])
    raise typer.Exit(0)


def _package(name: str, purpose: str) -> tuple[str, bool, str]:
    try:
        return name, True, version(name)
    except PackageNotFoundError:
        return name, False, f"for {purpose}"


def _sandboxes() -> list[tuple[str, str, str]]:
    """Make every sandbox for real: its name, why it does not work, and what it leaves open."""
    from sandmle.errors import SandboxError
    from sandmle.sandbox.base import SANDBOXES

    found = []
    for name in SANDBOXES.names():
        try:
            sandbox = SANDBOXES.get(name)()
        except SandboxError as error:
            found.append((name, str(error), ""))
            continue
        guarantees: dict[str, Any] = sandbox.isolation.model_dump(exclude={"mode", "refused"})
        missing = [key for key, given in guarantees.items() if not given]
        sandbox.close()
        found.append((name, "", f"open: {', '.join(missing)}" if missing else "closed"))
    return found
