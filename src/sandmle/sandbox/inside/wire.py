"""Messages between the sandbox's processes: JSON with file descriptors attached.

Code, data and output never travel in a message, only descriptors of them: no process of the
sandbox that outlives an execution holds a byte of what went through it.
"""

import json
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

MAX_MESSAGE = 100_000  # longer ones go through a file in memory
MAX_DESCRIPTORS = 200

_ELSEWHERE = b"the message is the first descriptor"

Message = dict[str, Any]


class Wire:
    """One end of a connection; a message is sent and received whole."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    @classmethod
    def pair(cls) -> tuple["Wire", "Wire"]:
        """Make a connection; both ends are closed on exec."""
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MAX_MESSAGE)
        return cls(ends[0]), cls(ends[1])

    def fileno(self) -> int:
        """Return the descriptor, for `poll`."""
        return self.socket.fileno()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send a message with copies of the descriptors; `OSError` if nobody listens."""
        data = json.dumps(message).encode()
        if len(data) <= MAX_MESSAGE:
            socket.send_fds(self.socket, [data], descriptors)
            return
        handle = os.memfd_create("message", os.MFD_CLOEXEC)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            socket.send_fds(self.socket, [_ELSEWHERE], [handle, *descriptors])

    def receive(self) -> tuple[Message, list[int]]:
        """Wait for a message, whose descriptors the receiver must close; `EOFError` at the end."""
        data, descriptors, _, _ = socket.recv_fds(
            self.socket, MAX_MESSAGE, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not data:
            close_all(descriptors)
            raise EOFError("the other side is gone")
        if data == _ELSEWHERE:
            with os.fdopen(descriptors.pop(0), "rb") as stream:
                stream.seek(0)
                data = stream.read()
        message: Message = json.loads(data)
        return message, descriptors

    def close(self) -> None:
        """Close this end."""
        self.socket.close()


def close_others(*kept: int) -> None:
    """Close every descriptor but the standard three and these: a fork keeps what exec closes."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with suppress(OSError):  # the one that listed them
                os.close(int(name))


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)
