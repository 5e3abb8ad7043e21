"""What an attack is, what its programs can use, and the judges that most of them share.

An attack runs one program or several in a workspace. Its judge returns the evidence against the
sandbox, and nothing when it held. Whatever an attack is about, the arena also demands after each
that the secret was not printed, that nothing of the harness was touched, that no process is left
and that the workspace still works.

Every program is bounded: where nothing confines it, it costs a few hundred megabytes for a few
seconds, and leaves alone what is not the arena's own. What cannot be undone is not done but asked
for: opening without writing, signal 0, limits as they are.
"""

import json
import platform
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandmle.types import ExecResult, Limits

if TYPE_CHECKING:
    from redteam.arena import Scene

Guarantee = Literal[
    "fs_hidden",
    "fs_absent",
    "net",
    "sockets",
    "kill_all",
    "memory_limit",
    "process_limit",
    "disk_quota",
    "signals",
    "seccomp",
    "caps_dropped",
]
Judge = Callable[[ExecResult, "Scene"], str]
Play = Callable[["Scene"], ExecResult]

THE_END = "-- the end --"
_MISTAKES = re.compile(r"^(Name|Syntax|Indentation|UnboundLocal|Attribute|Key)Error: ", re.M)
QUICK = Limits(wall_s=8, memory_mb=512, disk_mb=32, processes=64)
SHORT = QUICK.model_copy(update={"wall_s": 1.5})
SMALL = QUICK.model_copy(update={"memory_mb": 256})


class BrokenAttack(Exception):
    """The attack's own program failed, so that nothing was shown."""


@dataclass(frozen=True)
class Attack:
    """One attack: what it tries, what must hold, and how that is judged.

    `needs` is the guarantee without which it must succeed; None: it fails in every confined mode.
    `reckless` ones are not tried without their guarantee, for the sake of the machine.
    """

    name: str
    tries: str
    must: str
    code: str | Play
    judge: Judge | None = None
    needs: Guarantee | None = None
    limits: Limits = QUICK
    reckless: bool = False
    skip: Callable[[], str] = str


# --- judges ---------------------------------------------------------------------------------------


def refused(result: ExecResult, scene: "Scene") -> str:
    """The program went to its end, and not one of its attempts got anything."""
    if THE_END not in result.stdout:
        raise BrokenAttack(f"{result.status}: {result.stdout[-500:]!r} {result.stderr[-1500:]}")
    return gains(result, scene)


def gains(result: ExecResult, scene: "Scene") -> str:
    """However the program ended, not one of its attempts got anything."""
    if _MISTAKES.search(result.stderr):
        raise BrokenAttack(result.stderr[-1500:])
    lines = [line for line in result.stdout.splitlines() if line.startswith("GOT ")]
    return "; ".join(line[:200] for line in lines[:4])


def ends(
    *statuses: str,
    exit_code: int | None = None,
    signal: int | None = None,
    says: str = "",
    complains: str = "",
) -> Judge:
    """Judge how the program must end and what it must have printed by then."""

    def judge(result: ExecResult, scene: "Scene") -> str:
        faults = [gains(result, scene)]
        if result.status not in statuses:
            faults.append(f"status {result.status}, not {' or '.join(statuses)}")
        if exit_code is not None and result.exit_code != exit_code:
            faults.append(f"exit code {result.exit_code}, not {exit_code}")
        if signal is not None and result.signal != signal:
            faults.append(f"signal {result.signal}, not {signal}")
        if says not in result.stdout:
            faults.append(f"did not print {says!r} but {result.stdout[-200:]!r}")
        if complains not in result.stderr:
            faults.append(f"did not complain of {complains!r} but {result.stderr[-300:]!r}")
        return "; ".join(filter(None, faults))

    return judge


# --- what the programs can use --------------------------------------------------------------------

_PRELUDE = '''
import ctypes, errno, json, os, re, signal, sys, time
HOST = json.loads({facts!r})
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.prctl(15, HOST["mark"].encode(), 0, 0, 0)  # the name by which the arena finds processes
SECRET = re.compile(b"answer-[0-9a-f]{{32}}")

def attempt(what, action):
    """Try what must not work."""
    try:
        print("GOT", what, ascii(action())[:300], flush=True)
    except Exception as fault:
        print("no", what, type(fault).__name__, ascii(str(fault))[:150], flush=True)

def search(what, action):
    """Look for the secret in bytes that may otherwise be seen."""
    try:
        found = SECRET.findall(action())
        print("GOT" if found else "nothing in", what, found[:3], flush=True)
    except Exception as fault:
        print("no", what, type(fault).__name__, ascii(str(fault))[:150], flush=True)

def anyway(*acts):
    """Do what may work or not: what counts is what comes of it."""
    for act in acts:
        try:
            act()
            print("done", flush=True)
        except OSError as fault:
            print("not done", ascii(str(fault))[:150], flush=True)

def whole(path, most=1 << 20):
    with open(path, "rb", buffering=0) as stream:
        return stream.read(most) or b""

def checked(value):
    if value == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value

def call(name, *arguments):
    """Make a system call without the C library's help."""
    ctypes.set_errno(0)
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(LIBC.syscall(ctypes.c_long(HOST["calls"][name]), *plain))

def others():
    """Every process that is known or can be seen, but this one."""
    known = {{HOST["helper"], HOST["harness"], os.getppid()}} - {{0}}
    if HOST["apart"]:  # elsewhere these would be the machine's own, which are left alone
        known |= {{int(name) for name in os.listdir("/proc") if name.isdigit()}}
    return sorted(known - {{os.getpid()}})

def daemon(work):
    """Start a process in a session of its own, whose parent is dead."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.alarm(40)
            try:
                work()
            finally:
                os._exit(0)
        os._exit(0)
    os.wait()
'''


def program(code: str, facts: Mapping[str, Any]) -> str:
    """Return a program: the code with its tools in front and a mark at its end."""
    prelude = _PRELUDE.format(facts=json.dumps(facts))
    return f"{prelude}\n{textwrap.dedent(code)}\nprint({THE_END!r}, flush=True)\n"


# name: (x86_64, aarch64), as in the kernel's unistd.h; -1 where there is no such call
_CALLS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "inotify_init1": (294, 26),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "mq_timedreceive": (243, 183),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setattr": (314, 274),
    "semget": (64, 190),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "shmget": (29, 194),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "seccomp": (317, 277),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}


def calls() -> dict[str, int]:
    """Return the numbers of system calls on this machine; empty on one that has no table."""
    machine = platform.machine()
    if machine not in ("x86_64", "aarch64"):
        return {}
    return {name: numbers[machine == "aarch64"] for name, numbers in _CALLS.items()}


def no_table() -> str:
    """Say why system calls cannot be made by number here."""
    return "" if calls() else f"no table of system calls for {platform.machine()}"


def only_x86() -> str:
    """Say why machine code for x86-64 cannot run here."""
    return "" if platform.machine() == "x86_64" else "machine code for x86-64"
