"""`bare`: each execution is a new interpreter, watched from outside and not confined at all.

It gives a private folder, an environment built from an allow-list, no standard input, a process
group that is killed when the program ends or its time is up, bounded output, and a clock that the
program cannot reach. Use it with code that you would run yourself. It works on any POSIX system.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from sandmle.config import SandboxSection
from sandmle.errors import SandboxError, TaskError
from sandmle.files import safe_read
from sandmle.sandbox.base import SANDBOXES
from sandmle.sandbox.inside import places
from sandmle.sandbox.inside.places import INPUT, PRIVATE, SCRIPT
from sandmle.sandbox.keeper import plain_files
from sandmle.sandbox.modes import OFFLINE, environment
from sandmle.sandbox.watch import FLOODED, Streams
from sandmle.types import ExecResult, Isolation, Limits

_log = logging.getLogger("sandmle")
_POLL_S = 0.05
_ATTEMPTS = 3


class BareSandbox:
    """Runs each execution as a new process; see the module's text for what that gives."""

    def __init__(self, workers: int) -> None:
        self.isolation = Isolation(mode="bare")
        self.closed = False
        self.free = threading.Semaphore(workers)
        self._open: list[BareWorkspace] = []

    def open(self, public: Path, limits: Limits, private: Path | None = None) -> "BareWorkspace":
        """Open a workspace; the files are copied into it, read-only."""
        if self.closed:
            raise SandboxError("the sandbox was closed")
        folders = {INPUT: public} | ({PRIVATE: private} if private is not None else {})
        workspace = BareWorkspace(self, folders, limits)
        self._open.append(workspace)
        return workspace

    def forget(self, workspace: "BareWorkspace") -> None:
        """Take a closed workspace off the list."""
        with suppress(ValueError):
            self._open.remove(workspace)

    def close(self) -> None:
        """End every program that is still running and remove every workspace."""
        self.closed = True
        for workspace in list(self._open):
            workspace.close()


class BareWorkspace:
    """A folder of its own with `work/` (the working directory), `home/` and `tmp/`."""

    def __init__(self, sandbox: BareSandbox, folders: dict[str, Path], limits: Limits) -> None:
        self._sandbox, self._folders, self._limits = sandbox, folders, limits
        self._process: subprocess.Popen[bytes] | None = None
        self._root = Path(tempfile.mkdtemp(prefix="sandmle-"))
        self.work = self._root / "work"
        try:
            self._prepare()
        except (OSError, TaskError) as error:
            shutil.rmtree(self._root, ignore_errors=True)
            if isinstance(error, TaskError):
                raise
            raise SandboxError(
                f"no workspace could be made in {self._root.parent}: {error}"
            ) from None

    def run(self, code: str, wall_s: float | None = None) -> ExecResult:
        """Run `code` and wait for its end or for the limit; never raises for what it does."""
        with self._sandbox.free, Streams(self._limits.output_bytes) as streams:
            if self._sandbox.closed:
                return ExecResult(status="infra", stderr="the sandbox was closed")
            try:
                self._prepare()
                self._write_script(code)
                started = time.monotonic()  # a short program may be over before Popen returns
                self._process = subprocess.Popen(
                    [sys.executable, str(self.work / SCRIPT)],
                    cwd=self.work,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=streams.writing[0],
                    stderr=streams.writing[1],
                    start_new_session=True,
                )
            except OSError as error:
                text = f"the program could not be started: {error}"
                return ExecResult(status="infra", stderr=text)
            streams.release()
            return _watch(self._process, started, streams, self._limits.within(wall_s))

    def stop(self) -> None:
        """End the program that runs."""
        process = self._process
        if process is not None and process.returncode is None:
            _kill_group(process.pid)

    def read(self, name: str, limit: int) -> bytes:
        """Read a file that the code has written, without following links."""
        return safe_read(self.work, name, limit)

    def list(self) -> list[str]:
        """Return the files in the working directory, without what is ours."""
        return places.names(str(self.work))

    def fork(self) -> "BareWorkspace":
        """Open another empty workspace on the same files."""
        return self._sandbox.open(self._folders[INPUT], self._limits, self._folders.get(PRIVATE))

    def close(self) -> None:
        """End what is running and remove the folder, whatever the code has made of it."""
        self._sandbox.forget(self)
        self.stop()
        for _ in range(_ATTEMPTS):  # a survivor may still be writing into it
            with suppress(OSError):
                places.remove(str(self._root))

    def _prepare(self) -> None:
        """Make the folders that ought to be there; the code may have removed or closed them."""
        for folder in (self.work, self._root / "home", self._root / "tmp"):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                folder.unlink()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        for name, source in self._folders.items():
            places.renew(str(self.work), name)
            plain_files(source)
            places.copy_tree(str(source), str(self.work / name))

    def _write_script(self, code: str) -> None:
        """Write the script as a new file: a link planted under its name is not followed."""
        places.renew(str(self.work), SCRIPT)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(self.work / SCRIPT, flags, 0o600), "wb") as stream:
            stream.write(code.encode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        own = {"HOME": str(self._root / "home"), "TMPDIR": str(self._root / "tmp")}
        gpus = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, self._limits.gpu))}
        return environment() | own | gpus | ({} if self._limits.network else OFFLINE)


def _watch(
    process: subprocess.Popen[bytes], started: float, streams: Streams, limits: Limits
) -> ExecResult:
    """Collect output until the program ends or its wall time is over, then kill its group."""
    timed_out = flooded = False
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    while not pid or os.WIFSTOPPED(status):  # one that wants to be traced stops, and stays so
        timed_out = time.monotonic() - started >= limits.wall_s
        flooded = streams.flooded
        if timed_out or flooded:
            _kill_group(process.pid)
        streams.wait(_POLL_S)
        pid, status, usage = os.wait4(process.pid, 0 if timed_out or flooded else os.WNOHANG)
    wall = time.monotonic() - started
    _kill_group(process.pid)  # whatever it left behind in its group
    streams.drain()
    code = process.returncode = os.waitstatus_to_exitcode(status)
    ended = "timeout" if timed_out else "ok" if code == 0 else "error" if code > 0 else "killed"
    out, err = streams.texts()
    if flooded:
        err += FLOODED
    return ExecResult(
        status=ended,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stdout=out,
        stderr=err,
        truncated=streams.truncated,
        wall_s=round(wall, 4),
        cpu_s=round(usage.ru_utime + usage.ru_stime, 4),
        peak_mb=round(usage.ru_maxrss / (1e6 / 1024 if sys.platform == "linux" else 1e6), 1),
    )


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@SANDBOXES.register("bare")
def bare(section: SandboxSection, workers: int) -> BareSandbox:
    """Make a sandbox that confines nothing, and say so."""
    _log.warning(
        "sandbox 'bare': agent code runs as you, sees your files and the network, "
        "and has no memory limit; only its time and output are limited"
    )
    return BareSandbox(workers)
