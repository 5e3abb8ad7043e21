"""`ns` and its weaker forms, and `cold`: agent code confined by the kernel.

Threads of the harness share a few workers. A workspace is not bound to one of them: its files are
kept where each worker can show them to a program.
"""

import itertools
import logging
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from sandmle.config import SandboxSection
from sandmle.errors import SandboxError
from sandmle.sandbox import modes
from sandmle.sandbox.base import SANDBOXES
from sandmle.sandbox.keeper import Keeper, Refused, Threaded
from sandmle.sandbox.modes import MODES, Mode
from sandmle.sandbox.profiles import modules
from sandmle.sandbox.worker import Lost, Worker
from sandmle.types import ExecResult, Isolation, Limits

INODES = 4096
_log = logging.getLogger("sandmle")
_MB = 1_000_000
# also starts the interpreter anew: one that the program's user cannot read is found out
_TRIAL = (
    "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(6 * 7)'], check=True)"
)
_CLOSED = ExecResult(status="infra", stderr="the sandbox was closed")


class Confined:
    """A keeper and up to `workers` workers in the first of `candidates` that works here.

    With `ahead` a worker makes the next execution ready while nobody waits for it.
    Raises `SandboxError` if none does.
    """

    def __init__(
        self,
        name: str,
        candidates: Sequence[Mode],
        section: SandboxSection,
        workers: int,
        ahead: bool = True,
    ) -> None:
        self._cold, self._ahead = name == "cold", ahead
        self._preload = () if self._cold else modules(section.preload)
        self._counter = itertools.count()
        self._lock = threading.Lock()
        self._slots: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(workers):
            self._slots.put(None)
        self.closed = False
        refused: dict[str, str] = {}
        for mode in candidates:
            try:
                self._start(mode)
            except Refused as error:
                refused[mode.name] = str(error)
                continue
            break
        else:
            raise SandboxError(_no_way(name, refused))
        label = f"cold, {mode.name}" if self._cold else mode.name
        facts = self._keeper.facts
        self.isolation: Isolation = modes.isolation(
            label, mode, refused, facts["landlock"], facts["seccomp"]
        )

    def open(
        self, public: Path, limits: Limits, private: Path | None = None
    ) -> "ConfinedWorkspace":
        """Open a workspace; files are stored once and shown in each workspace on them."""
        if self.closed:
            raise SandboxError("the sandbox was closed")
        folders = {"input": public} | ({"private": private} if private is not None else {})
        for folder in folders.values():
            outer = modes.exposed(folder)
            if outer is not None:
                raise SandboxError(
                    f"{folder} lies in {outer}, which agent code can read; move the tasks elsewhere"
                )
        with self._lock:
            if not self._keeper.alive:
                self._keeper.close()
                self._start(self._keeper.mode)
        return ConfinedWorkspace(self, self._keeper, f"w{next(self._counter)}", folders, limits)

    def execute(self, workspace: "ConfinedWorkspace", code: str, limits: Limits) -> ExecResult:
        """Run a program with the next worker that is free."""
        worker = self._slots.get()
        fit = worker is not None and worker.idle and worker.keeper is workspace.keeper
        try:
            if self.closed:
                return _CLOSED
            if not fit:
                if worker is not None:
                    worker.end()
                worker = Worker(workspace.keeper)
            assert worker is not None
            workspace.worker = worker
            fit = False
            result = worker.run(code, workspace.place, limits)
            fit = True
            return result
        except (Lost, SandboxError, OSError) as error:
            return _CLOSED if self.closed else ExecResult(status="infra", stderr=str(error))
        finally:
            workspace.worker = None
            if worker is not None and not fit:
                worker.end()
            if worker is not None and self.closed:
                worker.hang_up()
            self._slots.put(worker if fit and not self.closed else None)

    def close(self) -> None:
        """End the keeper and with it all that it holds."""
        self.closed = True
        self._keeper.close()
        idle: list[Worker | None] = []
        with suppress(queue.Empty):
            while True:
                idle.append(self._slots.get_nowait())
        for worker in idle:
            if worker is not None:
                worker.hang_up()
            self._slots.put(None)  # whoever waits for one finds out that all is closed

    def _start(self, mode: Mode) -> None:
        """Start a keeper and see whether a program really runs in it."""
        objection = modes.objection(mode)
        if objection:
            raise Refused(objection)
        while True:
            try:
                keeper = Keeper(mode, self._preload, self._cold, self._ahead)
                break
            except Threaded as error:
                name = str(error)
                _log.warning("importing %s starts a thread: it is not imported beforehand", name)
                self._preload = tuple(one for one in self._preload if one != name)
        if not mode.namespaces and not keeper.facts["landlock"]:
            keeper.close()
            raise Refused("this kernel has no Landlock")
        for name, why in keeper.facts["failed"].items():
            _log.warning("sandbox.preload: %s cannot be imported: %s", name, why)
        self._keeper = keeper
        try:
            trial = ConfinedWorkspace(self, keeper, "trial", {}, Limits(wall_s=60))
            result = trial.run(_TRIAL)
            trial.close()
        except SandboxError as error:
            keeper.close()
            raise Refused(str(error)) from None
        if result.stdout != "42\n":
            keeper.close()
            lines = result.stderr.strip().splitlines()
            raise Refused(lines[-1] if lines else f"a program ended as {result.status}")


class ConfinedWorkspace:
    """One episode's files, kept by the keeper."""

    def __init__(
        self,
        sandbox: Confined,
        keeper: Keeper,
        name: str,
        folders: dict[str, Path],
        limits: Limits,
    ) -> None:
        self._sandbox, self._folders = sandbox, folders
        self.keeper, self.limits = keeper, limits
        self.worker: Worker | None = None
        self._name = name
        self._closed = False
        self._running = threading.Lock()  # two programs in one workspace would disturb each other
        trees = keeper.open(name, folders, limits.disk_mb * _MB, INODES)
        self.place = {"name": name, "trees": trees, "inodes": INODES}

    def run(self, code: str, wall_s: float | None = None) -> ExecResult:
        """Run `code` and wait for its end or for the limit; never raises for what it does."""
        with self._running:
            if self._closed:
                return ExecResult(status="infra", stderr="the workspace was closed")
            return self._sandbox.execute(self, code, self.limits.within(wall_s))

    def stop(self) -> None:
        """End the program that runs."""
        worker = self.worker
        if worker is not None:
            worker.stop()

    def read(self, name: str, limit: int) -> bytes:
        """Read a file that the code has written, without following links."""
        return self.keeper.read(self._name, name, limit)

    def list(self) -> list[str]:
        """Return the files in the working directory, without what is ours."""
        return self.keeper.list(self._name)

    def fork(self) -> "ConfinedWorkspace":
        """Open another empty workspace on the same files."""
        return self._sandbox.open(self._folders["input"], self.limits, self._folders.get("private"))

    def close(self) -> None:
        """End what runs and remove the files."""
        if self._closed:
            return
        self._closed = True
        self.stop()
        with self._running, suppress(SandboxError):
            self.keeper.close_workspace(self._name)


def _no_way(name: str, refused: dict[str, str]) -> str:
    reasons = "; ".join(f"{mode}: {why}" for mode, why in refused.items())
    if name in refused:
        return f"the sandbox {name} does not work here: {refused[name]}"
    return (
        f"no confinement works here ({reasons}); the sandbox 'bare' runs code unconfined: "
        "choose it only for code that you would run yourself"
    )


def _make(name: str, section: SandboxSection, workers: int) -> Confined:
    named = [mode for mode in MODES if mode.name == name]
    return Confined(name, named or MODES, section, workers)


for _name in ("ns", "cold", *(mode.name for mode in MODES)):
    SANDBOXES.add(_name, partial(_make, _name))
