"""Counting what a program leaves running, as the modes without namespaces do it."""

import os
import subprocess
import sys
from functools import partial

from sandmle.sandbox.inside import processes

LIMIT = 10**12


def test_what_sleeps_outlives_and_what_ends_does_not() -> None:
    child = subprocess.Popen(["sleep", "600"])
    ended = subprocess.Popen([sys.executable, "-c", ""])  # a zombie, once it has ended
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    try:
        found = partial(processes.descendants, os.getpid())
        assert {child.pid, ended.pid} <= set(found())

        def mine() -> list[int]:
            return [pid for pid in found() if pid in (child.pid, ended.pid)]

        assert processes.outliving(mine, 0, LIMIT) == 1
        assert processes.outliving(mine, 0, 0) == 1, "no moment for what uses too much"
    finally:
        child.kill()
        child.wait()
        ended.wait()
    assert processes.outliving(lambda: [child.pid, ended.pid], 0, LIMIT) == 0
