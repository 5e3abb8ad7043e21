"""An event loop in a thread of its own, for code that is not asynchronous itself."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, TypeVar

from sandmle.errors import ModelError

T = TypeVar("T")


class _Running(NamedTuple):
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    thread: threading.Thread


class Background:
    """Runs coroutines for callers in any thread; begins with the first, ends with `close`.

    What is under way can be ended from outside, at a deadline or by `close`, whatever a server
    does; a thread that waits for a socket cannot. `resource` is open while the loop runs.
    """

    def __init__(self, resource: AbstractAsyncContextManager[Any]) -> None:
        self._resource = resource
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine; `ModelError` if this is closed, or closes meanwhile."""
        with self._lock:
            if self._closed:
                work.close()
                raise _ended()
            if self._running is None:
                self._running = self._start()
            future = asyncio.run_coroutine_threadsafe(work, self._running.loop)
        try:
            return future.result()
        except CancelledError:
            raise _ended() from None
        except BaseException:
            future.cancel()  # nobody waits for it any more
            raise

    def close(self) -> None:
        """End what is under way and the loop; may be called twice."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            running.loop.call_soon_threadsafe(running.stop.set)
            running.thread.join()

    def _start(self) -> _Running:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="sandmle-llm", daemon=True
        )
        thread.start()
        return _Running(*started.result(), thread)

    async def _serve(
        self, started: "Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]"
    ) -> None:
        stop = asyncio.Event()
        async with self._resource:
            started.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)


def _ended() -> ModelError:
    return ModelError("the run was ended while the model was asked")
