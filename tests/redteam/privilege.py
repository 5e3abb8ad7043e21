"""Attacks on the walls themselves: capabilities, namespaces, the kernel's less-used parts."""

import os
import re
import threading
import time
from contextlib import suppress
from pathlib import Path

from redteam.arena import Scene
from redteam.attack import SHORT, Attack, ends, gains, no_table, only_x86, refused
from sandmle.types import ExecResult

# calls by number with arguments that do nothing; EPERM and ENOSYS mean that a filter refused
_FILTERED = """
    def reached(name, *arguments):
        try:
            value = call(name, *arguments)
        except OSError as fault:
            if fault.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                print("no", name, fault)
                return
            value = fault
        print("GOT", name, value)
"""


def _host_identity(scene: Scene) -> ExecResult:
    """Look at a program from outside while it sleeps."""
    seen: dict[str, str] = {}
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set() and not seen:
            for pid in scene.survivors():
                with suppress(OSError):
                    text = Path(f"/proc/{pid}/status").read_text()
                    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
                    seen.update({name: lines[name].strip() for name in ("Uid", "Gid", "Groups")})
            time.sleep(0.05)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        result = scene.run("time.sleep(1)\nprint(os.getresuid(), os.getgroups())")
    finally:
        stop.set()
        watcher.join()
    scene.expect(bool(seen), "the program was not seen")
    root = os.getuid() == 0
    for name, own in (("Uid", os.getuid()), ("Gid", os.getgid())):
        numbers = [int(number) for number in seen.get(name, "").split()]
        fit = all(number >= 1000 if root else number == own for number in numbers)
        scene.expect(fit, f"{name} on the host is {numbers}")
    scene.expect(not root or not seen.get("Groups"), f"groups on the host: {seen.get('Groups')}")
    return result


def _no_capabilities(result: ExecResult, scene: Scene) -> str:
    """All sets are empty, of the program and of its child.

    An ordinary user cannot empty the bounding set; without new privileges it bounds nothing.
    """
    empty = r"\[0, 0, 0, 0, 0, 0, 0\] (\[.*\]) \[\]"
    found = re.findall(empty, result.stdout)
    if os.getuid() and not scene.isolation.fs_absent:
        found = ["[]" for _ in found]
    return refused(result, scene) or ("" if found == ["[]", "[]"] else result.stdout[:300])


# machine code: make a call by the 32-bit gate, or any call in registers, and return its value
_MACHINE_CODE = """
    import mmap
    def function(code, *kinds):
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        made = ctypes.CFUNCTYPE(ctypes.c_long, *kinds)(address)
        made.page = page
        return made
    # push rbx; mov eax, edi; mov ebx, esi; mov ecx, edx; int 0x80; pop rbx; ret
    gate = function(bytes.fromhex("53 89f8 89f3 89d1 cd80 5b c3"), *[ctypes.c_long] * 3)
    # mov rax, rdi; mov rdi, rsi; mov rsi, rdx; xor edx, edx; syscall; ret
    direct = function(bytes.fromhex("4889f8 4889f7 4889d6 31d2 0f05 c3"), *[ctypes.c_long] * 3)
"""

ATTACKS = [
    Attack(
        name="becoming-root",
        tries="Sets its user, group and groups to those of root and of the harness.",
        must="A program keeps the user that it was given.",
        code="""
            for name in ("setuid", "setgid", "seteuid", "setegid"):
                attempt(name, lambda: getattr(os, name)(0))
            attempt("setresuid", lambda: os.setresuid(0, 0, 0))
            attempt("setgroups", lambda: os.setgroups([0]))
            attempt("setfsuid", lambda: LIBC.setfsuid(0) + LIBC.setfsuid(0) == 0 or 1 / 0)
            if 0 in (*os.getresuid(), *os.getresgid(), *os.getgroups()):
                print("GOT", os.getresuid(), os.getresgid(), os.getgroups())
        """,
    ),
    Attack(
        name="capabilities",
        tries="Looks for capabilities in any of its sets, in those of its children too.",
        must="Each of its five sets is empty.",
        code="""
            import subprocess
            look = '''if True:
                import ctypes
                libc = ctypes.CDLL(None, use_errno=True)
                header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
                print([libc.capget(header, data), *data],
                      [n for n in range(41) if libc.prctl(23, n, 0, 0, 0) > 0],
                      [n for n in range(41) if libc.prctl(47, 1, n, 0, 0) > 0])
            '''
            done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
            print("of a child:", done.stdout)
            print("its own:", flush=True)
            exec(look)
            PR_CAP_AMBIENT, RAISE, PR_SET_SECUREBITS = 47, 2, 28
            attempt("ambient", lambda: checked(LIBC.prctl(PR_CAP_AMBIENT, RAISE, 21, 0, 0)))
            attempt("securebits", lambda: checked(LIBC.prctl(PR_SET_SECUREBITS, 1, 0, 0, 0)))
        """,
        judge=_no_capabilities,
    ),
    Attack(
        name="no-filter",
        tries="Looks for a process without the filter and without no_new_privs.",
        must="The program, its threads, its children and what they execute have both.",
        needs="seccomp",
        code="""
            import subprocess, threading
            def own():
                return f"{LIBC.prctl(39, 0, 0, 0, 0)} {LIBC.prctl(21, 0, 0, 0, 0)}"
            states = [own()]
            thread = threading.Thread(target=lambda: states.append(own()))
            thread.start()
            thread.join()
            read, write = os.pipe()
            if os.fork() == 0:
                os.write(write, own().encode())
                os._exit(0)
            states.append(os.read(read, 9).decode())
            look = ("import ctypes; libc = ctypes.CDLL(None); "
                    "print(libc.prctl(39, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))")
            done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
            states.append(done.stdout.strip())
            print(states)
            if set(states) != {"1 2"}:
                print("GOT", states)
        """,
    ),
    Attack(
        name="lifting-the-filter",
        tries="Asks the kernel to take off the filter, no_new_privs and Landlock.",
        must="Each of them is for good.",
        code="""
            LIBC.prctl(22, 0, 0, 0, 0)
            LIBC.prctl(38, 0, 0, 0, 0)
            attempt("no_new_privs", lambda: checked(LIBC.prctl(38, 0, 0, 0, 0)))
            if LIBC.prctl(39, 0, 0, 0, 0) != 1:
                print("GOT new privileges")
        """,
    ),
    Attack(
        name="user-on-the-host",
        tries="Runs while the harness looks which user it is outside.",
        must="It is not root, no system account, and in no group of the harness's.",
        code=_host_identity,
    ),
    Attack(
        name="new-namespaces",
        tries="Makes namespaces of its own, and enters those of other processes.",
        must="No namespace can be made or entered: each opens much of the kernel.",
        needs="seccomp",
        skip=no_table,
        code="""
            kinds = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000,
                     "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000, "time": 0x80}
            def in_child(act):
                pid = os.fork()
                if pid == 0:
                    try:
                        act()
                        os._exit(0)
                    except BaseException:
                        os._exit(1)
                if os.waitpid(pid, 0)[1]:
                    raise PermissionError("refused")
            for name, flag in kinds.items():
                attempt(f"unshare {name}", lambda: in_child(lambda: call("unshare", flag)))
                attempt(f"unshare user and {name}",
                        lambda: in_child(lambda: call("unshare", 0x10000000 | flag)))
            def clone(flag):
                pid = call("clone", flag | 17, 0, 0, 0, 0)
                if pid == 0:
                    os._exit(0)
                os.waitpid(pid, 0)
                return pid
            for name, flag in kinds.items():
                if name != "time":
                    attempt(f"clone {name}", lambda: clone(flag))
            import struct
            frame = ctypes.create_string_buffer(struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
            def clone3():
                pid = call("clone3", frame, 64)
                if pid == 0:
                    os._exit(0)
                return os.waitpid(pid, 0)
            attempt("clone3", clone3)
            for name in ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"):
                for pid in ("self", *others()):
                    def enter():
                        handle = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
                        in_child(lambda: call("setns", handle, 0))
                    attempt(f"setns {pid} {name}", enter)
            import subprocess
            done = subprocess.run(["unshare", "-Ur", "id", "-u"], capture_output=True, text=True)
            if done.stdout.strip() == "0":
                print("GOT unshare -Ur")
        """,
    ),
    Attack(
        name="mounting",
        tries="Mounts, unmounts and changes roots by the old and the new system calls.",
        must="The file system is as it was made.",
        needs="seccomp",
        skip=no_table,
        code=_FILTERED
        + """
    # with arguments that cannot work: what counts is who says no
    reached("open_tree", -100, b"/no-such-place", 0)
    reached("fsopen", b"no-such-type", 0)
    reached("fsmount", -1, 0, 0)
    reached("move_mount", -1, b"", -1, b"", 4)
    reached("mount_setattr", -1, b"", 0, None, 0)
    reached("name_to_handle_at", -100, b"/no-such-place", None, None, 0)
    anyway(lambda: print("GOT", call("mount", b"none", b"/no-such-place", b"tmpfs", 0, None)))
    anyway(lambda: print("GOT", call("umount2", b"/no-such-place", 2)))
    anyway(lambda: print("GOT", call("pivot_root", b"/no-such-place", b"/no-such-place")))
    attempt("chroot", lambda: call("chroot", b"."))
""",
    ),
    Attack(
        name="a-listener-of-its-own",
        tries="Takes the place of whoever is asked about refused calls, to let them through.",
        must="Nobody but the sandbox decides on system calls, however often it was asked.",
        needs="seccomp",
        skip=no_table,
        code="""
            import struct
            def look(name):
                if "seccomp" in (place := os.readlink(f"/proc/self/fd/{name}")):
                    print("GOT", place)
            for name in os.listdir("/proc/self/fd"):
                anyway(lambda: look(name))
            # ask the listener about unshare, allow the rest
            rules = [(0x20, 0, 0, 0), (0x15, 0, 1, HOST["calls"]["unshare"]),
                     (0x06, 0, 0, 0x7FC00000), (0x06, 0, 0, 0x7FFF0000)]
            code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rules))
            header = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code))
            def listen():
                attempt("a listener", lambda: call("seccomp", 1, 8, header))
            listen()
            if os.fork() == 0:  # tire it out
                while True:
                    LIBC.syscall(ctypes.c_long(HOST["calls"]["unshare"]), ctypes.c_long(0x20000))
            time.sleep(1.5)
            listen()
            os.kill(0, 9)
        """,
        judge=ends("killed"),
    ),
    Attack(
        name="file-handles",
        tries="Opens files by number, around every folder's modes, as from inside a container.",
        must="No file can be opened by a handle.",
        skip=no_table,
        code="""
            import struct
            root = os.open(".", os.O_RDONLY)
            for inode in (2, 1, 64, 128, 256):
                handle = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, inode, 0))
                attempt(f"inode {inode}", lambda: call("open_by_handle_at", root, handle, 0))
        """,
    ),
    Attack(
        name="other-processes",
        tries="Traces other processes, reads their memory and takes their descriptors.",
        must="No call works on a process outside.",
        needs="seccomp",
        skip=no_table,
        code=_FILTERED
        + """
    class Span(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("length", ctypes.c_size_t)]
    buffer = ctypes.create_string_buffer(64)
    here, there = Span(ctypes.addressof(buffer), 64), Span(0x400000, 64)
    for pid in others():
        attempt(f"seize {pid}", lambda: call("ptrace", 0x4206, pid, 0, 0))
        def taken():
            handle = call("pidfd_open", pid, 0)
            return [call("pidfd_getfd", handle, number, 0) for number in range(3)]
        attempt(f"descriptors of {pid}", taken)
    me = os.getpid()
    reached("process_vm_readv", me, ctypes.byref(here), 1, ctypes.byref(here), 1, 0)
    reached("ptrace", 0x4206, me, 0, 0)
    reached("kcmp", me, me, 0, 0, 0)
    reached("pidfd_getfd", -1, 0, 0)
    reached("process_madvise", -1, None, 0, 0, 0)
""",
    ),
    Attack(
        name="io-uring-and-faults",
        tries="Calls io_uring, userfaultfd, bpf and perf, where the kernel's own faults live.",
        must="The filter refuses each of them.",
        needs="seccomp",
        skip=no_table,
        code=_FILTERED
        + """
    reached("io_uring_setup", 0, None)
    reached("userfaultfd", 0xFFFF)
    reached("bpf", 9999, None, 0)
    reached("perf_event_open", None, 0, -1, -1, 0)
    reached("memfd_secret", 0xFFFF)
    reached("fanotify_init", 0xFFFF, 0)
""",
    ),
    Attack(
        name="keyrings",
        tries="Adds, asks for and lists keys in the kernel's keyrings.",
        must="The filter refuses: keyrings are not in any namespace of ours.",
        needs="seccomp",
        skip=no_table,
        code=_FILTERED
        + """
    reached("add_key", b"user", b"redteam", b"x", 1, -3)
    reached("keyctl", 0, -3, 0)
    reached("keyctl", 9999)
    reached("request_key", b"user", b"no-such-key", None, 0)
""",
    ),
    Attack(
        name="ruling-the-machine",
        tries="Loads modules, reboots, swaps, reads the kernel's log, sets clock and names.",
        must="Each call is refused.",
        skip=no_table,
        code=_FILTERED
        + """
    reached("init_module", None, 0, None)
    reached("finit_module", -1, None, 0)
    reached("delete_module", b"no_such_module", 0)
    reached("kexec_load", 0, 0, None, 0)
    reached("reboot", 0, 0, 0, None)
    reached("swapon", b"/no-such-file", 0)
    reached("acct", b"/no-such-file")
    reached("syslog", 10, None, 0)
    reached("sethostname", b"redteam", 7)
    reached("quotactl", 0x800007 << 8, b"/no-such-file", 0, None)
    attempt("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))
""",
    ),
    Attack(
        name="32-bit-calls",
        tries="Makes system calls through the 32-bit gate, whose numbers are others.",
        must="The filter is not passed by by that gate.",
        needs="seccomp",
        skip=only_x86,
        code=_MACHINE_CODE
        + """
    if os.fork() == 0:
        value = gate(20, 0, 0)  # getpid
        print("GOT getpid" if value == os.getpid() else "no", value, flush=True)
        value = gate(310, 0x10000000, 0)  # unshare
        print("GOT unshare" if value == 0 else "no", value, flush=True)
        os._exit(0)
    print("it ended with", os.wait()[1])
""",
    ),
    Attack(
        name="x32-calls",
        tries="Makes system calls with the numbers of the x32 variant.",
        must="The filter knows them, or the kernel does not.",
        skip=only_x86,
        code=_MACHINE_CODE
        + """
    X32 = 0x40000000
    for name, number, argument in (("unshare", 272, 0x10000000), ("chroot", 161, 0),
                                   ("ptrace", 521, 0), ("process_vm_readv", 539, 0)):
        if os.fork() == 0:
            value = direct(X32 | number, argument, 0)
            refused = value in (-errno.EPERM, -errno.ENOSYS, -errno.EACCES)
            print("no" if refused else "GOT", name, value, flush=True)
            os._exit(0)
        print("it ended with", os.wait()[1])
""",
    ),
    Attack(
        name="numbers-with-high-bits",
        tries="Puts bits above the 32nd into the numbers and arguments of refused calls.",
        must="The filter and the kernel understand a call alike.",
        needs="seccomp",
        skip=only_x86,
        code=_MACHINE_CODE
        + """
    for name, number, argument in (
        ("unshare", 272 | 1 << 32, 0x10000000),
        ("unshare flags", 272, 0x10000000 | 1 << 40),
        ("clone", 56, 0x10000000 | 17 | 1 << 40),
        ("socket", 41, 16 | 1 << 32),
        ("negative", 272 - (1 << 32), 0x10000000),
    ):
        if os.fork() == 0:
            value = direct(number, argument, 3)
            if value == 0 and name == "clone":
                os._exit(0)
            print("GOT" if value >= 0 else "no", name, value, flush=True)
            os._exit(0)
        print("it ended with", os.wait()[1])
""",
    ),
    Attack(
        name="setuid-programs",
        tries="Executes su, mount, passwd and every other set-user-ID program.",
        must="None of them gives another user or a capability.",
        code="""
            import glob, stat, subprocess
            found = []
            for folder in ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib/openssh"):
                try:
                    paths = [f"{folder}/{name}" for name in os.listdir(folder)]
                except OSError:
                    continue
                for path in paths:
                    try:
                        if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
                            found.append(path)
                    except OSError:
                        pass
            print(len(found), "found")
            for command in (["su", "-c", "id -u"], ["mount", "-t", "tmpfs", "x", "."],
                            ["sudo", "-n", "id", "-u"], ["pkexec", "id", "-u"],
                            ["newgrp", "root"], ["passwd", "-S"], ["crontab", "-l"]):
                def execute():
                    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                          text=True, timeout=2)
                    if done.returncode or not done.stdout.strip() == "0":
                        raise PermissionError(done.stderr[:80])
                    return done.stdout
                attempt(command[0], execute)
            if os.path.ismount("."):
                print(os.listdir("."))
        """,
    ),
    Attack(
        name="setuid-programs-of-its-own",
        tries="Makes programs that set user, group or capabilities, and executes them.",
        must="Such modes and attributes mean nothing in a workspace.",
        code="""
            import shutil, subprocess, tempfile
            for folder in (".", tempfile.gettempdir(), os.environ["HOME"]):
                path = f"{folder}/id"
                shutil.copy("/usr/bin/id", path)
                with open(path) as stream:
                    anyway(lambda: os.fchmod(stream.fileno(), 0o6755))
                cap = bytes.fromhex("0100000200000080000000000000000000000000")
                attempt("capability", lambda: os.setxattr(path, "security.capability", cap))
                done = subprocess.run([path], capture_output=True, text=True)
                print(done.stdout)
                if "euid=" in done.stdout or "egid=" in done.stdout or "uid=0" in done.stdout:
                    print("GOT", done.stdout)
        """,
    ),
    Attack(
        name="writing-outside",
        tries="Opens system folders and files, and settings of the kernel, for writing.",
        must="Only the workspace and its temporary folders can be written.",
        needs="fs_hidden",
        code="""
            mine = HOST["mark"]
            folders = [HOST["base"], HOST["public"], HOST["hidden"]]
            if HOST["walled"]:
                folders += ["/", "/usr", "/usr/lib", "/etc", "/var", "/var/tmp", "/run", "/root",
                            "/home", "/opt", "/dev", "/proc", "/sys", "/bin", "/.workspaces",
                            "/.trees", "/.run", "/mnt"]
            for folder in folders:
                path = f"{folder}/{mine}"
                def make():
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                    os.unlink(path)
                attempt(f"make {path}", make)
                attempt(f"mkdir {path}", lambda: os.mkdir(path) or os.rmdir(path))
            for path in ("/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/ld.so.cache",
                         "/usr/bin/env", "/bin/sh", "/proc/sys/kernel/core_pattern",
                         "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory",
                         "/proc/sys/kernel/ns_last_pid", "/proc/sys/user/max_user_namespaces",
                         "/sys/kernel/mm/transparent_hugepage/enabled"):
                attempt(f"open {path}", lambda: os.close(os.open(path, os.O_WRONLY)))
        """,
    ),
    Attack(
        name="own-process-files",
        tries="Writes what the kernel lets a process write about itself, and about its parent.",
        must="No mapping, no better standing and no other process can be set.",
        code="""
            def write(path, text):
                with open(path, "w") as stream:
                    stream.write(text)
            for name, text in {"uid_map": "0 0 1", "gid_map": "0 0 1", "setgroups": "allow",
                               "oom_score_adj": "-900",
                               "timens_offsets": "monotonic 1 0"}.items():
                attempt(name, lambda: write(f"/proc/self/{name}", text))
            for pid in others():
                for name in ("oom_score_adj", "oom_adj", "clear_refs", "coredump_filter", "comm",
                             "mem", "uid_map", "autogroup", "timerslack_ns"):
                    path = f"/proc/{pid}/{name}"
                    attempt(path, lambda: os.open(path, os.O_WRONLY))
        """,
    ),
    Attack(
        name="raised-limits",
        tries="Raises its own limits and those of other processes.",
        must="A limit can only be lowered.",
        code="""
            import resource
            names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
            for name in names:
                number = getattr(resource, name)
                soft, hard = resource.getrlimit(number)
                if hard != resource.RLIM_INFINITY:
                    attempt(name, lambda: resource.setrlimit(number, (hard, hard + 1)))
                    attempt(name, lambda: resource.setrlimit(number, (hard, -1)))
            for pid in others():  # who may read them may set them, and a lowered one stays
                attempt(f"of {pid}", lambda: resource.prlimit(pid, resource.RLIMIT_CPU))
            for name in ("RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE",
                         "RLIMIT_CPU", "RLIMIT_MEMLOCK"):
                if resource.getrlimit(getattr(resource, name))[1] == resource.RLIM_INFINITY:
                    print("unlimited", name)
        """,
    ),
    Attack(
        name="starving-its-parent",
        tries="Lowers the limits of the process that watches it, to end it or to blind it.",
        must="A program cannot pass its own failure off as the sandbox's.",
        limits=SHORT,
        code="""
            import resource
            watcher = os.getppid() or 1  # 0: the parent is outside, and 1 watches
            for name in ("RLIMIT_CORE", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_AS", "RLIMIT_CPU"):
                number = getattr(resource, name)
                attempt(name, lambda: resource.prlimit(watcher, number, (0, 0)))
            anyway(lambda: os.setpriority(os.PRIO_PROCESS, watcher, 19))
            print("begun", flush=True)
            while True:
                pass
        """,
        judge=ends("timeout", says="begun"),
    ),
    Attack(
        name="more-processor-time",
        tries="Raises its priority, asks for real-time scheduling, and moves other processes.",
        must="A program cannot get ahead of the harness.",
        code="""
            attempt("nice", lambda: os.nice(-5))
            attempt("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
            attempt("round robin", lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)))
            import struct
            deadline = struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7)
            if HOST["calls"]:
                attempt("deadline", lambda: call("sched_setattr", 0, deadline, 0))
            def confirm_affinity(pid):
                os.sched_setaffinity(pid, os.sched_getaffinity(pid))
            def confirm_priority(pid):
                os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
            for pid in (HOST["helper"], HOST["harness"]):
                attempt(f"affinity of {pid}", lambda: confirm_affinity(pid))
                attempt(f"priority of {pid}", lambda: confirm_priority(pid))
                attempt(f"policy of {pid}", lambda: os.sched_setscheduler(
                    pid, os.sched_getscheduler(pid), os.sched_getparam(pid)))
        """,
    ),
    Attack(
        name="devices",
        tries="Makes device nodes, and opens every one that there is.",
        must="Only null, zero, full and the sources of randomness open.",
        needs="fs_hidden",
        code="""
            import stat
            harmless = {"null", "zero", "full", "random", "urandom"}
            def opens(path):
                handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
                kind = os.fstat(handle).st_mode
                os.close(handle)
                return "device" if stat.S_ISCHR(kind) or stat.S_ISBLK(kind) else 1 / 0
            names = {"mem", "kmsg", "vda", "sda", "nvme0n1", "fuse", "kvm", "net/tun", "ptmx",
                     "tty", "pts/ptmx", "loop-control", "console", "vsock", "hwrng", "rtc0",
                     "uinput", "mapper/control", "vhost-net", "cpu/0/msr"}
            if HOST["apart"]:  # elsewhere there may be a watchdog, which bites when it is opened
                names |= set(os.listdir("/dev"))
            for name in sorted(names - harmless - {"fd", "stdin", "stdout", "stderr", "shm"}):
                attempt(name, lambda: opens(f"/dev/{name}"))
            for name, number in {"mem": (1, 1), "null": (1, 3), "disk": (254, 0)}.items():
                for kind in (stat.S_IFCHR, stat.S_IFBLK):
                    device = os.makedev(*number)
                    attempt(f"make {name}", lambda: os.mknod(name, kind | 0o666, device))
        """,
    ),
    Attack(
        name="terminal",
        tries="Looks for a terminal, and puts keystrokes into it.",
        must="There is no controlling terminal, and nothing is typed into any.",
        code="""
            import fcntl
            attempt("tty", lambda: os.open("/dev/tty", os.O_RDWR))
            for number in (0, 1, 2):
                if os.isatty(number):
                    print("GOT a terminal", number)
                attempt(f"type into {number}", lambda: fcntl.ioctl(number, 0x5412, b"x"))
                attempt(f"select in {number}", lambda: fcntl.ioctl(number, 0x541C, b"\\3"))
            attempt("group", lambda: os.tcgetpgrp(0))
        """,
    ),
    Attack(
        name="odd-executables",
        tries="Executes from anonymous memory, deleted files and by the loader, to shed its walls.",
        must="Whatever is executed is as confined as before.",
        needs="fs_hidden",
        code="""
            import glob, shutil, subprocess
            look = f"cat {HOST['answer']} || cat /proc/{HOST['helper']}/environ"
            shell = "/bin/sh"
            search("shell", lambda: subprocess.run([shell, "-c", look], capture_output=True).stdout)
            for loader in glob.glob("/lib64/ld-linux*") + glob.glob("/lib/ld-linux*"):
                search(loader, lambda: subprocess.run([loader, shell, "-c", look],
                                                      capture_output=True).stdout)
            def from_memory():
                handle = os.memfd_create("sh", 0)
                with open(os.path.realpath(shell), "rb") as stream:
                    os.write(handle, stream.read())
                return subprocess.run([f"/proc/self/fd/{handle}", "-c", look], pass_fds=[handle],
                                      capture_output=True).stdout
            search("memory", from_memory)
            def copied():
                shutil.copy(os.path.realpath(shell), "copy")
                return subprocess.run(["./copy", "-c", look], capture_output=True).stdout
            search("copy", copied)
        """,
        judge=gains,
    ),
]
