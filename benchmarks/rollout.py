"""What an episode costs beside its sandbox and its model, and how many can wait at once.

    python benchmarks/rollout.py CORPUS [--episodes 40] [--turns 10] [--waiting 1000]

The overhead of a turn is the time between two replies less the time in the sandbox: parsing, taking
the submission, grading it, rendering, the journal. That of an episode is the time from its last
reply to the first request of the next one, less opening a workspace: its last grade, its record in
the run folder, the task's files and answers, the first prompt. Then so many episodes wait for a
model that does not answer before all have asked: how much memory the process needs for them.
"""

import argparse
import resource
import tempfile
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sandmle.config import DEFAULT_SANDBOX, PolicySection, SandboxSection, load_config
from sandmle.llm.base import LLM, Completion, Message
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.runner import run_rollout
from sandmle.sandbox.base import SANDBOXES
from sandmle.tasks.corpus import open_corpus
from sandmle.tasks.folder import Task

PASS = "<think>nothing</think>\n```python\npass\n```"
SUBMIT = "<think>done</think>\n<submit/>"


class Passing:
    """A policy that runs `pass` so many times; it notes when it is asked."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name = f"passing:{argument}"
        self.turns = int(argument)
        self.asked: list[list[float]] = []
        Passing.last = self

    last: "Passing"

    def open(self, task: Task, seed: int, k: int) -> LLM:
        times: list[float] = []
        self.asked.append(times)
        return _Passer(self.turns, times)

    def close(self) -> None:
        pass


class _Passer:
    def __init__(self, turns: int, times: list[float]) -> None:
        self.left, self.times = turns, times

    def complete(self, messages: Sequence[Message]) -> Completion:
        self.times.append(time.perf_counter())
        self.left -= 1
        return Completion(PASS if self.left >= 0 else SUBMIT)


class Waiting:
    """A policy whose model answers nobody before `argument` episodes have asked."""

    def __init__(self, argument: str, section: PolicySection) -> None:
        self.name = f"waiting:{argument}"
        self.all_here = threading.Barrier(int(argument), self.look, timeout=300)
        Waiting.last = self

    last: "Waiting"
    rss_mb: float = 0.0

    def look(self) -> None:
        status = Path("/proc/self/status").read_text()
        self.rss_mb = int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def open(self, task: Task, seed: int, k: int) -> LLM:
        return _Waiter(self.all_here)

    def close(self) -> None:
        pass


class _Waiter:
    def __init__(self, all_here: threading.Barrier) -> None:
        self.all_here = all_here

    def complete(self, messages: Sequence[Message]) -> Completion:
        self.all_here.wait()
        return Completion(SUBMIT)


POLICIES.add("passing", Passing)
POLICIES.add("waiting", Waiting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--waiting", type=int, default=1000)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    overhead(options.corpus, options.episodes, options.turns)
    waiting(options.corpus, options.waiting)


def overhead(corpus: Path, episodes: int, turns: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_rollout(
            _settings(corpus, f"passing:{turns}", episodes, concurrency=1), Path(folder) / "run"
        )
    asked = [times for times in Passing.last.asked if times]  # one is opened to see whether it is
    # one after the other, so executions, openings and gaps come in the same order
    runs, opened = iter(Spent.runs), Spent.opened[1:]
    within = [1000 * (b - a - next(runs)) for times in asked for a, b in pairwise(times)]
    between = [
        1000 * (after[0] - before[-1] - spent)
        for (before, after), spent in zip(pairwise(asked), opened, strict=True)
    ]
    for what, times in (("turn", within), ("episode", between)):
        low, high = np.quantile(times, (0.5, 0.95))
        print(f"{len(times)} {what}s: overhead p50 {low:.2f} ms, p95 {high:.2f} ms")


class Spent:
    """What happens in the sandbox `timed`, which is the default one, from outside."""

    runs: ClassVar[list[float]] = []
    opened: ClassVar[list[float]] = []


def timed(section: SandboxSection, workers: int) -> Any:
    return _Timed(SANDBOXES.get(DEFAULT_SANDBOX)(section, workers))


SANDBOXES.add("timed", timed)


class _Timed:
    """A sandbox or a workspace whose `open` and `run` are timed."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def open(self, *args: Any, **options: Any) -> "_Timed":
        started = time.perf_counter()
        workspace = self._inner.open(*args, **options)
        Spent.opened.append(time.perf_counter() - started)
        return _Timed(workspace)

    def run(self, code: str) -> Any:
        started = time.perf_counter()
        result = self._inner.run(code)
        Spent.runs.append(time.perf_counter() - started)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def waiting(corpus: Path, n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(corpus, f"waiting:{n}", n, concurrency=n)
        summary = run_rollout(settings, Path(folder) / "run")
    print(f"{summary['trajectories']} episodes waiting at once: {Waiting.last.rss_mb:.0f} MB")


def _settings(corpus: Path, policy: str, group: int, concurrency: int) -> Any:
    task = open_corpus(corpus)[0]
    sets = [f"corpus.path='{task.root}'", f"policy.name={policy}", f"group={group}"]
    return load_config(
        None, [*sets, f"concurrency={concurrency}", "env.max_turns=1000", "sandbox.backend=timed"]
    )


if __name__ == "__main__":
    main()
