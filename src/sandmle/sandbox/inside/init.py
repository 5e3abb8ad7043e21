"""The first process of an execution in namespaces: makes its view, watches its memory, ends it.

It is pid 1 of a pid namespace: it cannot be killed from below, orphans become its children, and
when it ends all others do.
"""

import fcntl
import os
import resource
import select
import signal
import socket
import struct
import traceback
from contextlib import suppress
from typing import NoReturn

from sandmle.sandbox.inside import linux, processes, rootfs
from sandmle.sandbox.inside.wire import Message, Wire, close_all, close_others

NAMESPACES = (
    ("pid", linux.NEWPID),
    ("mnt", linux.NEWNS),
    ("ipc", linux.NEWIPC),
    ("net", linux.NEWNET),
)
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def main(connection: int, config: Message, network: bool) -> NoReturn:
    """Make the namespaces, hand them to the worker, then serve it: `enter` and `end`."""
    wire = Wire(socket.socket(fileno=connection))
    try:
        close_others(connection)
        os.setsid()
        linux.unshare(linux.NEWNS | linux.NEWIPC | (0 if network else linux.NEWNET))
        rootfs.prepare_view()
        if not network:
            _raise_loopback()
        _hand_over(wire)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        request, descriptors = wire.receive()
        rootfs.enter_workspace(request, descriptors[0], config["readable"])
        rootfs.show_gpus(request["gpus"])
        close_all(descriptors)
        wire.send({"entered": True})
        wire.send(_watch(wire, request["base"], request["memory"]))
    except EOFError:
        pass  # the worker is gone, or has no use for this execution
    except BaseException:
        with suppress(OSError):
            wire.send({"infra": traceback.format_exc()})
    os._exit(0)


def _hand_over(wire: Wire) -> None:
    """Send handles of this process and of its namespaces."""
    handles = [os.pidfd_open(os.getpid())]
    handles += [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name, _ in NAMESPACES]
    wire.send({}, handles)
    close_all(handles)


def _raise_loopback() -> None:
    with socket.socket() as sock:
        request = struct.pack("16sH14s", b"lo", _IFF_UP, b"")
        fcntl.ioctl(sock, _SIOCSIFFLAGS, request)


def _watch(wire: Wire, base: int, limit: int) -> Message:
    """Wait for the worker's word; end the program if its processes hold more than `limit`."""
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    peak, full = 0, False
    while not poll.poll(processes.TICK_MS):
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        used = processes.used(processes.others(), base)
        peak = max(peak, used)
        if used > limit and not full:
            full = True
            _kill_all()
    wire.receive()
    survivors = processes.outliving(processes.others, base, limit)
    _kill_all()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"oom": full, "peak": peak, "cpu_s": cpu_s, "survivors": survivors}


def _kill_all() -> None:
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # all of this pid namespace but this process
