"""A sandbox for asyncio: the same workspaces, awaited.

Executions beyond the sandbox's workers wait in line, in the order in which they were asked for. One
that is cancelled, for example by `asyncio.timeout`, is ended and makes room for the next.
"""

import asyncio
import builtins
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from sandmle.sandbox.base import Sandbox, Workspace
from sandmle.types import ExecResult, Isolation, Limits

_RETRY_S = 0.05


class AsyncSandbox:
    """Awaits what a `Sandbox` with so many workers does; closing it closes that one."""

    def __init__(self, sandbox: Sandbox, workers: int) -> None:
        self._sandbox = sandbox
        self.runners = ThreadPoolExecutor(workers, thread_name_prefix="sandbox")

    @property
    def isolation(self) -> Isolation:
        """Return what the sandbox guarantees."""
        return self._sandbox.isolation

    async def open(
        self, public: Path, limits: Limits, private: Path | None = None
    ) -> "AsyncWorkspace":
        """Open a workspace; see `Sandbox.open`."""
        workspace = await asyncio.to_thread(self._sandbox.open, public, limits, private)
        return AsyncWorkspace(self, workspace)

    async def close(self) -> None:
        """End what runs and remove every workspace."""
        await asyncio.to_thread(self._sandbox.close)
        await asyncio.to_thread(self.runners.shutdown)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncWorkspace:
    """Awaits what a `Workspace` does."""

    def __init__(self, sandbox: AsyncSandbox, workspace: Workspace) -> None:
        self._sandbox, self._workspace = sandbox, workspace

    async def run(self, code: str) -> ExecResult:
        """Run `code` when a worker is free; see `Workspace.run`."""
        job = self._sandbox.runners.submit(self._workspace.run, code)
        try:
            return await asyncio.shield(asyncio.wrap_future(job))
        except asyncio.CancelledError:
            while not (job.cancel() or job.done()):  # it may be on its way and not yet begun
                self._workspace.stop()
                await asyncio.sleep(_RETRY_S)
            raise

    async def read(self, name: str, limit: int) -> bytes:
        """Read a file; see `Workspace.read`."""
        return await asyncio.to_thread(self._workspace.read, name, limit)

    async def list(self) -> builtins.list[str]:
        """Return the paths of the files that the code has written."""
        return await asyncio.to_thread(self._workspace.list)

    async def fork(self) -> "AsyncWorkspace":
        """Open another empty workspace with the same public files and limits."""
        return AsyncWorkspace(self._sandbox, await asyncio.to_thread(self._workspace.fork))

    async def close(self) -> None:
        """Remove the workspace."""
        await asyncio.to_thread(self._workspace.close)
