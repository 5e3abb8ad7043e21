"""A worker: forks one execution after the other, the next one before it is asked for.

It sees no code and no output: their descriptors go through to the program.
"""

import os
import resource
import select
import signal
import time
from contextlib import suppress
from typing import NoReturn

from sandmle.sandbox.inside import init, linux, processes
from sandmle.sandbox.inside.wire import Message, Wire, close_all


def main(wire: Wire, config: Message) -> NoReturn:
    """Serve `run` requests until the harness hangs up."""
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL if config["namespaces"] else 0)
    worker = Worker(wire, config)
    with suppress(EOFError, OSError):
        worker.serve()
    worker.end()
    os._exit(0)


class Standby:
    """An execution that waits for its program: its first process and a connection to it."""

    def __init__(self, pid: int, wire: Wire, network: bool) -> None:
        self.pid, self.wire, self.network = pid, wire, network


class Worker:
    """One execution at a time."""

    def __init__(self, wire: Wire, config: Message) -> None:
        self.wire, self.config = wire, config
        self.namespaces: bool = config["namespaces"]
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._standby: Standby | None = None
        if not self.namespaces:
            linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)

    def serve(self) -> None:
        """Keep an execution ready, take a request, run it, reply."""
        if self.config["ahead"]:
            self._standby = self._spawn(network=False)
        while True:
            request, descriptors = self.wire.receive()
            if request["do"] == "stop":  # it had ended already
                continue
            self.wire.send(self._run(request, descriptors))
            self.end()
            if self.config["ahead"]:
                self._standby = self._spawn(network=False)

    def end(self) -> None:
        """End what waits or runs, or what is left of it."""
        one, self._standby = self._standby, None
        if one is None:
            return
        if not self.namespaces:
            processes.sweep(one.pid)
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)  # pid 1: the kernel ends the rest, and then it
        one.wire.close()
        os.waitpid(one.pid, 0)
        if not self.namespaces:
            processes.sweep(os.getpid())

    def _spawn(self, network: bool) -> Standby:
        ours, theirs = Wire.pair()
        if self.namespaces:
            linux.unshare(linux.NEWPID)
        pid = os.fork()
        if pid == 0:
            init.main(theirs, self.config, network)
        if self.namespaces:
            linux.setns(self._own, linux.NEWPID)  # the next child is ours again
        theirs.close()
        return Standby(pid, ours, network)

    def _run(self, request: Message, descriptors: list[int]) -> Message:
        """Run one program; every process of it is dead when this returns."""
        if self._standby is None or self._standby.network != request["network"]:
            self.end()
            self._standby = self._spawn(request["network"])
        one = self._standby
        started = time.monotonic()
        try:
            one.wire.send(request, descriptors)
            close_all(descriptors)
            report = self._wait(one, started + request["wall_s"])
        except (EOFError, OSError) as error:
            report = {"infra": f"the execution's first process is gone ({error})"}
        report["wall_s"] = time.monotonic() - started
        if "cpu_s" not in report:  # it could not end the rest by itself
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.end()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
            report["cpu_s"] = user + system
        return report

    def _wait(self, one: Standby, deadline: float) -> Message:
        """Wait for the report, the deadline, or a word from the harness, which means stop."""
        poll = select.poll()
        poll.register(one.wire, select.POLLIN)
        poll.register(self.wire, select.POLLIN)
        left = max(0.0, deadline - time.monotonic())
        ready = {descriptor for descriptor, _ in poll.poll(left * 1000)}
        if one.wire.fileno() in ready:
            return one.wire.receive()[0]
        if self.wire.fileno() in ready:
            self.wire.receive()
            return {"stopped": True}
        return {"timeout": True}
