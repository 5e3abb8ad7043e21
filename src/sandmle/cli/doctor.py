"""`sandmle doctor`."""

import logging
import os
import platform
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, table
from sandmle.config import DEFAULT_SANDBOX

if TYPE_CHECKING:
    from sandmle.types import Isolation

_NEEDED = (
    "sandmle", "httpx", "jinja2", "numpy", "pandas", "pillow", "pydantic", "rich", "scikit-learn",
    "scipy", "tomli-w", "typer",
)  # fmt: skip
_EXTRAS = {
    "train": (
        ("torch", "transformers", "trl", "datasets", "accelerate"),
        "sandmle train, and --policy hf:PATH",
    ),
    "report": (("matplotlib",), "the figures of sandmle tasks stats"),
    "agents": (
        ("lightgbm", "networkx", "opencv-python-headless"),
        "agent code that imports it",
    ),
}
_LEAST_GB = 0.5  # a corpus of a hundred tasks takes half of it
_NAMESPACES = (
    "would hide that other files exist, and bound all files of a workspace: run as root, allow "
    "user namespaces (sysctl kernel.unprivileged_userns_clone=1, or where there is AppArmor "
    "kernel.apparmor_restrict_unprivileged_userns=0), or start the container with "
    "--security-opt seccomp=unconfined"
)


class Fact(NamedTuple):
    """One thing that works or does not, and what that means; `needed` for the quickstart."""

    name: str
    ok: bool
    detail: str
    needed: bool = False


def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine, and what each missing thing would enable."""
    facts = [
        Fact("python", True, platform.python_version()),
        Fact("cores", True, str(os.cpu_count())),
        *(_package(name, "sandmle needs it: pip install sandmle", True) for name in _NEEDED),
        _room("temporary files", Path(tempfile.gettempdir()), needed=True),
        _room("this folder", Path.cwd()),
        *_sandboxes(),
        *(
            _package(name, f"would enable {what}: pip install 'sandmle[{extra}]'")
            for extra, (names, what) in _EXTRAS.items()
            for name in names
        ),
        *_around(),
    ]
    sandboxes = {fact.name for fact in facts if fact.ok and fact.name.startswith("sandbox ")}
    works = all(fact.ok for fact in facts if fact.needed) and bool(sandboxes)
    if as_json:
        emit({"ok": works, "facts": [fact._asdict() for fact in facts]})
    else:
        rows = [(f.name, "ok" if f.ok else "missing", f.detail) for f in facts]
        table(("what", "state", "detail"), rows)
        print(f"\n{_verdict(facts, works)}")
    raise typer.Exit(0 if works else 1)


def _verdict(facts: list[Fact], works: bool) -> str:
    """Say in a line what can be done here."""
    if works and not any(f.ok for f in facts if f.name == f"sandbox {DEFAULT_SANDBOX}"):
        return (
            "only unconfined: generate --sandbox bare, rollout --set sandbox.backend=bare, "
            "and both only for code that you would run yourself"
        )
    if works:
        trains = all(f.ok for f in facts if f.name in _EXTRAS["train"][0])
        return "generate, grade, rollout and view work here" + (", and so does train" * trains)
    lacking = [fact.name for fact in facts if fact.needed and not fact.ok]
    return f"not ready: {', '.join(lacking) or 'no sandbox'}"


def _package(name: str, missing: str, needed: bool = False) -> Fact:
    try:
        return Fact(name, True, version(name), needed)
    except PackageNotFoundError:
        return Fact(name, False, missing, needed)


def _room(name: str, folder: Path, needed: bool = False) -> Fact:
    """Ask whether a folder can be written to, and how much goes into it."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free / 1e9
    except OSError as error:
        return Fact(name, False, f"{folder}: cannot be written ({error.strerror})", needed)
    detail = f"{folder}: {free:,.1f} GB free"
    if free < _LEAST_GB:
        detail += f", which is little: a task takes about 2 MB; make {_LEAST_GB} GB free"
    return Fact(name, free >= _LEAST_GB, detail, needed)


def _around() -> list[Fact]:
    """Look for what is not a package."""
    make, server = shutil.which("make"), os.environ.get("OPENAI_BASE_URL", "")
    if not server and os.environ.get("OPENAI_API_KEY"):
        server = "OpenAI's own"
    gpu = Path("/dev/nvidiactl").exists()
    return [
        Fact("make", make is not None, make or "would enable make demo and make test"),
        Fact(
            "gpu",
            gpu,
            "NVIDIA" if gpu else "would enable training of more than toy models (not tried yet)",
        ),
        Fact(
            "model server",
            bool(server),
            server or "would enable --policy openai:MODEL: set OPENAI_BASE_URL",
        ),
    ]


def _sandboxes() -> list[Fact]:
    """Run a program in every sandbox: does it work, and what does it leave open?"""
    from sandmle.config import SandboxSection
    from sandmle.errors import SandboxError
    from sandmle.sandbox.base import SANDBOXES, open_sandbox
    from sandmle.types import Limits

    logging.getLogger("sandmle").setLevel(logging.ERROR)  # the table says what a warning would
    facts, namespaces = [], False
    for name in SANDBOXES.names():
        try:
            sandbox = open_sandbox(SandboxSection(backend=name, preload="none"))
            with tempfile.TemporaryDirectory() as folder:
                result = sandbox.open(Path(folder), Limits(wall_s=20)).run("print(6 * 7)")
            sandbox.close()
        except (SandboxError, OSError) as error:
            facts.append(Fact(f"sandbox {name}", False, str(error)))
            continue
        works = result.stdout == "42\n"
        detail = _describe(name, sandbox.isolation) if works else result.stderr.strip()[-200:]
        facts.append(Fact(f"sandbox {name}", works, detail))
        namespaces = namespaces or (works and sandbox.isolation.fs_absent)
    return [*facts, Fact("namespaces", namespaces, "" if namespaces else _NAMESPACES)]


def _describe(name: str, isolation: "Isolation") -> str:
    """Say what a sandbox is here, what it leaves open, and why it is not a stronger one."""
    gaps = [guarantee for guarantee, held in isolation.model_dump().items() if held is False]
    mode = "" if isolation.mode == name else f"{isolation.mode}; "
    reasons = "".join(f"; not {other}: {why}" for other, why in isolation.refused.items())
    return f"{mode}leaves open: {', '.join(gaps) or 'nothing'}{reasons}"
