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
_TCP = 3
_SCOPES = 3  # abstract sockets, signals

READ = _EXECUTE | _READ | _LIST
LIST = _LIST


def abi() -> int:
    """Return the version that this kernel speaks; 0 if it has none."""
    try:
        return linux.syscall("landlock", _CREATE, None, 0, 1)
    except OSError:
        return 0


def restrict(
    readable: Iterable[str], listable: Iterable[str], writable: Iterable[str], tcp: bool
) -> None:
    """Allow only these paths and what lies below them; paths that do not exist are passed over.

    Without `tcp` no connection can be made or awaited (ABI 4). Signals and abstract sockets reach
    only processes under the same restriction (ABI 6). A kernel without Landlock: nothing happens.
    """
    version = abi()
    if not version:
        return
    handled = _BASIC
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL if version >= 5 else 0
    network = _TCP if version >= 4 and not tcp else 0
    attributes = struct.pack("QQQ", handled, network, _SCOPES if version >= 6 else 0)
    length = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = linux.syscall("landlock_create_ruleset", _CREATE, attributes[:length], length, 0)
    for path in readable:
        _allow(ruleset, path, handled & READ)
    for path in listable:
        _allow(ruleset, path, LIST)
    for path in writable:
        _allow(ruleset, path, handled & ~(_MAKE_CHAR | _MAKE_BLOCK))
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.syscall("landlock_restrict_self", _RESTRICT, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not os.path.isdir(path):
                rights &= _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
            if rights:
                rule = struct.pack("=Qi", rights, descriptor)
                linux.syscall("landlock_add_rule", _ADD, ruleset, 1, rule, 0)
        finally:
            os.close(descriptor)
