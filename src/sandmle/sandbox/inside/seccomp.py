"""A seccomp filter: system calls that no data-science script needs are refused.

It is a second wall. Namespaces, Landlock and the lack of capabilities already refuse most of this;
the filter also keeps a script away from parts of the kernel where mistakes have been found.
"""

import ctypes
import errno
import platform
import struct

from sandmle.sandbox.inside import linux

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR, _ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_SECCOMP, _SET_MODE_FILTER, _NEW_LISTENER = (317, 277), 1, 8

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEW_NAMESPACES = 0x7E020000  # the CLONE_NEW* flags that clone() knows
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16

# name: (x86_64, aarch64); None where the architecture has no such call
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes and the kernel's own state
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "seccomp": (317, 277),  # a listener of its own could let through what ours is asked about
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    # namespaces and mounts
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "fanotify_init": (300, 262),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    # large and rarely needed parts of the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "vmsplice": (278, 75),
    "lookup_dcookie": (212, 18),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    # memory that no limit of ours counts
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "mq_open": (240, 180),
}
# a process may do these to itself, whose number here is 0, and to no other: (argument, numbers)
_ON_ITSELF: dict[str, tuple[int, tuple[int, int]]] = {
    "prlimit64": (0, (302, 261)),
    "sched_setparam": (0, (142, 118)),
    "sched_setscheduler": (0, (144, 119)),
    "sched_setaffinity": (0, (203, 122)),
    "sched_setattr": (0, (314, 274)),
    "setpriority": (1, (141, 140)),
    "ioprio_set": (1, (251, 30)),
}
# Landlock does not keep a program from changing modes and times of its own user's files; told that
# it has, it goes on (0), and what is no file of its own stays as it is: (error, numbers)
_METADATA: dict[str, tuple[int, tuple[int | None, int | None]]] = {
    "chmod": (0, (90, None)),
    "fchmodat": (0, (268, 53)),
    "fchmodat2": (0, (452, 452)),
    "utime": (0, (132, None)),
    "utimes": (0, (235, None)),
    "futimesat": (0, (261, None)),
    "utimensat": (0, (280, 88)),
    "chown": (errno.EPERM, (92, None)),
    "lchown": (errno.EPERM, (94, None)),
    "fchownat": (errno.EPERM, (260, 54)),
}
# no limit counts the bytes in attributes, and what copies them goes on without
_ATTRIBUTES = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "removexattrat": (466, 466),
}
# these have a fallback that libraries take when the kernel says it has no such call
_ABSENT = {"clone3": (435, 435), "memfd_create": (319, 279)}
_CLONE = (56, 220)
# of those that are refused, what no library tries either: who calls these looks for a way out
TOLD = frozenset(
    (
        "ptrace", "seccomp", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "iopl",
        "ioperm", "modify_ldt", "mount", "umount2", "pivot_root", "chroot", "unshare", "setns",
        "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
        "open_tree_attr", "open_by_handle_at", "quotactl", "quotactl_fd", "fanotify_init", "acct",
        "swapon", "swapoff", "bpf", "userfaultfd", "vmsplice", "add_key", "request_key", "keyctl",
        "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot",
        "syslog", "settimeofday", "clock_settime",
    )
)  # fmt: skip
_SOCKETS = ((41, 198), (53, 199))  # socket, socketpair

Instruction = tuple[int, int, int, int]


def program(internet: bool, netlink: bool, metadata: bool, told: bool) -> bytes:
    """Assemble the filter for this machine.

    `internet` allows IPv4 and IPv6 sockets, `metadata` to change modes, owners and times of files.
    `told`: of the calls in `TOLD` a listener is asked, which must refuse them.
    """
    machine = platform.machine()
    column = list(_ARCHITECTURES).index(machine)
    families = [_UNIX] + [_INET, _INET6] * internet + [_NETLINK] * netlink
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 calls share the architecture
        code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    for table, error in ((_ABSENT, errno.ENOSYS), (_ATTRIBUTES, errno.ENOTSUP)):
        for numbers in table.values():
            code += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERROR | error)]
    for name, refused in _REFUSED.items():
        number = refused[column]
        if number is not None:
            answer = _ASK if told and name in TOLD else _ERROR | errno.EPERM
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    for place, pair in _ON_ITSELF.values():
        code += [
            (_EQUAL, 0, 4, pair[column]),
            (_LOAD, 0, 0, _ARGUMENTS + 8 * place),  # the half that an int is in
            (_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _ERROR | errno.EPERM),
        ]
    for error, either in () if metadata else _METADATA.values():
        number = either[column]
        if number is not None:
            code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | error)]
    code += [
        (_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _ARGUMENTS),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for call in _SOCKETS:
        code += [(_EQUAL, 0, len(families) + 3, call[column]), (_LOAD, 0, 0, _ARGUMENTS)]
        for place, family in enumerate(families):
            code.append((_EQUAL, len(families) - place, 0, family))
        code += [(_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def supported() -> bool:
    """Return whether there is a table for this machine."""
    return platform.machine() in _ARCHITECTURES


def install(quiet: bytes, told: bytes) -> int | None:
    """Put a filter on this process and all that it will start, for good.

    Returns the descriptor that hears of the calls of `TOLD` (see `refusals`), or None where the
    kernel has no such thing, with the filter `quiet`. Whoever holds it decides on those calls: it
    must be closed here before anything runs that is not ours.
    """
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    try:
        return _set(told, _NEW_LISTENER)
    except OSError:
        _set(quiet, 0)
        return None


def name_of(number: int) -> str:
    """Return the name of a refused system call of this machine."""
    column = list(_ARCHITECTURES).index(platform.machine())
    names = {numbers[column]: name for name, numbers in _REFUSED.items()}
    return names.get(number, str(number))


def _set(code: bytes, flags: int) -> int:
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    number = _SECCOMP[list(_ARCHITECTURES).index(platform.machine())]
    return linux.syscall("seccomp", number, _SET_MODE_FILTER, flags, header)
