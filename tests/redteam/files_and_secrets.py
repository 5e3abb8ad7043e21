"""Attacks on hidden files, other processes' memory, keys, and other workspaces."""

import ctypes
import secrets
from contextlib import suppress
from pathlib import Path

from redteam.arena import Scene
from redteam.attack import THE_END, Attack, ends, no_table
from sandmle.types import ExecResult

_SHARED_KEY = 0x52544D


def _leftovers(scene: Scene) -> ExecResult:
    """One workspace leaves files everywhere; another looks for them."""
    word = f"leftover-{secrets.token_hex(8)}"
    scene.run(f"""
        import tempfile
        places = ("/tmp", "/var/tmp", "/dev/shm", "/run", tempfile.gettempdir(), os.environ["HOME"])
        for place in {{*places, "."}}:
            try:
                with open(f"{{place}}/{word}.txt", "w") as stream:
                    stream.write("mine")
                print("left one in", place)
            except OSError as fault:
                print(place, fault)
    """)
    scene.on_close(lambda: _remove_leftovers(word))
    return scene.run(
        f"""
        import tempfile
        places = ("/tmp", "/var/tmp", "/dev/shm", "/run", tempfile.gettempdir(), os.environ["HOME"])
        for place in {{*places, ".", ".."}}:
            attempt(place, lambda: whole(f"{{place}}/{word}.txt"))
        """,
        scene.open(),
    )


def _remove_leftovers(word: str) -> None:
    for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        with suppress(OSError):
            Path(place, f"{word}.txt").unlink()


def _other_workspace(scene: Scene) -> ExecResult:
    """One workspace holds a file with the secret; another looks for its folder."""
    word = f"neighbour-{secrets.token_hex(6)}"
    made = scene.run(
        f"""
        with open("{word}.txt", "w") as stream:
            stream.write("mine")
        print("WHERE", os.getcwd())
        """
    )
    where = made.stdout.partition("WHERE ")[2].splitlines()[0]
    return scene.run(
        f"""
        attempt("its path", lambda: whole("{where}/{word}.txt"))
        seen = []
        for root in ("..", "../..", "../../..", "/.workspaces", os.path.dirname(HOST["base"])):
            for folder, folders, files in os.walk(root):
                folders[:] = [name for name in folders if name not in ("proc", "sys", "usr")]
                seen += [f"{{folder}}/{{name}}" for name in files if "{word}" in name]
        for path in seen:
            attempt(path, lambda: whole(path))
        """,
        scene.open(),
    )


def _neighbours_memory(scene: Scene) -> ExecResult:
    """Scripts, output and files of one workspace are looked for in the memory of another's."""
    word, rest = secrets.token_hex(4), secrets.token_hex(12)
    whole = f"heap-{word}-{rest}"
    for number in range(3):
        scene.run_bare(
            f"# {whole}\nprint({whole!r})\nopen('{whole}.txt', 'w').write({whole!r})\n"
            f"raise ValueError('{whole}', {number})"
        )
    scene.names()
    scene.read(f"{whole}.txt")
    result = scene.run(
        _SCAN + f'\nprint("FOUND", len(scan(re.compile(b"heap-{word}-[0-9a-f]{{24}}"))))',
        scene.open(),
    )
    scene.expect("FOUND 0\n" in result.stdout, f"in its memory: {result.stdout[-300:]}")
    return result


def _frames(scene: Scene) -> ExecResult:
    """What is looked for is spelt backwards, since the program's own text is an object too."""
    names = [scene.host.base.name[::-1], scene.host.secret[::-1]]
    return scene.run_bare(f"""
import gc, os, sys

def look():
    needles = [name[::-1] for name in {names!r}]
    frame, depth = sys._getframe().f_back, 0
    while frame := frame.f_back:
        depth += 1
        for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
            if isinstance(value, (str, bytes, list, tuple, dict, set, os.PathLike)):
                if any(needle in ascii(value) for needle in needles):
                    print("GOT", frame.f_code.co_name, name, ascii(value)[:100])
    for one in gc.get_objects():
        kind = type(one)
        if kind.__name__ == "socket" and one.fileno() >= 0:
            try:
                os.fstat(one.fileno())
                print("GOT an open socket", one)
            except OSError:
                print("a closed socket")
        if kind in (dict, list, tuple):
            for value in one.values() if kind is dict else one:
                if isinstance(value, (str, os.PathLike)) and value is not needles:
                    if any(needle in str(value) and value != needle for needle in needles):
                        print("GOT", str(value)[:100])
    print("stack", depth)

look()
print({THE_END!r})
""")


# reads its own memory; the pattern itself does not match
_SCAN = """
def scan(pattern):
    found, size = set(), 1 << 22
    # written to a file, since the kernel then says which pages cannot be read
    copy = os.open("memory.bin", os.O_RDWR | os.O_CREAT)
    for line in whole("/proc/self/maps", 1 << 24).decode().splitlines():
        bounds, modes, *_, name = (line + " -").split()[:6]
        if modes[0] != "r" or name.startswith("[v"):
            continue
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        for at in range(start, end, size):
            length = min(end - at, size + 64)
            got = LIBC.pwrite(copy, ctypes.c_void_p(at), ctypes.c_size_t(length), ctypes.c_long(0))
            if got > 0:
                found.update(pattern.findall(os.pread(copy, got, 0)))
    os.unlink("memory.bin")
    return found
"""

ATTACKS = [
    Attack(
        name="answer-by-its-path",
        tries="Opens the hidden files under their paths on the host.",
        must="Nothing outside the workspace can be read.",
        needs="fs_hidden",
        code="""
            for name in ("answer", "threshold", "evaluator", "spec", "log"):
                attempt(name, lambda: whole(HOST[name]))
            attempt("list", lambda: os.listdir(HOST["hidden"]))
        """,
    ),
    Attack(
        name="walk-for-secrets",
        tries="Walks the whole file system and looks into every small file for the secret.",
        must="What can be read anywhere holds nothing of a task but its public files.",
        needs="fs_hidden",
        code="""
            until = time.monotonic() + 5
            def walk(root):
                for folder, folders, files in os.walk(root):
                    if os.path.basename(folder) in ("proc", "sys", "usr", "lib", "dev"):
                        folders[:], files = [], []
                    for name in files:
                        path = f"{folder}/{name}"
                        if time.monotonic() > until:
                            break
                        try:
                            if os.lstat(path).st_size < 100_000 and SECRET.search(whole(path)):
                                return path
                        except OSError:
                            pass
                    if time.monotonic() > until:
                        break
                raise LookupError(f"nothing below {root}")
            for root in (HOST["base"], os.path.dirname(HOST["base"]), "..", "/"):
                before = time.monotonic()
                try:
                    print("GOT", walk(root))
                    break
                except LookupError as fault:
                    print(fault)
        """,
    ),
    Attack(
        name="hidden-names-exist",
        tries="Asks whether the hidden files exist and how large they are.",
        must="Not even the existence of a path of the harness shows.",
        needs="fs_absent",
        code="""
            for name in ("answer", "threshold", "evaluator", "base", "log"):
                attempt(name, lambda: os.stat(HOST[name]))
                attempt(name, lambda: os.access(HOST[name], os.F_OK) or 1 / 0)
        """,
    ),
    Attack(
        name="climbing-out",
        tries="Climbs out of the workspace by relative paths, handles, O_PATH and chdir.",
        must="No way of naming a hidden file opens it.",
        needs="fs_hidden",
        code="""
            attempt("relative", lambda: whole("../" * 40 + HOST["answer"].lstrip("/")))

            def by_handles():
                handle = os.open(".", os.O_RDONLY)
                for _ in range(40):
                    handle = os.open("..", os.O_PATH, dir_fd=handle)
                return os.read(os.open(HOST["answer"].lstrip("/"), os.O_RDONLY, dir_fd=handle), 99)
            attempt("handles", by_handles)

            def by_path_handle():
                handle = os.open(HOST["hidden"], os.O_PATH | os.O_DIRECTORY)
                return os.read(os.open("answer.csv", os.O_RDONLY, dir_fd=handle), 99)
            attempt("O_PATH folder", by_path_handle)

            def reopened():
                handle = os.open(HOST["answer"], os.O_PATH)
                return whole(f"/proc/self/fd/{handle}")
            attempt("O_PATH file", reopened)

            def link():
                os.symlink(HOST["answer"], "link.csv")
                return whole("link.csv")
            attempt("link", link)

            def moved():
                os.chdir(HOST["hidden"])
                return whole("answer.csv")
            attempt("chdir", moved)
        """,
    ),
    Attack(
        name="roots-of-processes",
        tries="Reaches for the hidden file through every process's root and working directory.",
        must="/proc leads nowhere but into the own view.",
        needs="fs_hidden",
        code="""
            for pid in [*others(), "self", "thread-self"]:
                for door in ("root", "cwd"):
                    up = "" if door == "root" else "/.." * 20
                    path = f"/proc/{pid}/{door}{up}{HOST['answer']}"
                    search(f"{pid} {door}", lambda: whole(path))
        """,
    ),
    Attack(
        name="environments-and-arguments",
        tries="Reads the environment and the command line of every process.",
        must="No key and no private path of another process shows.",
        needs="fs_hidden",
        code="""
            for pid in others():
                for name in ("environ", "cmdline", "auxv", "stack", "syscall", "task"):
                    search(f"{pid} {name}", lambda: whole(f"/proc/{pid}/{name}"))
                search(f"{pid} threads", lambda: b"".join(
                    whole(f"/proc/{pid}/task/{task}/{name}")
                    for task in os.listdir(f"/proc/{pid}/task") for name in ("environ", "cmdline")))
        """,
    ),
    Attack(
        name="descriptors-of-processes",
        tries="Opens what other processes hold open, deleted files too.",
        must="No descriptor of another process can be listed or opened.",
        needs="fs_hidden",
        code="""
            import stat
            for pid in others():
                try:
                    numbers = os.listdir(f"/proc/{pid}/fd")
                except OSError as fault:
                    print("no", pid, fault)
                    numbers = [str(number) for number in range(40)]
                for number in numbers:
                    path = f"/proc/{pid}/fd/{number}"
                    try:
                        if not stat.S_ISREG(os.stat(path).st_mode):
                            continue
                    except OSError:
                        continue
                    search(path, lambda: whole(path))
        """,
    ),
    Attack(
        name="memory-of-processes",
        tries="Opens the memory of every other process that is known or can be seen.",
        must="No other process's memory, map of it or registers can be opened.",
        needs="fs_hidden",
        code="""
            for pid in others():
                for name in ("mem", "maps", "smaps", "pagemap", "personality", "io", "map_files"):
                    path = f"/proc/{pid}/{name}"
                    attempt(path, lambda: os.listdir(path) if name == "map_files" else
                            os.open(path, os.O_RDONLY))
        """,
    ),
    Attack(
        name="own-memory",
        tries="Searches all of its own memory for the secret.",
        must="A program's process has never had anything of the harness in it.",
        code=_SCAN + '\nprint("GOT" if (hits := scan(SECRET)) else "nothing", sorted(hits)[:3])',
    ),
    Attack(
        name="memory-of-a-neighbour",
        tries="Searches its memory for the script, output and files of another workspace.",
        must="Nothing of one workspace is left in the memory that another's programs start with.",
        code=_neighbours_memory,
    ),
    Attack(
        name="fresh-pages",
        tries="Searches newly allocated memory for what its last owner wrote.",
        must="Every fresh page is empty.",
        code="""
            import mmap
            import numpy as np
            blocks = [np.empty(20_000_000, np.uint8) for _ in range(5)]
            dirty = sum(int(np.count_nonzero(block[4096:])) for block in blocks)
            pages = mmap.mmap(-1, 50_000_000)
            dirty += len(pages[:].strip(b"\\0"))
            print("GOT" if dirty else "nothing", dirty)
        """,
    ),
    Attack(
        name="frames-and-objects",
        tries="Walks the call stack and the garbage collector's list for objects of the harness.",
        must="No open socket, no secret and no path of the harness is within reach.",
        code=_frames,
    ),
    Attack(
        name="inherited-descriptors",
        tries="Looks for descriptors that are open from the start.",
        must="Only standard input, output and error are open.",
        code="""
            for number in range(3, 70_000):
                try:
                    print("GOT", number, os.fstat(number), os.readlink(f"/proc/self/fd/{number}"))
                except OSError:
                    pass
            print(os.fstat(0), os.fstat(1), os.fstat(2))
            attempt("what the harness holds", lambda: os.pread(HOST["held"], 99, 0))
        """,
    ),
    Attack(
        name="forged-reports",
        tries="Writes reports of success into every descriptor, then fails.",
        must="How a program ended is told by the kernel, not by what it wrote.",
        code="""
            import struct
            body = json.dumps({"exit": 0, "status": "ok", "ready": True, "signal": None}).encode()
            for number in range(3, 1024):
                for frame in (body, struct.pack(">I", len(body)) + body, bytes(8)):
                    try:
                        os.write(number, frame)
                    except OSError:
                        pass
            print("wrote")
            sys.exit(3)
        """,
        judge=ends("error", exit_code=3, says="wrote"),
    ),
    Attack(
        name="neighbours-files",
        tries="Looks for the files of another open workspace.",
        must="A workspace sees no other workspace.",
        needs="fs_hidden",
        code=_other_workspace,
    ),
    Attack(
        name="leftovers-of-a-neighbour",
        tries="Looks for what another workspace left in the folders for temporary files.",
        must="Temporary files, home and /dev/shm are each workspace's own.",
        needs="fs_hidden",
        code=_leftovers,
    ),
    Attack(
        name="harness-code",
        tries="Opens the harness, the interpreter and their libraries for writing.",
        must="Nothing that the harness runs can be changed.",
        code="""
            import numpy, site
            places = [HOST["package"] + "/__init__.py", HOST["package"], HOST["tests"], os.__file__]
            places += [sys.executable, os.path.realpath(sys.executable), numpy.__file__, "/bin/sh"]
            for path in [*places, *sys.path, *site.getsitepackages()]:
                if path in ("", os.getcwd()) or not os.path.exists(path):
                    continue
                if os.path.isdir(path):
                    mine = f"{path}/{HOST['mark']}.pth"
                    attempt(mine, lambda: os.close(os.open(mine, os.O_CREAT | os.O_WRONLY)) or
                            os.unlink(mine))
                else:
                    attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))
        """,
    ),
    Attack(
        name="harness-files-changed",
        tries="Overwrites, removes, renames and links hidden files.",
        must="No file of the harness is changed.",
        needs="fs_hidden",
        code="""
            answer = HOST["answer"]
            attempt("append", lambda: open(answer, "a").write("x"))
            attempt("truncate", lambda: os.truncate(HOST["threshold"], 0))
            attempt("link", lambda: os.link(answer, "stolen.csv"))
            attempt("link beside", lambda: os.link(answer, answer + ".2"))
            attempt("rename", lambda: os.rename(answer, "stolen.csv"))
            attempt("remove", lambda: os.unlink(HOST["evaluator"]))
            attempt("make", lambda: os.mkdir(HOST["hidden"] + "/made"))
            attempt("replace", lambda: os.rename("script.py", HOST["spec"]))
            attempt("plant a link", lambda: os.symlink("/", HOST["hidden"] + "/link"))
            attempt("plant a file", lambda: open(HOST["public"] + "/more.csv", "w"))
        """,
    ),
    Attack(
        name="harness-files-marked",
        tries="Changes the modes, times, owners and attributes of hidden files.",
        must="Nothing about a file of the harness is changed either.",
        code="""
            for name in ("answer", "hidden", "public", "base"):
                path = HOST[name]
                # it may be told that this worked: whether it did, the arena sees
                anyway(lambda: os.chmod(path, 0o777), lambda: os.utime(path, (1, 1)))
                attempt(f"chown {name}", lambda: os.chown(path, os.getuid(), os.getgid()))
                attempt(f"setxattr {name}", lambda: os.setxattr(path, "user.x", b"1"))
        """,
    ),
    Attack(
        name="watching-the-harness",
        tries="Asks the kernel to be told what happens in a hidden folder.",
        must="The harness's folders cannot be watched.",
        needs="fs_absent",
        skip=no_table,
        code="""
            handle = call("inotify_init1", 0)
            for name in ("hidden", "public", "base"):
                attempt(name, lambda: call("inotify_add_watch", handle, HOST[name].encode(), 0xFFF))
        """,
    ),
    Attack(
        name="keys-in-the-environment",
        tries="Looks for the harness's keys in the environment.",
        must="The environment is made from a list of what is allowed.",
        code="""
            for name in HOST["keys"]:
                attempt(name, lambda: os.environ[name])
            search("environ", lambda: repr(os.environ).encode())
            search("the kernel's copy", lambda: whole("/proc/self/environ"))
            for name in os.environ:
                if name.endswith(("_KEY", "_TOKEN")) or "PYTEST" in name or "SANDMLE" in name:
                    print("GOT", name)
        """,
    ),
    Attack(
        name="core-dumps",
        tries="Crashes so that memory is written to a file.",
        must="No core file is made, and the limit cannot be raised.",
        code="""
            import resource
            if os.fork() == 0:
                os.abort()
            os.wait()
            attempt("raise", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)))
            if resource.getrlimit(resource.RLIMIT_CORE) != (0, 0):
                print("GOT", resource.getrlimit(resource.RLIMIT_CORE))
            for folder, _, files in os.walk("."):
                for name in files:
                    if name.startswith("core"):
                        print("GOT", name)
        """,
    ),
    Attack(
        name="kernel-memory",
        tries="Opens the files that show the kernel's memory, log and addresses.",
        must="None can be opened, and addresses read as zero.",
        code="""
            for path in ("/proc/kcore", "/proc/kmsg", "/proc/vmallocinfo", "/proc/slabinfo",
                         "/proc/kpageflags", "/proc/kpagecount", "/dev/mem", "/dev/kmsg",
                         "/dev/port", "/sys/kernel/debug", "/sys/kernel/tracing/trace",
                         "/sys/kernel/notes", "/boot"):
                def look():
                    data = os.listdir(path) if os.path.isdir(path) else whole(path, 100)
                    return data or 1 / 0
                attempt(path, look)
            attempt("sysrq", lambda: os.path.samefile("/proc/sysrq-trigger", "/dev/null") or
                    os.open("/proc/sysrq-trigger", os.O_WRONLY))
            attempt("addresses", lambda: [line for line in whole("/proc/kallsyms").splitlines()
                                          if int(line.split()[0], 16)][0])
        """,
    ),
    Attack(
        name="kernel-command-line",
        tries="Reads how the machine was started, its sockets and its mounts.",
        must="Neither boot parameters nor names of the harness's sockets show.",
        code="""
            attempt("cmdline", lambda: whole("/proc/cmdline").strip() or 1 / 0)
            name = f"redteam-{HOST['helper']}"
            attempt("sockets", lambda: whole("/proc/self/net/unix", 1 << 22).index(name.encode()))
        """,
    ),
    Attack(
        name="paths-in-mounts",
        tries="Looks for the harness's folders in the lists of mounts.",
        must="No mount tells where the hidden files lie.",
        code="""
            base = HOST["base"].encode()
            for name in ("mounts", "mountinfo", "mountstats"):
                for pid in ("self", 1):
                    def look():
                        text = whole(f"/proc/{pid}/{name}", 1 << 22)
                        return text[text.index(base):][:80]
                    attempt(f"{pid} {name}", look)
        """,
    ),
    Attack(
        name="system-v-memory",
        tries="Attaches the harness's shared memory and receives its messages by number.",
        must="System V objects of the harness are out of reach.",
        needs="fs_hidden",
        code="""
            LIBC.shmat.restype = ctypes.c_void_p
            def segment():
                at = LIBC.shmat(HOST["segment"], None, 0o10000)
                if at in (None, (1 << 64) - 1):
                    raise OSError(ctypes.get_errno(), "shmat")
                return ctypes.string_at(at, 64)
            attempt("memory", segment)
            buffer = ctypes.create_string_buffer(300)
            attempt("messages", lambda: checked(
                LIBC.msgrcv(HOST["messages"], buffer, 256, 0, 0o4000)) and buffer.raw)
            search("the list of segments", lambda: whole("/proc/sysvipc/shm"))
        """,
    ),
    Attack(
        name="posix-queue",
        tries="Opens the harness's POSIX message queue by its name.",
        must="POSIX queues of the harness are out of reach.",
        needs="fs_hidden",
        skip=no_table,
        code="""
            def receive():
                flags = os.O_RDONLY | os.O_NONBLOCK
                queue = call("mq_open", HOST["queue"].encode(), flags, 0, None)
                buffer = ctypes.create_string_buffer(1 << 16)
                call("mq_timedreceive", queue, buffer, 1 << 16, None, None)
                return buffer.value
            attempt("queue", receive)
        """,
    ),
]


def _system_v_between(scene: Scene) -> ExecResult:
    """One workspace leaves a System V segment under a known key; another attaches it."""
    libc = ctypes.CDLL(None, use_errno=True)
    scene.on_close(lambda: libc.shmctl(libc.shmget(_SHARED_KEY, 0, 0), 0, None))
    scene.run(f"""
        LIBC.shmat.restype = ctypes.c_void_p
        segment = LIBC.shmget({_SHARED_KEY}, 4096, 0o1666)
        print("segment", segment)
        if segment >= 0:
            ctypes.memmove(LIBC.shmat(segment, None, 0), b"mine", 4)
    """)
    return scene.run(
        f"""
        LIBC.shmat.restype = ctypes.c_void_p
        def attach():
            segment = checked(LIBC.shmget({_SHARED_KEY}, 0, 0))
            return ctypes.string_at(LIBC.shmat(segment, None, 0o10000), 4)
        attempt("the other's memory", attach)
        """,
        scene.open(),
    )


ATTACKS.append(
    Attack(
        name="system-v-between-workspaces",
        tries="Leaves shared memory under a known key for another workspace.",
        must="Workspaces share no System V memory.",
        needs="fs_hidden",
        code=_system_v_between,
    )
)
