"""The place of the fight: a machine with a harness on it, a sandbox, and a workspace an attack.

The harness is this process. Beside it there are a task with its hidden files, a second process of
the same user that holds the secret in every way a process can, and shared memory and message queues
of the System V and POSIX sorts. What attacks did to any of it is found out and mended after each.
"""

import ctypes
import hashlib
import json
import os
import resource
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import sandmle
from redteam.attack import Attack, calls, program, refused
from sandmle.config import SandboxSection
from sandmle.errors import SandboxError
from sandmle.files import UnsafeFile
from sandmle.sandbox.base import Sandbox, Workspace, open_sandbox
from sandmle.types import ExecResult, Limits

_GRACE_S = 20.0  # over the wall limit: only what hangs is late
_HANGS_S = 60.0
_GONE_S = 5.0
_KEY_NAMES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY")
_QUEUE = f"redteam-{os.getpid()}"
# not where the other tests put their files: other users cannot enter that, and its path is long
_TOP = os.environ.get("TMPDIR", "/tmp")
_CREATE = 0o1000  # IPC_CREAT
_REMOVE = 0  # IPC_RMID


class Trace(NamedTuple):
    """What is remembered of a file, to see that nobody touched it."""

    mode: int
    user: int
    group: int
    links: int
    size: int
    changed: int
    sha256: str


class Host:
    """A harness's surroundings, with a secret in each place where one may be looked for."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="rt-", dir=_TOP))
        self.boxes = Path(tempfile.mkdtemp(prefix="rt-boxes-", dir=_TOP))
        self.base.chmod(0o755)  # nothing here is hidden by its modes
        self.boxes.chmod(0o1777)
        self.secret = f"answer-{secrets.token_hex(16)}"
        self.public, self.private = self.base / "task/public", self.base / "task/private"
        self.run = self.base / "run"
        self.run.mkdir()
        self._write_task()
        (self.run / "visitors.log").touch()
        self._kernel_objects()
        # open, inheritable and never meant for anybody's child
        self._held = os.open(self.private / "answer.csv", os.O_RDONLY)
        os.set_inheritable(self._held, True)
        self._start_helper()

    def _write_task(self) -> None:
        hidden = {
            "answer.csv": f"id,label\na1,{self.secret}\n",
            "spec.json": json.dumps({"seed": [7, 0, 1], "hidden_rule_logic": self.secret}),
            "threshold.json": json.dumps({"gold_threshold": 0.9, "note": self.secret}),
            "evaluator.py": f"# {self.secret}\ndef score(submission, answers):\n    return 0.5\n",
            "generate_task_env.py": f"SEED = 7  # {self.secret}\n",
            "task.log": f"wrote {self.secret}\n",
        }
        shown = {
            "description.md": "Predict the label.\n",
            "train.csv": "id,x,label\nb1,1,0\nb2,2,1\n",
            "test.csv": "id,x\na1,3\n",
            "sample_submission.csv": "id,label\na1,0\n",
        }
        for folder, files in ((self.private, hidden), (self.public, shown)):
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(text)
                (folder / name).chmod(0o644)
        (self.private / "__pycache__").mkdir()
        (self.private / "__pycache__/evaluator.cpython-311.pyc").write_bytes(self.secret.encode())
        for path in (self.base / "task", self.public, self.private, self.run):
            path.chmod(0o755)
        self._before = self._traces()

    def _traces(self) -> dict[str, Trace]:
        found = {}
        root = self.base / "task"
        for path in sorted([root, *root.rglob("*")]):
            about = path.lstat()
            plain = stat.S_ISREG(about.st_mode)
            with suppress(OSError):
                found[str(path.relative_to(self.base))] = Trace(
                    about.st_mode,
                    about.st_uid,
                    about.st_gid,
                    about.st_nlink,
                    about.st_size if plain else 0,
                    about.st_ctime_ns,
                    hashlib.sha256(path.read_bytes()).hexdigest() if plain else "",
                )
        return found

    def _kernel_objects(self) -> None:
        """Leave the secret in shared memory and in message queues, open to everybody."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        self._libc = libc
        data = self.secret.encode()
        self.segment = libc.shmget(0, 4096, _CREATE | 0o666)
        if self.segment >= 0:
            self._attached = libc.shmat(self.segment, None, 0)
            ctypes.memmove(self._attached, data, len(data))
            libc.shmctl(self.segment, _REMOVE, None)  # gone with this process, till then in reach
        self.messages = libc.msgget(0, _CREATE | 0o666)
        if self.messages >= 0:
            message = ctypes.create_string_buffer(b"\1" + bytes(7) + data)
            libc.msgsnd(self.messages, message, len(data), 0)
        self.queue = -1
        if calls():
            number = calls()["mq_open"]
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            self.queue = libc.syscall(number, _QUEUE.encode(), flags, 0o666, None)
        if self.queue >= 0:
            os.fchmod(self.queue, 0o666)
            send = {"x86_64": 242, "aarch64": 182}[os.uname().machine]
            libc.syscall(send, self.queue, data, len(data), 1, None)

    def _start_helper(self) -> None:
        arguments = (self.secret, str(self.private / "answer.csv"), str(self.run))
        for name in ("stream", "datagram"):
            (self.run / f"{name}.sock").unlink(missing_ok=True)
        self.helper = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("helper.py")), *arguments],
            env={"PATH": os.defpath, "OPENAI_API_KEY": self.secret},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.helper.stdout is not None
        self.doors = json.loads(self.helper.stdout.readline())
        self._visits = self._visitors()

    def _visitors(self) -> int:
        return (self.run / "visitors.log").stat().st_size

    def facts(self) -> dict[str, Any]:
        """Return all that a program may know: every place to look in, and not what lies there."""
        package = Path(sandmle.__file__).parent
        return {
            "base": str(self.base),
            "hidden": str(self.private),
            "public": str(self.public),
            "answer": str(self.private / "answer.csv"),
            "threshold": str(self.private / "threshold.json"),
            "evaluator": str(self.private / "evaluator.py"),
            "spec": str(self.private / "spec.json"),
            "log": str(self.run / "visitors.log"),
            "doors": self.doors,
            "helper": self.helper.pid,
            "harness": os.getpid(),
            "held": self._held,
            "segment": self.segment,
            "messages": self.messages,
            "queue": _QUEUE,
            "package": str(package),
            "tests": str(Path(__file__).parent),
            "calls": calls(),
            "keys": _KEY_NAMES,
        }

    def damage(self) -> str:
        """Say what an attack has done here, and mend it."""
        faults = []
        after = self._traces()
        for name in sorted(set(after) | set(self._before)):
            if after.get(name) != self._before.get(name):
                faults.append(f"{name} was {_change(self._before.get(name), after.get(name))}")
        if faults:
            for path in [self.private, *self.private.rglob("*")]:
                with suppress(OSError):
                    path.chmod(0o755)
            shutil.rmtree(self.base / "task")
            self._write_task()
        if self._visitors() != self._visits:
            text = (self.run / "visitors.log").read_bytes()[self._visits :].decode().split()
            faults.append(f"the helper was visited by {', '.join(text)}")
            self._visits = self._visitors()
        if self.helper.poll() is not None:
            faults.append("the helper is dead")
            self._start_helper()
        elif " T " in Path(f"/proc/{self.helper.pid}/stat").read_text():
            faults.append("the helper is stopped")
            self.helper.send_signal(signal.SIGCONT)
        return "; ".join(faults)

    def close(self) -> None:
        """Take everything away."""
        assert self.helper.stdin is not None
        self.helper.stdin.close()
        self.helper.kill()
        self.helper.wait()
        if self.helper.stdout is not None:
            self.helper.stdout.close()
        if self.segment >= 0:
            self._libc.shmdt(ctypes.c_void_p(self._attached))
        if self.messages >= 0:
            self._libc.msgctl(self.messages, _REMOVE, None)
        if self.queue >= 0:
            os.close(self.queue)
            self._libc.syscall({"x86_64": 241, "aarch64": 181}[os.uname().machine], _QUEUE.encode())
        os.close(self._held)
        for folder in (self.base, self.boxes):
            shutil.rmtree(folder, ignore_errors=True)


def _change(before: Trace | None, after: Trace | None) -> str:
    if before is None or after is None:
        return "made" if before is None else "removed"
    if before.sha256 != after.sha256:
        return "overwritten"
    return f"changed from {before[:5]} to {after[:5]}"


class Arena:
    """One sandbox with its host; plays attacks and collects the evidence against it."""

    def __init__(self, mode: str, host: Host) -> None:
        self.host, self.mode = host, mode
        self.sandbox = self._open()
        self.isolation = self.sandbox.isolation
        self._spoilt = False

    def _open(self, workers: int = 1) -> Sandbox:
        section = SandboxSection(backend=self.mode, workers=workers, preload="tabular")
        return open_sandbox(section)

    def another(self, workers: int) -> Sandbox:
        """Open a second sandbox of the same mode."""
        return self._open(workers)

    def play(self, attack: Attack) -> list[str]:
        """Return the evidence against the sandbox; nothing when it held."""
        if self._spoilt:
            threading.Thread(target=self.sandbox.close, daemon=True).start()
            self.sandbox, self._spoilt = self._open(), False
        scene = Scene(self, attack)
        try:
            code = attack.code
            result = scene.run(code) if isinstance(code, str) else code(scene)
            scene.blame((attack.judge or refused)(result, scene))
            scene.look_around()
        except _Hung:
            self._spoilt = True
        finally:
            scene.close()
        if scene.broken:
            self._spoilt = True
        return scene.evidence

    def close(self) -> None:
        """Close the sandbox."""
        self.sandbox.close()


class _Hung(Exception):
    """The sandbox does not answer any more."""


class Scene:
    """One attack in its workspace: what its programs did, and the evidence so far."""

    def __init__(self, arena: Arena, attack: Attack) -> None:
        self.arena, self.attack, self.host = arena, attack, arena.host
        self.isolation = arena.isolation
        self.mark = f"rt{secrets.token_hex(6)}"
        self.evidence: list[str] = []
        self.results: list[ExecResult] = []
        self.broken = False
        self._workspaces: list[Workspace] = []
        self._cleaning: list[Callable[[], object]] = []
        self.workspace = self.open()

    # --- acting

    def open(self, limits: Limits | None = None, sandbox: Sandbox | None = None) -> Workspace:
        """Open a workspace on the public files."""
        sandbox = sandbox or self.arena.sandbox
        made = sandbox.open(self.host.public, limits or self.attack.limits)
        self._workspaces.append(made)
        return made

    def run(self, code: str, workspace: Workspace | None = None) -> ExecResult:
        """Run a program with its tools and the facts."""
        facts = {
            **self.host.facts(),
            "mark": self.mark,
            "apart": self.isolation.fs_absent,  # by namespaces
            "walled": self.isolation.fs_hidden,
        }
        return self.run_bare(program(code, facts), workspace)

    def run_bare(self, source: str, workspace: Workspace | None = None) -> ExecResult:
        """Run a program as it is."""
        limits = self.attack.limits
        started = time.monotonic()
        result = self.within(lambda: (workspace or self.workspace).run(source), limits.wall_s)
        took = time.monotonic() - started
        if took > limits.wall_s + _GRACE_S:
            self.blame(f"answered after {took:.1f} s with a limit of {limits.wall_s} s")
        if result.status == "infra":
            self.blame(f"the sandbox failed: {result.stderr[-500:]!r}")
            self.broken = True
        self.results.append(result)
        return result

    def within(self, act: Callable[[], Any], seconds: float = 0.0) -> Any:
        """Do something that may not come back, and give up on it then."""
        box: list[Any] = []

        def work() -> None:
            try:
                box.append((act(), None))
            except BaseException as error:
                box.append((None, error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds + _HANGS_S)
        if not box:
            self.blame(f"no answer after {seconds + _HANGS_S:.0f} s")
            raise _Hung
        value, error = box[0]
        if error is not None:
            raise error
        return value

    def read(self, name: str, limit: int = 1 << 20) -> bytes | Exception:
        """Read a file of the workspace; what must not come out is evidence."""
        try:
            data: bytes = self.within(lambda: self.workspace.read(name, limit))
        except (FileNotFoundError, UnsafeFile) as error:
            return error
        except _Hung:
            raise
        except Exception as error:
            self.blame(f"reading {ascii(name)[:80]} raised {error!r}"[:300])
            return error
        if self.host.secret.encode() in data:
            self.blame(f"{name} was read with the secret in it")
        if len(data) > limit:
            self.blame(f"{name} was read with {len(data)} bytes, {limit} allowed")
        return data

    def names(self) -> list[str]:
        """List the workspace; a failure is evidence."""
        try:
            found: list[str] = self.within(self.workspace.list)
        except _Hung:
            raise
        except Exception as error:
            self.blame(f"listing raised {error!r}"[:300])
            return []
        return found

    def on_close(self, act: Callable[[], object]) -> None:
        """Do this at the end, whatever happens."""
        self._cleaning.append(act)

    # --- judging

    def blame(self, evidence: str) -> None:
        """Add evidence, if it is any."""
        if evidence:
            self.evidence.append(evidence)

    def expect(self, held: bool, otherwise: str) -> None:
        """Add evidence if something did not hold."""
        if not held:
            self.blame(otherwise)

    def survivors(self) -> list[int]:
        """Return the processes of this attack that are still there."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                name = (folder / "comm").read_text().strip()
                words = (folder / "cmdline").read_bytes()
                state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in (b"Z", b"X") and (name == self.mark or self.mark.encode() in words):
                    found.append(int(folder.name))
        return found

    def look_around(self) -> None:
        """Judge what must hold after every attack."""
        for result in self.results:
            if self.host.secret in result.stdout + result.stderr:
                self.blame("the secret was printed")
        if self.isolation.kill_all or self.attack.needs == "kill_all":
            deadline = time.monotonic() + _GONE_S
            while (left := self.survivors()) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.expect(not left, f"still running: {left}")
        self.blame(self.host.damage())
        if not self.broken:
            after = self.run_bare("print('still', 'here')")
            if (after.status, after.stdout) != ("ok", "still here\n"):
                self.blame(f"the next program ended with {after!r}"[:400])
                self.broken = self.broken or after.status == "infra"

    def close(self) -> None:
        """Close the workspaces, end what is left of this attack, and run what was left to do."""
        for workspace in self._workspaces:
            try:
                self.within(workspace.close)
            except _Hung:
                self.broken = True
            except Exception as error:
                self.blame(f"closing raised {error!r}")
        for act in self._cleaning:
            act()
        for _ in range(20):
            left = self.survivors()
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.02)


def peak_mb() -> float:
    """Return the most memory that this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def refusal(mode: str) -> str:
    """Say why a mode cannot work here; nothing if it can."""
    try:
        open_sandbox(SandboxSection(backend=mode, workers=1, preload="tabular")).close()
    except SandboxError as error:
        return str(error)
    return ""
