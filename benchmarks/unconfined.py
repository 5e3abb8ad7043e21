"""A warm process that forks a child for each program and confines nothing: what a fork costs.

    python benchmarks/unconfined.py PRELOAD

It is what the sandbox is measured against: for each program two processes are forked, one to watch
and one to be the program. Requests and answers are lines of JSON.
"""

import builtins
import gc
import importlib
import io
import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from sandmle.sandbox.inside import linux
from sandmle.sandbox.modes import environment
from sandmle.sandbox.profiles import modules


class Unconfined:
    """The benchmark's end of it."""

    def __init__(self, preload: str, home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, preload],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment(), "HOME": str(home)},
            text=True,
        )
        self.pid = self._process.pid
        self._ask({})

    def run(self, code: str, folder: Path) -> tuple[float, float]:
        """Run code in a folder; returns the seconds it took in all, and those of its own."""
        started = time.perf_counter()
        answer = self._ask({"code": code, "folder": str(folder)})
        wall = time.perf_counter() - started
        if answer["status"]:
            raise SystemExit(f"unconfined, a program failed: {(folder / 'stderr').read_text()}")
        return wall, answer["compute_s"]

    def _ask(self, request: dict[str, str]) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: dict[str, float] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


def serve(preload: Sequence[str]) -> None:
    """Import, then fork for every line."""
    for name in preload:
        with suppress(ImportError):
            importlib.import_module(name)
    if "joblib.parallel" in sys.modules:  # as in the sandbox: no new interpreters for 100 rows
        sys.modules["joblib.parallel"].DEFAULT_BACKEND = "threading"  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()
    linux.merge_pages()  # the sandbox does so too; only what confines shall make the difference
    for line in sys.stdin:
        request = json.loads(line)
        answer = _fork(request) if request else {}
        print(json.dumps(answer), flush=True)


def _fork(request: dict[str, str]) -> dict[str, float]:
    reading, writing = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        program = os.fork()
        if program == 0:
            _become(request["code"], request["folder"], writing)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1]) & 255)
    os.close(writing)
    with os.fdopen(reading) as stream:
        compute = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(watcher, 0)[1])
    return {"status": status, "compute_s": float(compute or 0)}


def _become(code: str, folder: str, report: int) -> NoReturn:
    """Run the code as `__main__` and write down how long it took."""
    os.chdir(folder)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
        setattr(sys, name, io.TextIOWrapper(io.FileIO(descriptor, "w"), write_through=True))
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=f"{folder}/script.py", __builtins__=builtins)
    sys.modules["__main__"] = main
    try:
        compiled = compile(code, "script.py", "exec", dont_inherit=True)
        started = time.perf_counter()
        exec(compiled, main.__dict__)
        os.write(report, str(time.perf_counter() - started).encode())
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    serve(modules(sys.argv[1]))
