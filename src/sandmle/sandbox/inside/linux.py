"""The few Linux calls that Python lacks, by ctypes. All raise `OSError` with the call's name."""

import ctypes
import os
import platform
import struct

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND = 1, 2, 4, 8, 32, 4096
RECURSIVE, PRIVATE, SLAVE, SHARED = 1 << 14, 1 << 18, 1 << 19, 1 << 20

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 24, 36, 38, 47

_DETACH = 2
_MADV_COLLAPSE, _HUGE = 25, 1 << 21
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MOUNT_SETATTR = 442
_AT_RECURSIVE = 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(name: str, number: int, *arguments: int | bytes | None) -> int:
    """Make a system call by its number; integers are passed as longs."""
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *longs), name)


def _checked(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Call `prctl` with unsigned long arguments, padded with zeros."""
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(option, *padded), f"prctl {option}")


def unshare(flags: int) -> None:
    """Move this process (for a pid namespace: its children) into new namespaces."""
    _checked(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Enter the namespace that a descriptor stands for."""
    _checked(_libc.setns(descriptor, kind), "setns")


def mount(
    source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None
) -> None:
    """Call `mount`."""
    encoded = [os.fsencode(text) if text is not None else None for text in (source, target, kind)]
    options = data.encode() if data is not None else None
    _checked(_libc.mount(*encoded, ctypes.c_ulong(flags), options), f"mount {kind or 'bind'}")


def tmpfs(target: str, size: int, inodes: int, mode: int, flags: int = NOSUID | NODEV) -> None:
    """Mount a memory file system limited to `size` bytes and `inodes` files."""
    mount("tmpfs", target, "tmpfs", flags, f"size={size},nr_inodes={inodes},mode={mode:o}")


def unmount(target: str) -> None:
    """Detach a mount; it goes when nothing uses it any more."""
    _checked(_libc.umount2(os.fsencode(target), _DETACH), "umount")


def bind(source: str, target: str, writable: bool = False) -> None:
    """Show `source`, with what is mounted below it, at `target`: no devices, no setuid."""
    mount(source, target, None, BIND | RECURSIVE)
    restrict(target, writable)


def bind_device(source: str, target: str) -> None:
    """Show a device node; writable, since writing to it is its use."""
    mount(source, target, None, BIND)


def restrict(target: str, writable: bool = False) -> None:
    """Take set-user-id, device nodes and, unless `writable`, writing from a mount tree."""
    read_only = 0 if writable else RDONLY
    attributes = struct.pack("QQQQ", read_only | NOSUID | NODEV, 0, 0, 0)
    try:
        syscall(
            "mount_setattr",
            _MOUNT_SETATTR,
            -100,
            os.fsencode(target),
            _AT_RECURSIVE,
            attributes,
            len(attributes),
        )
    except OSError:  # before Linux 5.12: the top of the tree only
        flags = REMOUNT | BIND | NOSUID | NODEV | read_only | _locked(target)
        mount("none", target, None, flags)


def _locked(target: str) -> int:
    """Return the flags that a user namespace may not clear; the bits are those of `mount`."""
    kept = os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME
    relatime = (1 << 21) if os.statvfs(target).f_flag & os.ST_RELATIME else 0
    return os.statvfs(target).f_flag & kept | relatime


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root and put the old root at `old`."""
    number = _PIVOT_ROOT[platform.machine()]
    syscall("pivot_root", number, os.fsencode(new), os.fsencode(old))


def merge_pages() -> None:
    """Put this process's memory into huge pages where it can be: forks then copy smaller tables.

    `MADV_COLLAPSE` came with Linux 6.1; without it, or without room, nothing changes.
    """
    with open("/proc/self/maps", encoding="ascii", errors="replace") as lines:
        regions = [line.split() for line in lines]
    for region in regions:
        if region[1] == "rw-p" and (len(region) < 6 or region[5] == "[heap]"):
            start, end = (int(text, 16) for text in region[0].split("-"))
            first, last = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
            if last > first:
                _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _MADV_COLLAPSE)


def drop_bounding_set() -> None:
    """Give up every capability for this process and all it will ever start; before `setuid`."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one, or not ours to drop (then there is none to gain)
            return


def drop_capabilities() -> None:
    """Clear the effective, permitted, inheritable and ambient sets."""
    prctl(PR_CAP_AMBIENT, 4)
    header = struct.pack("II", _CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, b"\0" * 24), "capset")


def map_ids(inside: int, uid: int, gid: int) -> None:
    """After `unshare(NEWUSER)`: this user is `inside` in the new namespace, all others nobody."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside} {uid} 1"),
        ("gid_map", f"{inside} {gid} 1"),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
