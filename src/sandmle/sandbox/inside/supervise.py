"""The first process of a sandbox: it enters the namespaces and watches over what it started.

It ends everything when the harness is gone, however that ended. It runs outside, holds nothing of
any task, and never runs agent code.
"""

import os
import select
import signal
import socket
import sys
from contextlib import suppress

from sandmle.sandbox.inside import keeper, linux, places, processes
from sandmle.sandbox.inside.wire import Message, Wire

INSIDE_ID = 1000  # the user that a user namespace shows


def main(sock: socket.socket) -> None:
    """Take the configuration, start the keeper, and wait for either side's end."""
    wire = Wire(sock)
    config, _ = wire.receive()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the harness
    harness = os.pidfd_open(config["harness"])
    if os.getppid() != config["harness"]:
        return
    try:
        _enter(config)
    except OSError as error:
        wire.send({"refused": str(error)})
        return
    pid = os.fork()
    if pid == 0:
        os.close(harness)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        keeper.main(wire, config)
    wire.close()
    keeper_end = os.pidfd_open(pid)
    poll = select.poll()
    for descriptor in (harness, keeper_end):
        poll.register(descriptor, select.POLLIN)
    poll.poll()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # pid 1 of its namespace: the kernel ends the rest
    if not config["namespaces"]:
        processes.sweep(os.getpid())
        with suppress(OSError):
            places.remove(config["folder"])
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
    sys.exit()


def _enter(config: Message) -> None:
    """Become an ordinary user where the mode wants it, and enter the outer namespaces."""
    if not config["namespaces"]:
        linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
        return
    if config["user_namespace"]:
        if os.geteuid() == 0:  # the limit on processes does not hold for root
            os.setgroups([])
            os.setresgid(*[config["uid"]] * 3)
            os.setresuid(*[config["uid"]] * 3)
            linux.prctl(linux.PR_SET_DUMPABLE, 1)  # else /proc/self is still root's
            for path in config["readable"]:
                os.stat(path)  # an interpreter in root's home is of no use to others
        uid, gid = os.getuid(), os.getgid()
        linux.unshare(linux.NEWUSER | linux.NEWPID)
        linux.map_ids(INSIDE_ID, uid, gid)
    else:
        linux.unshare(linux.NEWPID)
