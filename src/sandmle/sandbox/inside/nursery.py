"""A small process that gives birth to the first process of each execution.

It is forked before anything heavy is imported: a first process that were forked from a worker would
copy the tables of all that the worker has imported, only to wait.
"""

import os
import select
import signal
from contextlib import suppress
from typing import NoReturn

from sandmle.sandbox.inside import init, linux
from sandmle.sandbox.inside.wire import Message, Wire, close_all

_TICK_MS = 100


def start(config: Message) -> tuple[int, Wire]:
    """Fork it; returns its number and the connection on which all workers ask."""
    ours, theirs = Wire.pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        with suppress(EOFError, OSError):
            _serve(theirs, config)
        os._exit(0)
    theirs.close()
    return pid, ours


def _serve(wire: Wire, config: Message) -> NoReturn:
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    children = 0
    while True:
        ready = poll.poll(_TICK_MS if children else None)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                children -= 1
        if not ready:
            continue
        request, descriptors = wire.receive()
        linux.unshare(linux.NEWPID)
        if os.fork() == 0:
            init.main(descriptors[0], config, request["network"])
        linux.setns(own, linux.NEWPID)  # the next child is ours again
        children += 1
        close_all(descriptors)
