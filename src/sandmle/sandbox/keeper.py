"""The harness's side of a keeper: starts it, puts files into it, asks it for things."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from sandmle.errors import SandboxError, TaskError
from sandmle.files import Entry, UnsafeFile, read_limited, walk
from sandmle.sandbox import modes
from sandmle.sandbox.inside.rootfs import HOME, TEMPORARY
from sandmle.sandbox.inside.wire import MAX_DESCRIPTORS, Message, Wire, close_all
from sandmle.sandbox.modes import Mode

MAX_PUBLIC_BYTES = 2_000_000_000
_BATCH = MAX_DESCRIPTORS // 2
# /dev/shm is everybody's there; joblib would believe, from before, that it may use it
_WITHOUT_SEMAPHORES = {"JOBLIB_MULTIPROCESSING": "0"}
_FRESH_NS = 1_000_000_000
_END_S = 2.0
# the package's folder comes through the connection: a command line can be read from inside
_BOOT = (
    "import os, socket, sys; sock = socket.socket(fileno=os.dup(0)); "
    "sys.path[:] = [sock.recv(4096).decode(), *filter(None, sys.path)]; "
    "from sandmle.sandbox.inside.supervise import main; del sys.path[0]; main(sock)"
)


class Refused(Exception):
    """The kernel, or what surrounds this process, does not allow a mode; says why."""


class Threaded(Exception):
    """Importing a module started a thread; says which module."""


class Keeper:
    """A supervisor and a keeper in one mode, started and warm.

    Raises `Refused` where the mode cannot work, and `Threaded`.
    """

    def __init__(self, mode: Mode, preload: Sequence[str], cold: bool, ahead: bool = True) -> None:
        self.mode = mode
        self._lock = threading.Lock()
        self._placing = threading.Lock()  # storing files takes several messages
        self.folder = None if mode.namespaces else Path(tempfile.mkdtemp(prefix="sandmle-"))
        configuration = self._configuration(preload, cold) | {"ahead": ahead}
        self._wire, theirs = Wire.pair()
        env = configuration["env"] | {"HOME": HOME, "TMPDIR": TEMPORARY}
        if self.folder is not None:
            self.folder.chmod(0o711)
            env = env | {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=env,
                cwd="/",
            )
            theirs.close()
            try:
                self._wire.socket.send(os.fsencode(Path(__file__).parents[2]))
                self._wire.send(configuration)
                self.facts, _ = self._wire.receive()
            except (EOFError, OSError):
                errors.seek(0)
                self.facts = {"refused": errors.read().decode("utf-8", "replace")}
        if "ready" not in self.facts:
            self.close()
            if "threaded" in self.facts:
                raise Threaded(self.facts["threaded"])
            lines = str(self.facts["refused"]).strip().splitlines()
            raise Refused(lines[-1] if lines else "it ended at once")

    def _configuration(self, preload: Sequence[str], cold: bool) -> Message:
        hidden = modes.own_paths()
        readable = modes.interpreter_paths()
        listable: list[str] = []
        if not self.mode.namespaces:
            listable, readable = readable, modes.spared(readable, hidden)
        return {
            **self.mode._asdict(),
            "harness": os.getpid(),
            "env": modes.environment() | ({} if self.mode.namespaces else _WITHOUT_SEMAPHORES),
            "offline": modes.OFFLINE,
            "readable": readable,
            "listable": listable,
            "hidden": hidden,
            "folder": str(self.folder) if self.folder is not None else None,
            "uid": modes.free_uid(),
            "gpus": modes.gpu_names(),
            "preload": list(preload),
            "cold": cold,
        }

    def request(
        self, descriptors: Sequence[int] = (), **message: object
    ) -> tuple[Message, list[int]]:
        """Ask for one thing and wait for the answer.

        Raises `SandboxError` if the keeper is gone or failed, and what reading a file may raise.
        """
        with self._lock:
            try:
                self._wire.send(message, descriptors)
                reply, attached = self._wire.receive()
            except (EOFError, OSError):
                raise SandboxError(
                    "the sandbox's keeper is gone, and its workspaces with it"
                ) from None
        if "missing" in reply:
            raise FileNotFoundError(reply["missing"])
        if "unsafe" in reply:
            raise UnsafeFile(reply["unsafe"])
        if "failed" in reply:
            raise SandboxError(f"the sandbox failed: {reply['failed']}")
        return reply, attached

    @property
    def alive(self) -> bool:
        """Return whether it is still there."""
        return self._process.poll() is None

    def spawn(self) -> tuple[int, Wire]:
        """Fork a worker; returns its number, for `kill`, and a connection to it."""
        ours, theirs = Wire.pair()
        try:
            reply, _ = self.request([theirs.fileno()], do="spawn")
        except SandboxError:
            ours.close()
            raise
        finally:
            theirs.close()
        return reply["pid"], ours

    def kill(self, pid: int) -> None:
        """End a worker and what it runs."""
        self.request(do="kill", pid=pid)

    def open(self, name: str, folders: dict[str, Path], size: int, inodes: int) -> dict[str, str]:
        """Make a workspace that shows each of `folders`; only what is not there yet is copied.

        Returns the keys under which their files are stored.
        """
        files = {place: plain_files(folder) for place, folder in folders.items()}
        trees = {place: _key(folders[place], found) for place, found in files.items()}
        with self._placing:
            for _ in range(len(trees) + 1):
                reply, _ = self.request(
                    do="open", name=name, trees=trees, bytes=size, inodes=inodes
                )
                for place, key in trees.items():
                    if key in reply.get("absent", ()):
                        self._place(key, folders[place], files[place])
                if not reply:
                    return trees
        raise SandboxError("the task's files do not stay in the sandbox")

    def close_workspace(self, name: str) -> None:
        """Remove a workspace."""
        self.request(do="close", name=name)

    def read(self, name: str, file: str, limit: int) -> bytes:
        """Read a file that a program has written; see `files.safe_read`."""
        _, (handle,) = self.request(do="read", name=name, file=file)
        return read_limited(handle, file, limit)

    def list(self, name: str) -> list[str]:
        """Return the paths of the files in a workspace."""
        found: list[str] = self.request(do="list", name=name)[0]["names"]
        return found

    def close(self) -> None:
        """End it with everything below it."""
        self._wire.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _place(self, key: str, folder: Path, files: Sequence[Entry]) -> None:
        """Hand over the files of a folder, in batches of descriptors."""
        plain = [file for file in files if not file.is_folder]
        total = sum(-(-file.status.st_size // 4096) * 4096 for file in plain)
        if total > MAX_PUBLIC_BYTES:
            raise SandboxError(
                f"{folder}: {total:,} bytes are more than the {MAX_PUBLIC_BYTES:,} that the "
                "sandbox keeps in memory; use the bare sandbox, or a smaller task"
            )
        batches = [plain[i : i + _BATCH] for i in range(0, len(plain), _BATCH)] or [[]]
        for number, batch in enumerate(batches):
            handles: list[int] = []
            try:
                for file in batch:
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
                    handles.append(os.open(folder / file.name, flags))
                self.request(
                    handles,
                    do="place",
                    key=key,
                    first=number == 0,
                    last=number == len(batches) - 1,
                    bytes=total,
                    files=len(files),
                    folders=[file.name for file in files if file.is_folder and number == 0],
                    names=[file.name for file in batch],
                )
            finally:
                close_all(handles)


def plain_files(folder: Path) -> list[Entry]:
    """Return what is in a folder, folders before their contents.

    Refuses anything but files and folders: a link could lead to what is not public.
    """
    found = walk(folder)
    for entry in found:
        if not (entry.is_file or entry.is_folder):
            raise TaskError(f"{folder / entry.name}: not a plain file; a task holds no links")
    return found


def _key(folder: Path, files: Sequence[Entry]) -> str:
    """Return a name for the contents of a folder that changes when they do."""
    digest = hashlib.sha256(os.fsencode(folder.resolve()))
    newest = 0
    for name, s in files:
        digest.update(os.fsencode(name))
        digest.update(f"\0{s.st_dev} {s.st_ino} {s.st_mode} {s.st_size} {s.st_ctime_ns}\0".encode())
        newest = max(newest, s.st_ctime_ns)
    if time.time_ns() - newest < _FRESH_NS:  # a second change could bear the same time
        digest.update(os.urandom(16))
    return digest.hexdigest()[:32]
