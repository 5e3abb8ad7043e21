"""Sets the limits of an execution on itself, then becomes the program.

Run as `python -IS launcher.py PARENT MEMORY_MB DISK_MB CPU_S COMMAND...`. It is a program of its
own because setting limits between fork and exec is not safe in a process with threads.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


def main() -> None:
    """Apply the limits and execute the command."""
    parent, memory, disk, cpu = (int(figure) for figure in sys.argv[1:5])
    for name, wanted in (
        # data, not address space: importing a numeric library reserves far more than it uses
        (resource.RLIMIT_DATA, memory * 1_000_000),
        (resource.RLIMIT_FSIZE, disk * 1_000_000),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 1024),
    ):
        hard = resource.getrlimit(name)[1]
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(name, (limit, limit))
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:  # it died before it could be watched
        sys.exit(1)
    os.execv(sys.argv[5], sys.argv[5:])


if __name__ == "__main__":
    main()
