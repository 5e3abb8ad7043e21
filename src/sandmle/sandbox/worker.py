"""The harness's side of a worker: sends it a program, collects what comes of it."""

import os
import select
import signal
import time
from contextlib import suppress

from sandmle.errors import SandboxError
from sandmle.sandbox.inside.wire import Message
from sandmle.sandbox.keeper import Keeper
from sandmle.sandbox.watch import FLOODED, Streams
from sandmle.types import ExecResult, Limits

GRACE_S = 5.0  # on top of the limit, which the worker enforces; then it is given up
_MB = 1_000_000


class Lost(Exception):
    """The worker is gone or does not answer; says which."""


class Worker:
    """One of a sandbox's workers; runs one program at a time."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self._pid, self._wire = keeper.spawn()

    @property
    def idle(self) -> bool:
        """Return whether it is there and has nothing to say, as between two executions."""
        poll = select.poll()
        poll.register(self._wire, select.POLLIN)
        return not poll.poll(0)

    def stop(self) -> None:
        """End the program that runs, if one does."""
        with suppress(OSError):
            self._wire.send({"do": "stop"})

    def end(self) -> None:
        """End the worker with what it runs."""
        with suppress(SandboxError):
            self.keeper.kill(self._pid)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection; a worker that is alone ends."""
        self._wire.close()

    def run(self, code: str, place: Message, limits: Limits) -> ExecResult:
        """Run a program in the workspace that `place` describes and wait for its end.

        Raises `Lost` if the worker dies or does not answer in time.
        """
        script = os.memfd_create("script", os.MFD_CLOEXEC)
        with os.fdopen(script, "wb") as stream, Streams(limits.output_bytes) as streams:
            stream.write(code.encode("utf-8", "replace"))
            stream.flush()
            try:
                self._wire.send(place | _figures(limits), [script, *streams.writing])
            except OSError:
                raise Lost("the worker is gone") from None
            streams.release()
            report = self._collect(streams, time.monotonic() + limits.wall_s + GRACE_S)
            return _result(report, streams)

    def _collect(self, streams: Streams, deadline: float) -> Message:
        streams.also(self._wire.fileno())
        stopped = False
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Lost(f"the worker did not answer within {GRACE_S:g} s of the limit")
            if streams.wait(left):
                break
            if streams.flooded and not stopped:
                self.stop()
                stopped = True
        try:
            report, _ = self._wire.receive()
        except (EOFError, OSError):
            raise Lost("the worker is gone") from None
        streams.drain()
        return report | {"flooded": stopped}


def _figures(limits: Limits) -> Message:
    cpu = limits.cpu_s if limits.cpu_s is not None else 4 * limits.wall_s
    return {
        "do": "run",
        "wall_s": limits.wall_s,
        "cpu_s": int(cpu) + 1,
        "memory": limits.memory_mb * _MB,
        "shared_memory": limits.disk_mb * _MB,
        "disk": limits.disk_mb * _MB,
        "processes": limits.processes,
        "network": limits.network,
        "gpus": list(limits.gpu),
    }


def _result(report: Message, streams: Streams) -> ExecResult:
    out, err = streams.texts()
    code: int | None = report.get("code")
    if report.get("timeout"):
        status, code = "timeout", -signal.SIGKILL
    elif report.get("stopped") or report.get("flooded"):
        status, code = "killed", -signal.SIGKILL
        if report["flooded"]:
            err += FLOODED
    elif report.get("oom"):
        status = "oom"
    elif code is None:
        status, err = "infra", report.get("infra", "the execution left no report")
    else:
        status = "ok" if code == 0 else "error" if code > 0 else "killed"
    return ExecResult(
        status=status,
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        stdout=out,
        stderr=err,
        truncated=streams.truncated,
        wall_s=round(report["wall_s"], 4),
        cpu_s=round(report["cpu_s"], 4),
        peak_mb=round(report.get("peak", 0) / _MB, 1),
        survivors=report.get("survivors"),
        denied=tuple(report["denied"]) if "denied" in report else None,
    )
