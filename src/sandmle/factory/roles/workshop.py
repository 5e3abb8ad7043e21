"""Runs what the roles wrote: hostile programs, in the sandbox, of which only files come back."""

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.errors import SandboxError
from sandmle.files import UnsafeFile
from sandmle.sandbox.base import Sandbox
from sandmle.types import ExecResult, Limits

GENERATOR = "generate_task_env.py"
EVALUATOR = "evaluator.py"
OUT = "out"
LIMITS = Limits(wall_s=120, memory_mb=2048, disk_mb=64, processes=64)
_MOST_BYTES = 64_000_000
_SHOWN = 1500  # characters of a trace that are told
_TABLE = re.compile(r"[a-z][a-z0-9_]{0,40}\.(csv|json)")
_ASSET = re.compile(r"(images|audio|docs|graph)/[A-Za-z0-9][A-Za-z0-9_-]{0,60}\.(png|wav|txt|csv)")

# a process of its own, so that hash seed and threads are what they are asked to be
_RUN = """
import os, subprocess, sys
env = dict(os.environ, PYTHONHASHSEED={hash_seed!r})
env.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), {threads!r}))
done = subprocess.run([sys.executable, "private/{script}", *{arguments!r}], env=env)
sys.exit(done.returncode if done.returncode >= 0 else 128)
"""
# each case in a child of its own: the imports are made once
_JUDGE = """
import io, json, os, runpy, sys
try:
    import numpy, pandas, sklearn.metrics, scipy.stats
except ImportError:
    pass
told = {}
for name in sorted(os.listdir("input")):
    inside, outside = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inside)
        os.dup2(outside, 1)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", 0), write_through=True)
        sys.argv = ["evaluator.py", "--submission_path", "input/" + name]
        code = 1
        try:
            runpy.run_path("private/evaluator.py", run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException as error:
            os.write(2, (name + ": " + type(error).__name__ + ": " + str(error) + "\\n").encode())
        sys.stdout.flush()
        os._exit(code)
    os.close(outside)
    with os.fdopen(inside, "rb") as stream:
        said = stream.read(20000)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    told[name] = [status, said.decode("utf-8", "replace")]
with open("told.json", "w") as file:
    json.dump(told, file)
"""


class Unfit(Exception):
    """What a role wrote does not do; `reason` is counted, the text is told to the role."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Made(NamedTuple):
    """The files that a generator wrote, by their paths below its output folder."""

    files: dict[str, bytes]


def make(
    script: str,
    sandbox: Sandbox,
    seed: int,
    n_train: int,
    n_test: int,
    hash_seed: int = 1,
    threads: int = 1,
    limits: Limits = LIMITS,
) -> Made:
    """Run a generator and return its files; `Unfit` if it fails or writes what it must not."""
    arguments = ["--out", OUT, "--seed", seed, "--n-train", n_train, "--n-test", n_test]
    code = _RUN.format(
        hash_seed=str(hash_seed),
        threads=str(threads),
        script=GENERATOR,
        arguments=[str(one) for one in arguments],
    )
    with _Bench(sandbox, {}, {GENERATOR: script.encode()}, limits) as bench:
        _require_ok(bench.workspace.run(code), "generator", limits)
        return Made(_files(bench))


def judged(
    evaluator: str, private: Mapping[str, bytes], cases: Mapping[str, bytes], sandbox: Sandbox
) -> dict[str, tuple[int, str]]:
    """Run an evaluator on each case; returns its exit status and what it printed, by case."""
    with _Bench(sandbox, cases, {**private, EVALUATOR: evaluator.encode()}, LIMITS) as bench:
        result = bench.workspace.run(_JUDGE)
        _require_ok(result, "evaluator", LIMITS)
        try:
            told: dict[str, Any] = json.loads(bench.workspace.read("told.json", 1_000_000))
        except (OSError, UnsafeFile, ValueError) as error:
            raise Unfit("evaluator_failed", f"nothing came of it ({error})") from None
        return {str(name): (int(one[0]), str(one[1])) for name, one in told.items()}


class _Bench:
    """A workspace with some files beside it; use it as a context."""

    def __init__(
        self,
        sandbox: Sandbox,
        public: Mapping[str, bytes],
        private: Mapping[str, bytes],
        limits: Limits,
    ) -> None:
        self._limits = limits
        self._sandbox, self._folders = sandbox, {"public": public, "private": private}

    def __enter__(self) -> "_Bench":
        self._place = tempfile.TemporaryDirectory(prefix="sandmle-")
        root = Path(self._place.name)
        for folder, files in self._folders.items():
            (root / folder).mkdir()
            for name, content in files.items():
                (root / folder / name).write_bytes(content)
        self.workspace = self._sandbox.open(root / "public", self._limits, root / "private")
        return self

    def __exit__(self, *_: object) -> None:
        self.workspace.close()
        self._place.cleanup()


def _require_ok(result: ExecResult, what: str, limits: Limits) -> None:
    """Name the way in which a program failed; a failure of ours is `SandboxError`."""
    if result.status == "infra":
        raise SandboxError(result.stderr)
    if result.status == "ok":
        return
    trace = result.stderr.strip()[-_SHOWN:]
    told = {
        "timeout": f"it ran longer than {limits.wall_s:g} seconds",
        "oom": f"it used more than {limits.memory_mb} MB of memory",
    }.get(result.status, trace or f"it ended with status {result.exit_code}, silently")
    sort = {"timeout": "timeout", "oom": "memory"}.get(result.status, "failed")
    raise Unfit(f"{what}_{sort}", told)


def _files(bench: _Bench) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    for path in bench.workspace.list():
        folder, _, name = path.partition("/")
        if folder != OUT or not (_TABLE.fullmatch(name) or _ASSET.fullmatch(name)):
            raise Unfit(
                "wrong_files",
                f"{path!r} is no file that was asked for: only tables, {OUT}/images/*.png, "
                "audio/*.wav, docs/*.txt and graph/*.csv, all below --out",
            )
        try:
            found[name] = bench.workspace.read(path, left)
        except (OSError, UnsafeFile) as error:
            raise Unfit("wrong_files", f"{path} cannot be taken: {error}") from None
        left -= len(found[name])
    if not found:
        raise Unfit("wrong_files", "it wrote nothing into --out")
    return found
