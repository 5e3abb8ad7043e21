"""Hears of the refused system calls that only somebody who looks for a way out makes.

The kernel holds such a call until it is answered here, always with the refusal that the filter
would give. What is learnt is its name, for the record; nothing is decided.

While the listener is open a program cannot have one of its own, which could let the calls through:
it stays open until every process of the execution is dead.
"""

import errno
import fcntl
import os
import select
import struct
from collections.abc import Mapping
from contextlib import suppress

from sandmle.sandbox.inside import seccomp

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # the requests of ioctl for the two structs
_NOTICE, _ANSWER = struct.Struct("QIIi60x"), struct.Struct("Qqii")


class Refusals:
    """The listener of one execution, None if it has none; `names` are the calls it has refused."""

    def __init__(self, listener: int | None) -> None:
        self.names: set[str] = set()
        self._listener = listener

    def join(self, poll: select.poll) -> None:
        """Let `poll` say when a call waits."""
        if self._listener is not None:
            poll.register(self._listener, select.POLLIN)

    def hear(self, ready: Mapping[int, int], poll: select.poll) -> None:
        """Refuse the call that waits, if one does; `ready` are descriptors and their events."""
        listener = self._listener
        if listener is None or listener not in ready:
            return
        if not ready[listener] & select.POLLIN:  # nobody is left who could call
            poll.unregister(listener)
            return
        notice = bytearray(_NOTICE.size)
        with suppress(OSError):  # the caller was killed meanwhile
            fcntl.ioctl(listener, _RECEIVE, notice)
            key, _, _, number = _NOTICE.unpack(notice)
            self.names.add(seccomp.name_of(number))
            fcntl.ioctl(listener, _SEND, bytearray(_ANSWER.pack(key, 0, -errno.EPERM, 0)))

    def close(self) -> None:
        """Stop listening, when nothing of the execution lives."""
        if self._listener is not None:
            os.close(self._listener)
            self._listener = None
