"""The first process of an execution: makes its view, watches its memory, reports how it ended.

In a pid namespace it is pid 1: it cannot be killed from below, and when it ends all below it do.
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

from sandmle.sandbox.inside import linux, places, processes, program, rootfs
from sandmle.sandbox.inside.wire import Message, Wire, close_all

_TICK_MS = 30
_SOCKET_BYTES = 425_984  # what the kernel keeps for one at most, twice net.core.wmem_max
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def main(wire: Wire, config: Message, network: bool) -> NoReturn:
    """Prepare, wait for a program, run it below this process, report."""
    try:
        close_others(wire.fileno())
        os.setsid()
        child, pid = _prepare(config, network)
        linux.prctl(linux.PR_SET_DUMPABLE, 0)
        request, descriptors = wire.receive()
        if config["namespaces"]:
            rootfs.enter_workspace(request, descriptors[0], config["readable"])
            rootfs.show_gpus(request["gpus"])
        else:
            _mend(f"{config['folder']}/workspaces/{request['name']}", request, descriptors[0])
            if not config["switch_user"]:  # counted together with all else that this user runs
                request["processes"] += processes.of_user(os.getuid())
        child.send(request, descriptors)
        close_all(descriptors)
        wire.send(_begun(child) or _watch(pid, wire, config, request["memory"]))
    except EOFError:
        pass  # the worker is gone, or has no use for this execution
    except BaseException:
        with suppress(OSError):
            wire.send({"infra": traceback.format_exc()})
    os._exit(0)


def close_others(*kept: int) -> None:
    """Close every descriptor but the standard three and these: a fork keeps what exec closes."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))


def _prepare(config: Message, network: bool) -> tuple[Wire, int]:
    """Enter the namespaces and fork the process that will become the program."""
    if config["namespaces"]:
        linux.unshare(linux.NEWNS | linux.NEWIPC | (0 if network else linux.NEWNET))
        rootfs.prepare_view()
        if not network:
            _raise_loopback()
    else:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    ours, theirs = Wire.pair()
    pid = os.fork()
    if pid == 0:
        program.main(theirs, config, network)
    theirs.close()
    return ours, pid


def _raise_loopback() -> None:
    with socket.socket() as sock:
        request = struct.pack("16sH14s", b"lo", _IFF_UP, b"")
        fcntl.ioctl(sock, _SIOCSIFFLAGS, request)


def _mend(root: str, request: Message, script: int) -> None:
    """Make the workspace usable again, whatever the last program did to it."""
    os.chmod(root, 0o711)
    for part in places.PARTS:
        os.chmod(f"{root}/{part}", 0o700)
    work = f"{root}/work"
    for place in request["trees"]:
        places.renew(work, place)
        places.copy_tree(f"{root}/{place}", f"{work}/{place}")
    places.renew(work, places.SCRIPT)
    places.copy(script, f"{work}/{places.SCRIPT}")


def _begun(child: Wire) -> Message:
    """Wait until the program runs; returns a message if it could not."""
    with suppress(EOFError):
        return child.receive()[0]
    return {}


def _watch(pid: int, wire: Wire, config: Message, limit: int) -> Message:
    """Wait for the program's end; end it if all its processes hold more than `limit` bytes."""
    poll = select.poll()
    poll.register(os.pidfd_open(pid), select.POLLIN)
    poll.register(wire, select.POLLIN)
    base = 0 if config["cold"] else config["base"]["memory"]
    peak = 0
    while True:
        ready = poll.poll(_TICK_MS)
        status, largest = _reap(pid)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            return _end(config) | {"code": code, "peak": max(peak, largest - base)}
        if any(descriptor == wire.fileno() for descriptor, _ in ready):
            raise EOFError
        used = _memory(config, base)
        peak = max(peak, used)
        if used > limit:
            return _end(config) | {"code": -signal.SIGKILL, "oom": True, "peak": peak}


def _end(config: Message) -> Message:
    """End all that is left and wait until it is dead; returns what everything has cost."""
    if config["namespaces"]:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all of this pid namespace but this process
        with suppress(ChildProcessError):
            while True:  # orphans have become children of this process
                os.waitpid(-1, 0)
    else:
        processes.sweep(os.getpid())
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_s": usage.ru_utime + usage.ru_stime}


def _reap(pid: int) -> tuple[int | None, int]:
    """Collect dead processes; returns the program's status and largest size once it has ended."""
    with suppress(ChildProcessError):
        while True:
            one, status, usage = os.wait4(-1, os.WNOHANG)
            if one == pid:
                return status, usage.ru_maxrss * 1024
            if not one:
                break
    return None, 0


def _memory(config: Message, base: int) -> int:
    """Add up what the execution's processes use beyond what they were born with."""
    everyone = processes.others() if config["namespaces"] else processes.descendants(os.getpid())
    found = [one for one in map(processes.memory, everyone) if one is not None]
    buffers = _SOCKET_BYTES * len(set().union(*map(processes.sockets, everyone)))
    return buffers + sum(max(0, one.own - base) + one.shared for one in found)
