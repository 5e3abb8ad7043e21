"""What a sandbox is to the rest of the package.

A sandbox hands out workspaces. A workspace is a folder with a task's public files in `input/`; each
execution in it is a fresh process, files persist between them and memory does not. Nothing that the
code does raises here: it ends as an `ExecResult`. `SandboxError` and the status `infra` are for
failures of our own.
"""

from pathlib import Path
from typing import Protocol

from sandmle.registry import Registry
from sandmle.types import ExecResult, Isolation, Limits


class Workspace(Protocol):
    """One episode's folder; closing it removes it."""

    def run(self, code: str) -> ExecResult:
        """Run Python source as a program, with the workspace as its working directory."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """Read a plain file of at most `limit` bytes, as `files.safe_read` does."""
        ...

    def list(self) -> list[str]:
        """Return the paths of the files that the code has written, sorted."""
        ...

    def fork(self) -> "Workspace":
        """Open another empty workspace with the same public files and limits."""
        ...

    def close(self) -> None:
        """Remove the workspace; may be called twice."""
        ...


class Sandbox(Protocol):
    """A way to run code; `isolation` says what it guarantees on this machine."""

    isolation: Isolation

    def open(self, public: Path, limits: Limits) -> Workspace:
        """Open a workspace whose `input/` holds the files of `public`."""
        ...

    def close(self) -> None:
        """Close what is open; may be called twice."""
        ...


class SandboxFactory(Protocol):
    """Makes a sandbox, or raises `SandboxError` where it cannot work."""

    def __call__(self) -> Sandbox:
        """Make it."""
        ...


SANDBOXES: Registry[SandboxFactory] = Registry(
    "sandbox", builtins=("sandmle.sandbox.process",), group="sandmle.sandboxes"
)
