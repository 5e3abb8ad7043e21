"""Attacks on whoever reads the submission: what lies there, and under which name."""

import threading
import time
from pathlib import Path

from build import build_task

from redteam.arena import Scene
from redteam.attack import QUICK, Attack, Play, gains
from sandmle.files import UnsafeFile
from sandmle.grading.grader import Grader
from sandmle.types import ExecResult

_LIMIT = 1 << 20
_SEVERAL_MB = QUICK.model_copy(update={"wall_s": 6.0})


def _refuses(*names: str, code: str) -> Play:
    """Play a program, then demand that none of the names can be read."""

    def play(scene: Scene) -> ExecResult:
        result = scene.run(code)
        started = time.monotonic()
        for name in names:
            got = scene.read(name, _LIMIT)
            scene.expect(isinstance(got, Exception), f"{name!r} gave {str(got)[:60]!r}")
        took = time.monotonic() - started
        scene.expect(took < 20, f"reading took {took:.0f} s")
        scene.names()
        return result

    return play


def _names_out_of_bounds(scene: Scene) -> ExecResult:
    result = scene.run("open('submission.csv', 'w').write('id,label\\na1,0\\n')")
    for name in (
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../tmp",
        "../../../../../../etc/passwd",
        "input/../../../etc/passwd",
        str(scene.host.private / "answer.csv"),
        "sub\0mission.csv",
        "submission.csv\0",
        "submission.csv/",
        "submission.csv/x",
        "n" * 300,
        "a/" * 3000 + "b",
        "\udcff",
    ):
        got = scene.read(name)
        if name == "submission.csv/" and isinstance(got, bytes):
            continue  # another spelling of the same file
        scene.expect(isinstance(got, Exception), f"{name[:40]!r} gave {str(got)[:60]!r}")
    scene.expect(scene.read("submission.csv") == b"id,label\na1,0\n", "the good name failed")
    return result


def _swapped(scene: Scene, code: str, seconds: float) -> ExecResult:
    """Read again and again, while a program swaps what is read and afterwards."""
    box: list[ExecResult] = []
    runner = threading.Thread(target=lambda: box.append(scene.run(code)), daemon=True)
    runner.start()
    until = time.monotonic() + seconds
    kinds = set()
    while runner.is_alive() or time.monotonic() < until:
        kinds.add(type(scene.read("submission.csv", _LIMIT)))
    runner.join()
    scene.expect(kinds <= {bytes, UnsafeFile, FileNotFoundError}, f"reading gave {kinds}")
    first = scene.read("submission.csv", _LIMIT)
    time.sleep(0.2)
    second = scene.read("submission.csv", _LIMIT)
    same = first == second if isinstance(first, bytes) else str(first) == str(second)
    scene.expect(same, f"it still changes: {str(first)[:60]}, then {str(second)[:60]}")
    return box[0]


_SWAP = """
    def swap():
        os.symlink(HOST["answer"], "link.csv")
        open("plain.csv", "w").write("id,label\\n" + "a1,0\\n" * 1000)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            for name in ("link.csv", "plain.csv"):
                try:
                    os.link(name, "next.csv", follow_symlinks=False)
                    os.rename("next.csv", "submission.csv")
                except OSError:
                    pass
"""


def _hostile_names(scene: Scene) -> ExecResult:
    """Every name that a listing gives must be printable and can be read or is refused."""
    result = scene.run("""
        import socket
        names = [b"\\xff\\xfe.csv", b"new\\nline.csv", b"-rf", b"n" * 255, b"tab\\t.csv", b"%s%n",
                 b"\\x1b[2J", b"..csv", b"...", b" ", "\\u202egnp.csv".encode(), b"$(id)", b"*",
                 b"\\\\"]
        for name in names:
            with open(name, "wb") as stream:
                stream.write(b"x")
        os.makedirs(b"folder\\xff/inner")
        open(b"folder\\xff/inner/f.csv", "w").close()
        path = b"."
        for _ in range(30):  # longer than a path may be
            os.mkdir(b"d" * 250)
            os.chdir(b"d" * 250)
        open("bottom.csv", "w").close()
        anyway(lambda: os.mkfifo("fifo"), lambda: socket.socket(socket.AF_UNIX).bind("sock"))
    """)
    listed = scene.names()
    scene.expect(any("line.csv" in name for name in listed), f"not listed: {listed[:5]!r}")
    for name in listed:
        scene.expect(isinstance(name, str), f"{name!r} is no text")
        try:
            name.encode()
        except UnicodeEncodeError:
            scene.blame(f"{name!r} cannot be written down")
        scene.read(name)
    return result


def _modes(scene: Scene) -> ExecResult:
    """Files and folders that even their owner may not open."""
    result = scene.run("""
        os.makedirs("closed/inner")
        for path in ("closed/inner/a.csv", "submission.csv", "plain.csv"):
            open(path, "w").write("x")
        os.chmod("submission.csv", 0)
        for path in ("closed/inner", "closed", "."):
            os.chmod(path, 0)
    """)
    scene.names()
    for name in ("submission.csv", "plain.csv", "closed/inner/a.csv", "closed"):
        scene.read(name)
    return result


def _pickled(scene: Scene) -> ExecResult:
    """What is read must never be executed by whoever grades it."""
    bait = scene.host.run / "executed"
    scene.on_close(lambda: bait.unlink(missing_ok=True))
    result = scene.run(f"""
        import pickle
        class Bait:
            def __reduce__(self):
                return os.system, ("touch {bait}",)
        open("submission.csv", "wb").write(pickle.dumps(Bait()))
    """)
    data = scene.read("submission.csv")
    assert isinstance(data, bytes)
    folder = scene.host.boxes / f"task-{scene.mark}"
    folder.mkdir()
    task = build_task(folder, "id,label\na1,x\na2,y\n", classes=("x", "y"))
    grade = Grader(task).grade(data)
    scene.expect(grade.status == "invalid", f"graded as {grade}")
    scene.expect(not bait.exists(), "the grader executed it")
    return result


def _many_files(scene: Scene) -> ExecResult:
    """Listing and closing must not take for ever, or all memory."""
    result = scene.run("""
        made = 0
        try:
            for number in range(20_000):
                os.close(os.open(f"f{number}", os.O_CREAT))
                made += 1
        except OSError as fault:
            print(fault)
        print("made", made)
    """)
    started = time.monotonic()
    listed = scene.names()
    took = time.monotonic() - started
    scene.expect(len(listed) > 100, f"listed {len(listed)}")
    scene.expect(took < 20, f"listing took {took:.0f} s")
    return result


def _deep(scene: Scene) -> ExecResult:
    """A hundred thousand folders, each in the last."""
    result = scene.run(
        """
        deep = 0
        try:
            while deep < 100_000:
                os.mkdir("d")
                os.chdir("d")
                deep += 1
        except OSError as fault:
            print(fault)
        print("deep", deep)
        """
    )
    scene.names()
    return result


def _closed_without_trace(scene: Scene) -> ExecResult:
    """Whatever is in a workspace goes when it is closed."""
    before = set(scene.host.boxes.rglob("*"))
    other = scene.open()
    result = scene.run(
        """
        os.makedirs("a/b")
        open("a/b/c", "w").close()
        for path in ("a/b/c", "a/b", "a"):
            os.chmod(path, 0)
        os.symlink("/", "root")
        for _ in range(3000):
            os.mkdir("e")
            os.chdir("e")
        os.chmod(".", 0)
        """,
        other,
    )
    scene.within(other.close)
    left = {path for path in set(scene.host.boxes.rglob("*")) - before if path.exists()}
    ours = {path for path in left if "rt" in Path(path).name}
    scene.expect(not left - ours, f"left behind: {sorted(map(str, left))[:3]}")
    return result


ATTACKS = [
    Attack(
        name="submission-is-a-link",
        tries="Leaves links to hidden files, devices and its own files as its submission.",
        must="A link is never followed by whoever reads the submission.",
        code=_refuses(
            "submission.csv",
            "hosts",
            "input-link",
            "zero",
            "stdin",
            "loop",
            "dangling",
            code="""
            os.symlink(HOST["answer"], "submission.csv")
            os.symlink("/etc/hosts", "hosts")
            os.symlink("input/train.csv", "input-link")
            os.symlink("/dev/zero", "zero")
            os.symlink("/proc/self/fd/0", "stdin")
            os.symlink("loop", "loop")
            os.symlink("nothing", "dangling")
            """,
        ),
    ),
    Attack(
        name="folder-is-a-link",
        tries="Leaves a link to the hidden folder where a folder is expected.",
        must="No step of a path is followed if it is a link.",
        code=_refuses(
            "sub/answer.csv",
            "sub/../answer.csv",
            "proc/self/environ",
            "up/etc/hosts",
            code="""
            os.symlink(HOST["hidden"], "sub")
            os.symlink("/proc", "proc")
            os.symlink("/", "up")
            """,
        ),
    ),
    Attack(
        name="submission-has-two-names",
        tries="Leaves a hard link as its submission.",
        must="A file with a second name is refused, since the other name may be anything.",
        code=_refuses(
            "submission.csv",
            "other.csv",
            code="""
            open("other.csv", "w").write("x")
            os.link("other.csv", "submission.csv")
            attempt("hidden file", lambda: os.link(HOST["answer"], "stolen.csv"))
            """,
        ),
    ),
    Attack(
        name="submission-is-no-file",
        tries="Leaves a FIFO, a socket, a folder and a device as its submission.",
        must="Reading refuses at once and does not wait.",
        code=_refuses(
            "fifo",
            "socket",
            "folder",
            "device",
            "zero",
            code="""
            import socket, stat
            anyway(
                lambda: os.mkfifo("fifo"),
                lambda: socket.socket(socket.AF_UNIX).bind("socket"),
                lambda: os.mkdir("folder"),
            )
            attempt("device", lambda: os.mknod("device", stat.S_IFCHR | 0o666, os.makedev(1, 8)))
            attempt("zero", lambda: os.mknod("zero", stat.S_IFCHR | 0o666, os.makedev(1, 5)))
            """,
        ),
    ),
    Attack(
        name="submission-is-huge",
        tries="Leaves a sparse file of a terabyte, and a real one over the limit.",
        must="The size is bounded before anything is read.",
        code=_refuses(
            "sparse.csv",
            "real.csv",
            code="""
            with open("sparse.csv", "wb") as stream:
                for size in (1 << 40, 1 << 30, 20 << 20):
                    try:
                        stream.truncate(size)
                        break
                    except OSError as fault:
                        print(fault)
            with open("real.csv", "wb") as stream:
                stream.write(b"x" * (2 << 20))
            """,
        ),
    ),
    Attack(
        name="names-out-of-bounds",
        tries="Has files asked for by names that lead out, hold NUL, or are too long.",
        must="Each name is refused by the two errors that callers expect.",
        code=_names_out_of_bounds,
    ),
    Attack(
        name="swapped-while-read",
        tries="Swaps the submission between a plain file and a link while it is read.",
        must="A read gives the plain file's bytes or nothing.",
        code=lambda scene: _swapped(
            scene, _SWAP.replace("+ 30", "+ 1.5") + "\n    swap()\n", seconds=0.5
        ),
        limits=_SEVERAL_MB,
    ),
    Attack(
        name="swapped-by-a-daemon",
        tries="Leaves a daemon behind that swaps the submission for a link while it is read.",
        must="The daemon is dead before anything is read, and the file stays as it is.",
        needs="kill_all",
        code=lambda scene: _swapped(
            scene, _SWAP + "\n    daemon(swap)\n    time.sleep(0.3)\n", seconds=0.5
        ),
    ),
    Attack(
        name="growing-while-read",
        tries="Appends to the submission for as long as it is read.",
        must="No more than the limit comes out.",
        code=lambda scene: _swapped(
            scene,
            """
            until = time.monotonic() + 1.5
            with open("submission.csv", "wb") as stream:
                while time.monotonic() < until:
                    stream.write(b"a1,0\\n" * 1000)
                    if stream.tell() > (3 << 19):
                        stream.seek(0)
                        stream.truncate()
            """,
            seconds=0.5,
        ),
    ),
    Attack(
        name="leased-while-read",
        tries="Holds a lease on the submission, so that whoever opens it waits.",
        must="Reading does not wait.",
        code=lambda scene: _swapped(
            scene,
            """
            import fcntl
            open("submission.csv", "w").write("id,label\\n")
            handle = os.open("submission.csv", os.O_RDWR)
            signal.signal(signal.SIGIO, signal.SIG_IGN)
            anyway(lambda: fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK))
            time.sleep(1.5)
            """,
            seconds=0.5,
        ),
    ),
    Attack(
        name="hostile-file-names",
        tries="Makes files whose names hold line feeds, escapes, invalid UTF-8 or 255 letters.",
        must="Listing gives text, and every listed name can be read or is refused.",
        code=_hostile_names,
    ),
    Attack(
        name="closed-modes",
        tries="Takes all modes from its files, its folders and its working directory.",
        must="Reading and listing do not raise, and the next program runs.",
        code=_modes,
    ),
    Attack(
        name="submission-is-a-pickle",
        tries="Leaves a pickle as its submission that runs a command when it is loaded.",
        must="It is graded as an invalid table, and nothing in it is executed.",
        code=_pickled,
    ),
    Attack(
        name="very-many-files",
        tries="Makes as many files as it may before the workspace is listed and closed.",
        must="Listing and closing end in time.",
        code=_many_files,
    ),
    Attack(
        name="very-deep-folders",
        tries="Makes up to 100,000 folders, each in the last.",
        must="Listing and closing end, with no recursion and no path too long.",
        code=_deep,
        judge=gains,
    ),
    Attack(
        name="hard-to-remove",
        tries="Leaves closed, deep and linked folders in a workspace that is closed.",
        must="Closing removes all of it from the host.",
        code=_closed_without_trace,
    ),
]
