"""Landlock: an allow-list of paths that a process puts on itself and cannot take off.

Constants are those of `linux/landlock.h`; what an ABI lacks is left out.
"""

import os
import struct
from collections.abc import Iterable
from contextlib import suppress

from sandmle.sandbox.inside import linux

_CREATE, _ADD, _RESTRICT = 444, 445, 446

_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_BASIC = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_TCP = 3
_SCOPES = 3  # abstract sockets, signals


def abi() -> int:
    """Return the version that this kernel speaks; 0 if it has none."""
    try:
        return linux.syscall("landlock", _CREATE, None, 0, 1)
    except OSError:
        return 0


class Ruleset:
    """What a process will be allowed once it calls `enforce`; paths that do not exist are no rule.

    Without `tcp` no connection can be made or awaited (ABI 4). Signals and abstract sockets reach
    only processes under the same restriction (ABI 6). A kernel without Landlock: nothing happens.
    """

    def __init__(self, tcp: bool) -> None:
        version = abi()
        self._handled = _BASIC
        self._handled |= _REFER if version >= 2 else 0
        self._handled |= _TRUNCATE if version >= 3 else 0
        self._handled |= _IOCTL if version >= 5 else 0
        self._descriptor: int | None = None
        if version:
            network = _TCP if version >= 4 and not tcp else 0
            attributes = struct.pack("QQQ", self._handled, network, _SCOPES if version >= 6 else 0)
            length = 8 if version < 4 else 16 if version < 6 else 24
            name = "landlock_create_ruleset"
            self._descriptor = linux.syscall(name, _CREATE, attributes[:length], length, 0)

    def fileno(self) -> int:
        """Return the descriptor, to keep it open; -1 without Landlock."""
        return -1 if self._descriptor is None else self._descriptor

    def read(self, paths: Iterable[str]) -> None:
        """Allow to read, list and execute what lies at and below these paths."""
        self._allow(paths, _EXECUTE | _READ | _LIST)

    def list(self, paths: Iterable[str]) -> None:
        """Allow to list the folders at and below these paths."""
        self._allow(paths, _LIST)

    def write(self, paths: Iterable[str]) -> None:
        """Allow everything but making device nodes at and below these paths."""
        self._allow(paths, self._handled & ~(_MAKE_CHAR | _MAKE_BLOCK))

    def enforce(self) -> None:
        """Restrict this process, and all that it will start, for good."""
        if self._descriptor is not None:
            linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
            linux.syscall("landlock_restrict_self", _RESTRICT, self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _allow(self, paths: Iterable[str], rights: int) -> None:
        if self._descriptor is None:
            return
        for path in paths:
            with suppress(FileNotFoundError):
                folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    allowed = rights if os.path.isdir(path) else rights & _ON_FILES
                    if allowed:
                        rule = struct.pack("=Qi", allowed, folder)
                        linux.syscall("landlock_add_rule", _ADD, self._descriptor, 1, rule, 0)
                finally:
                    os.close(folder)
