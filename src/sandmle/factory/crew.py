"""Fills slots in several processes at once.

A worker is `python -m sandmle.factory.crew`: it reads its job and then slot numbers, one a line,
and answers each with one line. When its input ends, because the parent closed it or was killed, it
ends at once, and its sandbox with it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from itertools import count, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from sandmle.errors import SandboxError, TaskError, UsageError
from sandmle.factory.slot import Filled, Job, fill, open_factory_sandbox

_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (TaskError, SandboxError, UsageError, OSError)
}


class Hand(Protocol):
    """Something that fills one slot after the other."""

    def fill(self, slot: int) -> Filled:
        """Fill a slot."""
        ...

    def close(self) -> None:
        """End it, whatever it does; may be called from another thread."""
        ...


class Here:
    """Fills slots in this process."""

    def __init__(self, out: Path, job: Job, backend: str) -> None:
        self._out, self._job = out, job
        self._sandbox = open_factory_sandbox(backend)

    def fill(self, slot: int) -> Filled:
        """Fill a slot."""
        return fill(self._out, self._job, slot, self._sandbox)

    def close(self) -> None:
        """Close the sandbox, which ends what is running in it."""
        self._sandbox.close()


class Worker:
    """Fills slots in a process of its own."""

    def __init__(self, out: Path, job: Job, backend: str) -> None:
        # one thread each: the tables are tiny, and the other cores have workers of their own
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sandmle.factory.crew", str(out.resolve()), backend],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads},
        )
        self._say(job.model_dump_json())

    def fill(self, slot: int) -> Filled:
        """Fill a slot; raises what was raised there."""
        self._say(str(slot))
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SandboxError(f"a worker of the factory ended (exit {self._process.wait()})")
        answer = json.loads(line)
        if "error" in answer:
            raise _ERRORS.get(answer["error"], RuntimeError)(answer["message"])
        return Filled.model_validate(answer)

    def close(self) -> None:
        """Kill the process; its sandbox ends by itself when that is gone."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise SandboxError(
                f"a worker of the factory ended (exit {self._process.wait()})"
            ) from None


class Crew:
    """Hands that fill slots side by side; close it to end them."""

    def __init__(self, out: Path, job: Job, workers: int, backend: str) -> None:
        make: Callable[..., Hand] = Here if workers == 1 else Worker
        self._hands = [make(out, job, backend) for _ in range(workers)]
        self._free = list(self._hands)
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(workers)

    def fill(self, n: int | None = None, ordered: bool = False) -> Iterator[Filled]:
        """Fill the first `n` slots, or go on for ever; as they are done, or in their order."""
        slots = islice(count(), n)
        ahead = [self._start(slot) for slot in islice(slots, 2 * len(self._hands))]
        while ahead:
            done = ahead[0] if ordered else _first(ahead)
            result = done.result()
            ahead.remove(done)
            ahead += [self._start(slot) for slot in islice(slots, 1)]
            yield result

    def close(self) -> None:
        """End every hand."""
        for hand in self._hands:
            hand.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _start(self, slot: int) -> "Future[Filled]":
        return self._pool.submit(self._fill, slot)

    def _fill(self, slot: int) -> Filled:
        with self._lock:
            hand = self._free.pop()
        try:
            return hand.fill(slot)
        finally:
            with self._lock:
                self._free.append(hand)


def _first(futures: "list[Future[Filled]]") -> "Future[Filled]":
    done = wait(futures, return_when=FIRST_COMPLETED).done
    return next(future for future in futures if future in done)


def main(out: Path, backend: str) -> None:
    """Answer every slot number on stdin with a line on stdout."""
    job = Job.model_validate_json(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    slots: SimpleQueue[int] = SimpleQueue()
    threading.Thread(target=_listen, args=(slots,), daemon=True).start()
    sandbox = None
    with ExitStack() as held:
        while True:
            slot = slots.get()
            try:  # a sandbox that cannot be opened here is an answer too
                sandbox = sandbox or held.enter_context(closing(open_factory_sandbox(backend)))
                answer = fill(out, job, slot, sandbox).model_dump_json()
            except tuple(_ERRORS.values()) as error:
                kind = next(name for name, known in _ERRORS.items() if isinstance(error, known))
                answer = json.dumps({"error": kind, "message": str(error)})
            answers.write(answer + "\n")
            answers.flush()


def _listen(slots: "SimpleQueue[int]") -> None:
    """Pass slot numbers on; end the process with its input, in the middle of a slot too."""
    for line in sys.stdin:
        slots.put(int(line))
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
