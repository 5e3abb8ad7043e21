"""What a sandbox is to the rest of the package.

A sandbox hands out workspaces. A workspace is a set of files with a task's public ones in `input/`;
each execution in it is a fresh process, files persist between them and memory does not. Nothing
that the code does raises here: it ends as an `ExecResult`. `SandboxError` and the status `infra`
are for failures of our own.
"""

from pathlib import Path
from typing import Protocol

from sandmle.config import SandboxSection
from sandmle.errors import SandboxError, UsageError
from sandmle.registry import Registry, nearest
from sandmle.types import ExecResult, Isolation, Limits


class Workspace(Protocol):
    """One episode's files; closing it removes them."""

    def run(self, code: str, wall_s: float | None = None) -> ExecResult:
        """Run Python source as a program, with the workspace as its working directory.

        `wall_s` goes before the limit of the workspace, for this program.
        """
        ...

    def stop(self) -> None:
        """End the program that runs, from another thread; nothing if none does."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """Read a plain file of at most `limit` bytes, as `files.safe_read` does."""
        ...

    def list(self) -> list[str]:
        """Return the paths of the files that the code has written, sorted; at most 10,000."""
        ...

    def fork(self) -> "Workspace":
        """Open another empty workspace with the same public files and limits."""
        ...

    def close(self) -> None:
        """Remove the workspace; may be called twice."""
        ...


class Sandbox(Protocol):
    """A way to run code; `isolation` says what it guarantees on this machine.

    Safe to use from many threads: as many programs run at once as it has workers, the others wait.
    """

    isolation: Isolation

    def open(self, public: Path, limits: Limits, private: Path | None = None) -> Workspace:
        """Open a workspace whose `input/` holds the files of `public`, read-only.

        `private` is for scripts of our own, never an agent's: its files appear in `private/`.
        Raises `TaskError` if a folder holds anything but plain files and folders.
        """
        ...

    def close(self) -> None:
        """End what runs and remove every workspace; may be called twice."""
        ...


def save(workspace: Workspace, folder: Path, limit: int) -> list[str]:
    """Copy what a program has written to a folder of the host, for scripts that make files.

    Returns the paths, relative to `folder`. Raises `UnsafeFile` if one of them is a link or
    anything but a plain file, or if all together hold more than `limit` bytes; nothing is written
    then.
    """
    found: dict[str, bytes] = {}
    for name in workspace.list():
        found[name] = workspace.read(name, limit)
        limit -= len(found[name])
    for name, data in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return list(found)


class SandboxFactory(Protocol):
    """Makes a sandbox, or raises `SandboxError` where it cannot work."""

    def __call__(self, section: SandboxSection, workers: int) -> Sandbox:
        """Make one that runs up to `workers` programs at once."""
        ...


SANDBOXES: Registry[SandboxFactory] = Registry(
    "sandbox",
    builtins=("sandmle.sandbox.confined", "sandmle.sandbox.bare"),
    group="sandmle.sandboxes",
)


def open_sandbox(section: SandboxSection | None = None, workers: int = 1) -> Sandbox:
    """Make the configured sandbox; `section.workers` goes before `workers`.

    Raises `SandboxError` if it cannot work here or lacks a guarantee that `section.require` names.
    """
    section = section or SandboxSection()
    known = [name for name, kind in Isolation.__annotations__.items() if kind is bool]
    for name in section.require:
        if name not in known:
            raise UsageError(f"sandbox.require: unknown guarantee {name!r}; {nearest(name, known)}")
    sandbox = SANDBOXES.get(section.backend)(section, section.workers or workers)
    missing = [name for name in section.require if not getattr(sandbox.isolation, name)]
    if missing:
        mode, refused = sandbox.isolation.mode, sandbox.isolation.refused
        sandbox.close()
        why = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise SandboxError(
            f"the sandbox here is {mode}, without {', '.join(missing)}"
            + (f" ({why})" if why else "")
        )
    return sandbox
