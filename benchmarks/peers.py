"""Other ways to run a program, for comparison; all but one confine nothing.

Each runs code and returns the seconds until its end. What is not installed is left out.
"""

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measure import cold_run

from sandmle.sandbox.modes import environment, interpreter_paths

# How AIDE's interpreter works: the harness, which has imported nothing of the sort, forks a process
# for each run with `multiprocessing`, and queues carry the code in and the output out.
_FORKING = """
import json, multiprocessing, sys

class Output:
    def __init__(self, queue):
        self.queue = queue
    def write(self, text):
        self.queue.put(text)
    def flush(self):
        pass

def work(code, queue):
    sys.stdout = sys.stderr = Output(queue)
    exec(compile(code, "runfile.py", "exec"), {"__name__": "__main__"})
    queue.put(None)

context = multiprocessing.get_context("fork")
for line in sys.stdin:
    queue = context.Queue()
    process = context.Process(target=work, args=(json.loads(line), queue))
    process.start()
    while queue.get() is not None:
        pass
    process.join()
    print("done", flush=True)
"""


class Peer:
    """Runs code in its own way."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, code: str) -> float:
        raise NotImplementedError

    def first(self, code: str) -> float | None:
        """Run code from nothing, where that differs."""
        return None

    def close(self) -> None:
        pass


class PlainProcess(Peer):
    """A new interpreter for each run."""

    name = "plain subprocess"

    def run(self, code: str) -> float:
        return cold_run(code, self._folder)[0]


class Forking(Peer):
    """`multiprocessing` from a clean parent, as AIDE does."""

    name = "multiprocessing fork, clean parent"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment(), "HOME": str(folder)},
            cwd=folder,
            text=True,
        )

    def run(self, code: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        started = time.perf_counter()
        self._process.stdin.write(json.dumps(code) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"
        return time.perf_counter() - started

    def close(self) -> None:
        self._process.communicate()


class Jupyter(Peer):
    """A kernel: its memory stays from one run to the next."""

    name = "jupyter kernel"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._manager, self._client = self._start()

    def _start(self) -> tuple[Any, Any]:
        from jupyter_client import KernelManager

        manager = KernelManager()
        env = {**environment(), "HOME": str(self._folder)}
        manager.start_kernel(env=env, cwd=str(self._folder), stderr=subprocess.DEVNULL)
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=120)
        return manager, client

    def run(self, code: str) -> float:
        return self._execute(self._client, code)

    def first(self, code: str) -> float:
        started = time.perf_counter()
        manager, client = self._start()
        self._execute(client, code)
        wall = time.perf_counter() - started
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        return wall

    @staticmethod
    def _execute(client: Any, code: str) -> float:
        started = time.perf_counter()
        reply = client.execute_interactive(code, timeout=300, output_hook=lambda _: None)
        wall = time.perf_counter() - started
        assert reply["content"]["status"] == "ok", reply["content"]
        return wall

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


class Sandlock(Peer):
    """Landlock and system call filters around a new interpreter."""

    name = "sandlock"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        system = ["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev"]
        readable = [path for path in system + interpreter_paths() if Path(path).exists()]
        self._policy = {
            "fs_readable": readable,
            "fs_writable": [str(folder), "/dev/shm", "/dev/null"],
            "cwd": str(folder),
            "env": {**environment(), "HOME": str(folder), "TMPDIR": str(folder)},
        }

    def run(self, code: str) -> float:
        from sandlock import Sandbox

        script = self._folder / "sandlock.py"
        script.write_text(code)
        started = time.perf_counter()
        result = Sandbox(**self._policy).run([sys.executable, str(script)], timeout=300)
        wall = time.perf_counter() - started
        assert result.success, result
        return wall


def peers(folder: Path) -> tuple[list[Peer], list[str]]:
    """Start those that can be; returns why the others cannot, too."""
    found: list[Peer] = []
    absent = []
    kinds: dict[type[Peer], tuple[str, ...]] = {
        PlainProcess: (),
        Forking: (),
        Jupyter: ("jupyter_client", "ipykernel"),
        Sandlock: ("sandlock",),
    }
    for kind, packages in kinds.items():
        lacking = [name for name in packages if find_spec(name) is None]
        if lacking:
            absent.append(f"{kind.name}: {', '.join(lacking)} not installed")
            continue
        own = folder / kind.__name__
        own.mkdir()
        peer = kind(own)
        found.append(peer)
    return found, absent
