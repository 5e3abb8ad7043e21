"""Attacks on the machine's supplies: processes, memory, disk, descriptors."""

from pathlib import Path

from redteam.arena import Scene
from redteam.attack import QUICK, SMALL, Attack, Play, ends, gains, no_table
from sandmle.types import ExecResult

_FEW = QUICK.model_copy(update={"processes": 32, "wall_s": 3.0})
_LONG = SMALL.model_copy(update={"wall_s": 12.0})


def _filled(fill: str) -> Play:
    """Fill the workspace and leave it so; then programs must run, delete, and write again."""

    def play(scene: Scene) -> ExecResult:
        result = scene.run(fill)
        after = scene.run_bare("print(open('input/train.csv').readline().strip())")
        scene.expect(
            after.status == "ok" and after.stdout == "id,x,label\n",
            f"in a full workspace: {after!r}"[:400],
        )
        emptied = scene.run("""
            import shutil
            for place in (".", os.environ["TMPDIR"], os.environ["HOME"]):
                for name in os.listdir(place):
                    path = os.path.join(place, name)
                    if name[0] in "fmr" and os.path.isdir(path):
                        shutil.rmtree(path)
                    elif name[0] in "fmr":
                        os.unlink(path)
            import tempfile
            with open("again.csv", "wb") as stream:
                stream.write(b"x" * 1_000_000)
            with tempfile.TemporaryFile() as stream:
                stream.write(b"x" * 100_000)
            print("wrote again")
        """)
        scene.expect(
            emptied.status == "ok" and "wrote again" in emptied.stdout,
            f"emptied: {emptied.stdout[-200:]} {emptied.stderr[-300:]}",
        )
        return result

    return play


def _inodes_again(scene: Scene) -> ExecResult:
    """What a full workspace is given for the next program must not add up."""
    counts = []
    for turn in range(6):
        result = scene.run(f"""
            made = 0
            try:
                while made < 8_000:
                    os.close(os.open(f"f{turn}-{{made}}", os.O_CREAT | os.O_WRONLY))
                    made += 1
            except OSError:
                pass
            print("MADE", made)
        """)
        counts.append(int(result.stdout.partition("MADE ")[2].split()[0]))
    scene.expect(sum(counts[1:]) < 100, f"files made in six programs: {counts}")
    return result


def _files_in_memory(scene: Scene) -> ExecResult:
    scene.on_close(
        lambda: [
            path.unlink()
            for place in ("/dev/shm", "/tmp", "/var/tmp", "/run")
            for path in Path(place).glob(f"{scene.mark}-*")
        ]
    )
    return scene.run("""
        import tempfile
        block, total = b"x" * (1 << 20), 0
        places = {".", "/dev/shm", "/tmp", "/var/tmp", "/run", tempfile.gettempdir(),
                  os.environ["HOME"]}
        for place in sorted(places):
            here = 0
            try:
                for number in range(20):
                    with open(f"{place}/{HOST['mark']}-{number}", "wb", buffering=0) as stream:
                        for _ in range(8):
                            here += stream.write(block)
            except OSError as fault:
                print(place, fault)
            print(place, here >> 20, flush=True)
            total += here
        print("GOT MB:" if total > 400 << 20 else "bounded:", total >> 20)
    """)


_BUFFERS = """
    import socket
    totals = []
    def stuff():
        pairs, total = [], 0
        block = bytes(1 << 16)
        try:
            for _ in range(450):
                pair = socket.socketpair()
                pairs.append(pair)
                for one in pair:
                    one.setblocking(False)
                    try:
                        while True:
                            total += one.send(block)
                    except BlockingIOError:
                        pass
        except OSError:
            pass
        return pairs, total
    read, write = os.pipe()
    for _ in range(6):
        if os.fork() == 0:
            kept, total = stuff()
            os.write(write, total.to_bytes(8, "big"))
            time.sleep(4)
            os._exit(0)
    total = sum(int.from_bytes(os.read(read, 8), "big") for _ in range(6))
    time.sleep(1)
    print("GOT" if total > 2 * 256_000_000 else "bounded:", total)
"""

ATTACKS = [
    Attack(
        name="many-processes",
        tries="Starts four times as many processes as it may.",
        must="No more than the limit come to be.",
        needs="process_limit",
        limits=_FEW,
        code="""
            made = 0
            try:
                while made < 128:
                    if os.fork() == 0:
                        signal.alarm(20)
                        time.sleep(20)
                        os._exit(0)
                    made += 1
            except OSError as fault:
                print(fault)
            print("GOT" if made > 2 * 32 else "bounded:", made)
        """,
    ),
    Attack(
        name="fork-bomb",
        tries="Forks without end in every process that it has.",
        must="It ends at the time limit, and the machine stays usable.",
        needs="process_limit",
        limits=_FEW,
        reckless=True,
        code="""
            children = []
            try:
                while len(children) < 100:
                    pid = os.fork()
                    if pid == 0:
                        time.sleep(20)
                        os._exit(0)
                    children.append(pid)
            except OSError:
                pass
            if len(children) >= 100:  # a bomb would hit the machine
                print("GOT", len(children))
                sys.exit()
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """,
        judge=ends("timeout", "error", "killed"),
    ),
    Attack(
        name="thread-bomb",
        tries="Starts threads without end.",
        must="No more than the limit come to be.",
        needs="process_limit",
        limits=_FEW,
        code="""
            import threading
            made = 0
            try:
                while made < 128:
                    threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
                    made += 1
            except RuntimeError as fault:
                print(fault)
            print("GOT" if made > 2 * 32 else "bounded:", made, flush=True)
            os._exit(0)
        """,
        judge=ends("ok", says="bounded"),
    ),
    Attack(
        name="zombies",
        tries="Starts processes that end, and never waits for them.",
        must="They count as processes, and are gone at the end.",
        needs="process_limit",
        limits=_FEW,
        code="""
            made = 0
            try:
                while made < 300:
                    if os.fork() == 0:
                        os._exit(0)
                    made += 1
            except OSError as fault:
                print(fault)
            print("GOT" if made >= 300 else "bounded:", made)
        """,
    ),
    Attack(
        name="memory-of-one-process",
        tries="Allocates and fills arrays of six times the limit.",
        must="It fails with MemoryError or is ended for its memory.",
        needs="memory_limit",
        limits=SMALL,
        code="""
            import numpy as np
            blocks = []
            for _ in range(40):
                blocks.append(np.ones(5_000_000))
            time.sleep(0.5)
            print("GOT", len(blocks))
        """,
        judge=ends("error", "oom"),
    ),
    Attack(
        name="memory-of-many-processes",
        tries="Fills memory in twelve processes, each within the limit.",
        must="The sum is what counts.",
        needs="memory_limit",
        limits=SMALL,
        code="""
            children = []
            for _ in range(12):
                pid = os.fork()
                if pid == 0:
                    block = bytearray(os.urandom(1 << 20) * 60)
                    time.sleep(3)
                    os._exit(0)
                children.append(pid)
            ended = [os.waitpid(pid, 0)[1] for pid in children]
            print("bounded:" if any(ended) else "GOT 720 MB", ended)
        """,
        judge=gains,
    ),
    Attack(
        name="shared-memory",
        tries="Fills anonymous memory that is shared, which no limit on data counts.",
        must="It counts as memory all the same.",
        needs="memory_limit",
        limits=SMALL,
        code="""
            import mmap
            size = 1200
            pages = mmap.mmap(-1, size << 20)
            block = b"x" * (1 << 20)
            for number in range(size):
                pages[number << 20:(number + 1) << 20] = block
            time.sleep(0.5)
            print("GOT", size)
        """,
        judge=gains,
    ),
    Attack(
        name="read-only-maps",
        tries="Maps huge memory read-only and reads it, so that only page tables grow.",
        must="Page tables count as memory too.",
        needs="memory_limit",
        limits=_LONG,
        code="""
            import mmap
            size = 1 << 38
            LIBC.mmap.restype = ctypes.c_void_p
            numbers = [ctypes.c_int] * 3
            LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *numbers, ctypes.c_long]
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # no reserve
            at = LIBC.mmap(None, size, mmap.PROT_READ, flags, -1, 0)
            if at is None or at == (1 << 64) - 1:
                print("refused")
                sys.exit(3)
            LIBC.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), 15)  # no huge pages
            def tables():
                line = next(x for x in open("/proc/self/status") if x.startswith("VmPTE"))
                return int(line.split()[1]) // 1000
            before = tables()
            until = time.monotonic() + 8
            for offset in range(0, size, 1 << 21):
                ctypes.c_ubyte.from_address(at + offset).value
                if offset % (1 << 31):
                    continue
                if tables() > before + 520 or time.monotonic() > until:
                    break
            time.sleep(0.5)
            print("GOT MB of page tables:" if tables() > before + 300 else "bounded:", tables())
        """,
        judge=gains,
    ),
    Attack(
        name="files-in-memory",
        tries="Fills files in /dev/shm, in the temporary folder and in its own folder.",
        must="What lies in memory counts as memory or as disk.",
        needs="disk_quota",
        limits=SMALL,
        code=_files_in_memory,
        judge=gains,
    ),
    Attack(
        name="memfds",
        tries="Fills a hundred files in memory that have no name and are not mapped.",
        must="They count as memory, or cannot be made.",
        needs="memory_limit",
        limits=SMALL,
        code="""
            block, made = b"x" * (1 << 20), []
            for number in range(100):
                handle = os.memfd_create(f"m{number}")
                for _ in range(12):
                    os.write(handle, block)
                made.append(handle)
            time.sleep(1)
            print("GOT 1200 MB", len(made))
        """,
        judge=gains,
    ),
    Attack(
        name="memfds-by-other-names",
        tries="Makes nameless files in memory without memfd_create: secret, huge, O_TMPFILE.",
        must="They count as memory or as disk, or cannot be made.",
        needs="memory_limit",
        limits=SMALL,
        skip=no_table,
        code="""
            block = b"x" * (1 << 20)
            attempt("secret", lambda: call("memfd_secret", 0))
            attempt("huge", lambda: call("memfd_create", b"m", 4))
            def nameless(place):
                total, kept = 0, []
                for _ in range(40):
                    handle = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
                    kept.append(handle)
                    for _ in range(12):
                        total += os.write(handle, block)
                return total
            attempt("/dev/shm", lambda: nameless("/dev/shm"))
        """,
        judge=gains,
    ),
    Attack(
        name="system-v-flood",
        tries="Fills System V shared memory and detaches it.",
        must="It counts as memory, or cannot be made.",
        needs="memory_limit",
        limits=SMALL,
        code="""
            LIBC.shmat.restype = ctypes.c_void_p
            made, fault = [], None
            for _ in range(24):
                segment = LIBC.shmget(0, 50_000_000, 0o1600)
                if segment < 0:
                    break
                made.append(segment)
                at = LIBC.shmat(segment, None, 0)
                ctypes.memset(at, 1, 50_000_000)
                LIBC.shmdt(ctypes.c_void_p(at))
            time.sleep(0.5)
            for segment in made:
                LIBC.shmctl(segment, 0, None)
            print("GOT segments:" if len(made) > 10 else "bounded:", len(made))
        """,
        judge=gains,
    ),
    Attack(
        name="buffers-of-sockets",
        tries="Fills the buffers of thousands of sockets in six processes.",
        must="What the kernel holds for a program is bounded too.",
        needs="memory_limit",
        limits=SMALL,
        code=_BUFFERS,
        judge=gains,
    ),
    Attack(
        name="buffers-of-pipes",
        tries="Fills the largest possible pipes, as many as it can.",
        must="What the kernel holds for a program is bounded too.",
        limits=SMALL,
        code="""
            import fcntl
            total, kept = 0, []
            try:
                for _ in range(480):
                    read, write = os.pipe()
                    kept += [read, write]
                    try:
                        fcntl.fcntl(write, 1031, 1 << 20)
                    except OSError:
                        pass
                    os.set_blocking(write, False)
                    try:
                        while True:
                            total += os.write(write, bytes(1 << 16))
                    except BlockingIOError:
                        pass
            except OSError as fault:
                print(fault)
            print("GOT" if total > 2 * 256_000_000 else "bounded:", total)
        """,
    ),
    Attack(
        name="locked-memory",
        tries="Locks memory, so that it cannot be swapped.",
        must="No more than a little can be locked.",
        limits=SMALL,
        code="""
            import mmap
            pages = mmap.mmap(-1, 64 << 20)
            at = ctypes.addressof(ctypes.c_char.from_buffer(pages))
            attempt("mlock", lambda: checked(LIBC.mlock(ctypes.c_void_p(at), 64 << 20)) + 1)
        """,
    ),
    Attack(
        name="disk-fill",
        tries="Fills its folder with four times what it may, and leaves it so.",
        must="It is full at the limit; the next programs run, delete, and write again.",
        needs="disk_quota",
        code=_filled("""
            block, total = b"x" * (1 << 20), 0
            try:
                for number in range(32):
                    with open(f"f{number}", "wb", buffering=0) as stream:
                        for _ in range(4):
                            total += stream.write(block)
            except OSError as fault:
                print(fault)
            print("GOT" if total > 48_000_000 else "bounded:", total)
        """),
    ),
    Attack(
        name="disk-fill-everywhere",
        tries="Fills its folder, its temporary folder and its home, byte by byte at the end.",
        must="Together they are bounded; the next programs run, delete, and write again.",
        needs="disk_quota",
        code=_filled("""
            import tempfile
            total = 0
            for place in (".", tempfile.gettempdir(), os.environ["HOME"]):
                size = 1 << 20
                number = 0
                here = 0
                while size and here < 60 << 20:
                    number += 1
                    try:
                        with open(f"{place}/f{number}", "wb", buffering=0) as stream:
                            here += stream.write(bytes(size))
                    except OSError:
                        size >>= 2
                total += here
            print("GOT" if total > 110_000_000 else "bounded:", total)
        """),
    ),
    Attack(
        name="disk-fill-unseen",
        tries="Fills files that have been removed and are held open, then preallocates.",
        must="They count as long as they exist.",
        needs="disk_quota",
        code=_filled("""
            block, total, kept = b"x" * (1 << 20), 0, []
            try:
                for number in range(16):
                    stream = open("f", "wb", buffering=0)
                    os.unlink("f")
                    kept.append(stream)
                    for _ in range(8):
                        total += stream.write(block)
            except OSError as fault:
                print(fault)
            kept.clear()
            reserved = 0
            try:
                for number in range(16):
                    with open(f"r{number}", "wb") as stream:
                        os.posix_fallocate(stream.fileno(), 0, 8 << 20)
                        reserved += 8 << 20
            except OSError as fault:
                print(fault)
            print("GOT" if max(total, reserved) > 48_000_000 else "bounded:", total, reserved)
        """),
    ),
    Attack(
        name="inode-fill",
        tries="Makes 15,000 empty files, and leaves them.",
        must="Their number is bounded; the next programs run, delete, and write again.",
        needs="disk_quota",
        code=_filled("""
            made = 0
            try:
                os.mkdir("many")
                while made < 15_000:
                    os.close(os.open(f"many/{made}", os.O_CREAT | os.O_WRONLY))
                    made += 1
            except OSError as fault:
                print(fault)
            print("GOT" if made >= 15_000 else "bounded:", made)
        """),
    ),
    Attack(
        name="inode-fill-everywhere",
        tries="Makes files in its folder, its temporary folder and its home until none is left.",
        must="The next programs run, delete, and write again.",
        needs="disk_quota",
        code=_filled("""
            import tempfile
            total = 0
            for place in (tempfile.gettempdir(), os.environ["HOME"], "."):
                made = 0
                try:
                    while made < 8_000:
                        os.close(os.open(f"{place}/f{made}", os.O_CREAT | os.O_WRONLY))
                        made += 1
                except OSError as fault:
                    print(fault)
                total += made
            print("GOT" if total >= 24_000 else "bounded:", total)
        """),
        limits=QUICK.model_copy(update={"wall_s": 40}),
    ),
    Attack(
        name="inodes-again-and-again",
        tries="Fills all files in one program after the other.",
        must="What a full workspace is given to run a program is not given again and again.",
        needs="disk_quota",
        code=_inodes_again,
    ),
    Attack(
        name="attributes",
        tries="Stores data in extended attributes of files instead of in files.",
        must="Attributes are bounded with the rest.",
        limits=QUICK.model_copy(update={"disk_mb": 8}),
        code="""
            total = 0
            try:
                for number in range(3_500):
                    path = f"f{number}"
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
                    os.setxattr(path, "user.x", b"x" * 4000)
                    total += 4000
            except OSError as fault:
                print(fault)
            for size in (60_000, 4000):
                try:
                    for number in range(500):
                        os.setxattr("f0", f"user.{size}.{number}", b"x" * size)
                        total += size
                except OSError as fault:
                    print(fault)
            print("GOT" if total > 12_000_000 else "bounded:", total)
        """,
    ),
    Attack(
        name="sparse-file",
        tries="Makes a file of a terabyte with nothing in it.",
        must="The size of a file is bounded.",
        code="""
            handle = os.open("big", os.O_CREAT | os.O_WRONLY)
            attempt("truncate", lambda: os.ftruncate(handle, 1 << 40) or 1)
            attempt("write", lambda: os.pwrite(handle, b"x", 1 << 40))
            attempt("allocate", lambda: os.posix_fallocate(handle, 0, 1 << 40) or 1)
        """,
    ),
    Attack(
        name="many-descriptors",
        tries="Opens ten thousand files.",
        must="The number of open files is bounded.",
        code="""
            kept = []
            try:
                for _ in range(10_000):
                    kept.append(os.open("/dev/null", os.O_RDONLY))
            except OSError as fault:
                print(fault)
            print("GOT" if len(kept) >= 10_000 else "bounded:", len(kept))
        """,
    ),
    Attack(
        name="crash",
        tries="Reads from address zero in the C library.",
        must="The crash is the program's, and the result names the signal.",
        code="""
            print("begun", flush=True)
            ctypes.string_at(0)
        """,
        judge=ends("killed", signal=11, says="begun"),
    ),
    Attack(
        name="abort",
        tries="Aborts by the signal that writes a core file.",
        must="The abort is the program's, and the result names the signal.",
        code="""
            print("begun", flush=True)
            os.abort()
        """,
        judge=ends("killed", signal=6, says="begun"),
    ),
    Attack(
        name="recursion",
        tries="Recurses until the stack of the machine is used up.",
        must="The crash is the program's.",
        code="""
            sys.setrecursionlimit(10**9)
            def deeper(x):
                return eval("deeper(x)", globals(), {"x": x})
            print("begun", flush=True)
            deeper(1)
        """,
        judge=ends("killed", "error", "oom", says="begun"),
    ),
]
