"""A worker: forks one program after the other, the next one before it is asked for.

It sees no code and no output: their descriptors go through to the program.
"""

import os
import resource
import select
import signal
import time
import traceback
from contextlib import suppress
from functools import partial
from typing import NamedTuple, NoReturn

from sandmle.sandbox.inside import init, linux, places, processes, program
from sandmle.sandbox.inside.refusals import Refusals
from sandmle.sandbox.inside.wire import Message, Wire, close_all

_PATIENCE_MS = 5000  # for the first process, once the program has ended


def main(wire: Wire, config: Message, nursery: Wire | None) -> NoReturn:
    """Serve `run` requests until the harness hangs up."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL if config["namespaces"] else 0)
    worker = Worker(wire, config, nursery)
    with suppress(EOFError, OSError):
        worker.serve()
    worker.end()
    os._exit(0)


class Init(NamedTuple):
    """The first process of an execution in namespaces: a connection, and a handle to end it by."""

    wire: Wire
    handle: int


class Standby(NamedTuple):
    """An execution that waits for its program."""

    pid: int
    wire: Wire
    network: bool
    init: Init | None


class Worker:
    """One execution at a time."""

    def __init__(self, wire: Wire, config: Message, nursery: Wire | None) -> None:
        self.wire, self.config, self.nursery = wire, config, nursery
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._base: int = 0 if config["cold"] else config["base"]["memory"]
        self._standby: Standby | None = None
        self._refusals = Refusals(None)
        if nursery is None:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)

    def serve(self) -> None:
        """Keep an execution ready, take a request, run it, reply."""
        self._make_ready()
        while True:
            request, descriptors = self.wire.receive()
            if request["do"] == "stop":  # it had ended already
                continue
            self.wire.send(self._run(request, descriptors))
            self.end()
            self._make_ready()

    def _make_ready(self) -> None:
        """Make the next execution, so that it need not be waited for."""
        if self.config["ahead"]:
            with suppress(EOFError, OSError):  # tried again when it is needed, and told then
                self._standby = self._spawn(network=False)

    def _spawn(self, network: bool) -> Standby:
        """Fork a program's process, in namespaces where there are any; both wait."""
        first: Init | None = None
        views: list[tuple[int, int]] = []
        if self.nursery is not None:
            first, handles = self._call_first(network)
            kinds = [kind for _, kind in init.NAMESPACES]
            views = list(zip(handles, kinds, strict=True))
            linux.setns(*views.pop(0))  # of processes: it is the child that will be in there
        ours, theirs = Wire.pair()
        pid = os.fork()
        if pid == 0:
            program.main(theirs, self.config, network, views)
        theirs.close()
        if first is not None:
            linux.setns(self._own, linux.NEWPID)  # the next child is ours again
            close_all(handles)
        return Standby(pid, ours, network, first)

    def _call_first(self, network: bool) -> tuple[Init, list[int]]:
        """Let the nursery make a first process; returns it, and handles of its namespaces."""
        assert self.nursery is not None
        ours, theirs = Wire.pair()
        self.nursery.send({"network": network}, [theirs.fileno()])
        theirs.close()
        message, handles = ours.receive()
        if "infra" in message:
            raise OSError(message["infra"])
        return Init(ours, handles.pop(0)), handles

    def _run(self, request: Message, descriptors: list[int]) -> Message:
        """Run one program; every process of it is dead when this returns."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        try:
            if self._standby is None or self._standby.network != request["network"]:
                self.end()
                self._standby = self._spawn(request["network"])
            one = self._standby
            started = time.monotonic()
            self._enter(one, request, descriptors[0])
            one.wire.send(request, descriptors)
            report = self._begun(one, request, started)
        except (EOFError, OSError):
            report = {"infra": traceback.format_exc()}
        close_all(descriptors)
        report["wall_s"] = time.monotonic() - started
        report.setdefault("cpu_s", 0.0)
        if "code" not in report or self.nursery is None:
            self.end()
        self._refusals.close()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        report["cpu_s"] += user + system
        return report

    def _enter(self, one: Standby, request: Message, script: int) -> None:
        """Put the workspace in place; `OSError` if it could not be."""
        if one.init is not None:
            one.init.wire.send(request | {"base": self._base}, [script])
            answer, _ = one.init.wire.receive()
            if "infra" in answer:
                raise OSError(answer["infra"])
            return
        root = f"{self.config['folder']}/workspaces/{request['name']}"
        places.mend(root, list(request["trees"]), script)
        if not self.config["switch_user"]:  # counted together with all else that this user runs
            request["processes"] += processes.of_user(os.getuid())

    def _begun(self, one: Standby, request: Message, started: float) -> Message:
        """Wait until the program runs, and then for its end."""
        message: Message = {}
        handles: list[int] = []
        with suppress(EOFError):
            message, handles = one.wire.receive()
        if message:  # it could not begin
            close_all(handles)
            return message
        self._refusals = Refusals(handles[0] if handles else None)
        report = self._wait(one, request, started)
        return report | ({"denied": sorted(self._refusals.names)} if handles else {})

    def _wait(self, one: Standby, request: Message, started: float) -> Message:
        """Wait for the program's end, the deadline, or a word from the harness, to stop."""
        deadline = started + request["wall_s"]
        handle = os.pidfd_open(one.pid)
        poll = select.poll()
        for descriptor in (handle, self.wire.fileno()):
            poll.register(descriptor, select.POLLIN)
        self._refusals.join(poll)
        peak = 0
        try:
            while True:
                left = max(0.0, deadline - time.monotonic()) * 1000
                ready = dict(poll.poll(left if one.init else min(left, processes.TICK_MS)))
                if handle in ready:
                    return self._collect(one, request, peak)
                if self.wire.fileno() in ready:
                    self.wire.receive()
                    return {"stopped": True}
                self._refusals.hear(ready, poll)
                if time.monotonic() >= deadline:
                    return {"timeout": True}
                if one.init is not None:
                    continue
                used = processes.used(processes.descendants(os.getpid()), self._base)
                peak = max(peak, used)
                if used > request["memory"]:
                    return {"oom": True, "peak": peak, "code": -signal.SIGKILL}
        finally:
            os.close(handle)

    def _collect(self, one: Standby, request: Message, peak: int) -> Message:
        """Take the program's status, end what it left, and learn what all that has used."""
        _, status, usage = os.wait4(one.pid, 0)
        report: Message = {"code": os.waitstatus_to_exitcode(status)}
        if one.init is not None:
            one.init.wire.send({"do": "end"})
            poll = select.poll()
            poll.register(one.init.wire, select.POLLIN)
            if not poll.poll(_PATIENCE_MS):
                return {"infra": "the first process does not end what the program left"}
            report |= one.init.wire.receive()[0]
            peak = report["peak"]
        else:
            below = partial(processes.descendants, os.getpid())
            report["survivors"] = processes.outliving(below, self._base, request["memory"])
        report["peak"] = max(peak, usage.ru_maxrss * 1024 - self._base)
        return report

    def end(self) -> None:
        """End what waits or runs, or what is left of it, and wait until it is dead."""
        one, self._standby = self._standby, None
        if one is None:
            return
        one.wire.close()
        if one.init is None:
            processes.sweep(os.getpid())
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(one.init.handle, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(one.pid, 0)  # it dies with the first process, which waits until it is gone
        poll = select.poll()
        poll.register(one.init.handle, select.POLLIN)
        poll.poll()
        one.init.wire.close()
        os.close(one.init.handle)
