"""`cold` and `bare`: each execution is a new interpreter, watched from outside.

Both give a private folder, an environment built from an allow-list, no standard input, a process
group that is killed when the program ends or its time is up, bounded output, and a clock that the
program cannot reach. `cold` adds resource limits (Linux). Neither hides the file system or the
network: `Isolation` says so. Use them with code that you would run yourself.
"""

import logging
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from sandmle.errors import SandboxError, TaskError
from sandmle.files import safe_read
from sandmle.sandbox.base import SANDBOXES
from sandmle.sandbox.output import Capture
from sandmle.types import ExecResult, Isolation, Limits

_log = logging.getLogger("sandmle")
_SCRIPT = "script.py"
_LAUNCHER = Path(__file__).with_name("launcher.py")
_POLL_S = 0.05
_BLOCK = 1 << 16
_PIPE_BLOCKS = 16  # as much as a pipe can hold


class ProcessSandbox:
    """Runs each execution as a new process; see the module's text for what that gives."""

    def __init__(self, isolation: Isolation, limited: bool) -> None:
        self.isolation = isolation
        self.closed = False
        self._limited = limited
        self._open: list[ProcessWorkspace] = []

    def open(self, public: Path, limits: Limits) -> "ProcessWorkspace":
        """Open a workspace; the public files are copied into its `input/`, read-only."""
        if self.closed:
            raise SandboxError("the sandbox was closed")
        workspace = ProcessWorkspace(self, public, limits, self._limited)
        self._open.append(workspace)
        return workspace

    def forget(self, workspace: "ProcessWorkspace") -> None:
        """Take a closed workspace off the list."""
        with suppress(ValueError):
            self._open.remove(workspace)

    def close(self) -> None:
        """End every program that is still running and remove every workspace."""
        self.closed = True
        for workspace in list(self._open):
            workspace.close()


class ProcessWorkspace:
    """A folder of its own with `work/` (the working directory), `home/` and `tmp/`."""

    def __init__(
        self, sandbox: ProcessSandbox, public: Path, limits: Limits, limited: bool
    ) -> None:
        self._sandbox, self._public, self._limits = sandbox, public, limits
        self._limited = limited
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

    def run(self, code: str) -> ExecResult:
        """Run `code` and wait for its end or for the limit; never raises for what it does."""
        if self._sandbox.closed:
            return ExecResult(status="infra", stderr="the sandbox was closed")
        try:
            self._prepare()
            self._write_script(code)
            command = [sys.executable, _SCRIPT]
            if self._limited:
                limits = self._limits
                cpu = limits.cpu_s if limits.cpu_s is not None else 4 * limits.wall_s
                figures = (os.getpid(), limits.memory_mb, limits.disk_mb, int(cpu) + 1)
                command = [sys.executable, "-IS", str(_LAUNCHER), *map(str, figures), *command]
            self._process = subprocess.Popen(
                command,
                cwd=self.work,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return ExecResult(status="infra", stderr=f"the program could not be started: {error}")
        return _watch(self._process, self._limits)

    def read(self, name: str, limit: int) -> bytes:
        """Read a file that the code has written, without following links."""
        return safe_read(self.work, name, limit)

    def list(self) -> list[str]:
        """Return the files below the working directory, without `input/` and the script."""
        found = []
        for folder, folders, files in os.walk(self.work):
            relative = Path(folder).relative_to(self.work)
            if relative == Path():
                folders[:] = [name for name in folders if name != "input"]
            found += [str(relative / name) for name in files]
        return sorted(name for name in found if name != _SCRIPT)

    def fork(self) -> "ProcessWorkspace":
        """Open another empty workspace on the same public files."""
        return self._sandbox.open(self._public, self._limits)

    def close(self) -> None:
        """End what is running and remove the folder, whatever modes the code has set in it."""
        self._sandbox.forget(self)
        if self._process is not None and self._process.returncode is None:
            _kill_group(self._process.pid)
        for folder, _, _ in os.walk(self._root):
            with suppress(OSError):
                Path(folder).chmod(0o700)
        shutil.rmtree(self._root, ignore_errors=True)

    def _prepare(self) -> None:
        """Make the folders that ought to be there; the code may have removed or closed them."""
        for folder in (self.work, self._root / "home", self._root / "tmp"):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                folder.unlink()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        copy = self.work / "input"
        if copy.is_symlink() or not copy.is_dir():
            copy.unlink(missing_ok=True)
            _require_plain(self._public)
            shutil.copytree(self._public, copy)
            for path in [copy, *copy.rglob("*")]:
                path.chmod(0o555 if path.is_dir() else 0o444)

    def _write_script(self, code: str) -> None:
        """Write the script as a new file: a link planted under its name is not followed."""
        path = self.work / _SCRIPT
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "wb") as stream:
            stream.write(code.encode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        # one thread each: for 50-200 rows more threads are slower, and not deterministic
        threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
        return {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.defpath)),
            "HOME": str(self._root / "home"),
            "TMPDIR": str(self._root / "tmp"),
            "LANG": "C.UTF-8",
            "MPLBACKEND": "Agg",
            "PYTHONHASHSEED": "0",
            "PYTHONNOUSERSITE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_NO_INDEX": "1",
            "HF_HUB_OFFLINE": "1",
            "LOKY_MAX_CPU_COUNT": "1",
            **{f"{name}_NUM_THREADS": "1" for name in threads},
        }


def _require_plain(folder: Path) -> None:
    """Refuse to copy anything but files and folders: a link could lead to what is not public."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise TaskError(f"{path}: not a plain file; a task holds no links")


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> ExecResult:
    """Collect output until the program ends or its wall time is over, then kill its group."""
    started = time.monotonic()
    out, err = Capture(limits.output_bytes), Capture(limits.output_bytes)
    assert process.stdout is not None
    assert process.stderr is not None
    streams: dict[IO[bytes], Capture] = {process.stdout: out, process.stderr: err}
    timed_out = False
    status, usage = 0, None
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - started >= limits.wall_s:
                timed_out = True
                _kill_group(process.pid)
                _, status, usage = os.wait4(process.pid, 0)
                break
            for key, _ in selector.select(_POLL_S):
                if not _drain_once(key.fileobj, streams):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)
    wall = time.monotonic() - started
    _kill_group(process.pid)  # whatever it left behind in its group
    for stream in streams:
        for _ in range(_PIPE_BLOCKS):  # a survivor outside the group could go on writing for ever
            if not _drain_once(stream, streams):
                break
        stream.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    code = process.returncode
    ended = "timeout" if timed_out else "ok" if code == 0 else "error" if code > 0 else "killed"
    return ExecResult(
        status=ended,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stdout=out.text(),
        stderr=err.text(),
        truncated=out.truncated or err.truncated,
        wall_s=round(wall, 4),
        cpu_s=round(usage.ru_utime + usage.ru_stime, 4),
        peak_mb=round(usage.ru_maxrss / (1e6 / 1024 if sys.platform == "linux" else 1e6), 1),
    )


def _drain_once(stream: IO[bytes], streams: dict[IO[bytes], Capture]) -> bool:
    """Read what is there now; False at the end of the stream or when nothing is there."""
    try:
        block = os.read(stream.fileno(), _BLOCK)
    except BlockingIOError:
        return False
    streams[stream].add(block)
    return bool(block)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


@SANDBOXES.register("cold")
def cold() -> ProcessSandbox:
    """Make a sandbox with resource limits; needs Linux."""
    if sys.platform != "linux":
        raise SandboxError("the cold sandbox needs Linux; here only `--set sandbox.backend=bare`")
    return ProcessSandbox(Isolation(mode="cold", memory_limit=True), limited=True)


@SANDBOXES.register("bare")
def bare() -> ProcessSandbox:
    """Make a sandbox without limits, and say what is open."""
    _log.warning(
        "sandbox 'bare': agent code runs as you, sees your files and the network, "
        "and has no memory limit; only its time and output are limited"
    )
    return ProcessSandbox(Isolation(mode="bare"), limited=False)
