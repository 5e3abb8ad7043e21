"""Attacks on what runs later: the next program, other workspaces, the sandbox's own files."""

import secrets

from redteam.arena import Scene
from redteam.attack import Attack, Play
from sandmle.types import ExecResult

_PLANTED = """
    import site
    text = f'open({HOST["log"]!r}, "a").write("planted code ran"); print("POISON")'
    names = ("sitecustomize.py", "usercustomize.py", "pandas.py", "numpy.py", "json.py", "os.py",
             "encodings.py", "evil.pth", "conftest.py", "pyvenv.cfg", "python311._pth",
             "pyproject.toml", "struct.py", "socket.py", "sandmle.py")
    folders = [".", os.environ["HOME"], os.environ.get("TMPDIR", "/tmp"),
               site.getusersitepackages()]
    for folder in folders:
        try:
            os.makedirs(folder, exist_ok=True)
            for name in names:
                with open(f"{folder}/{name}", "w") as stream:
                    stream.write(text)
        except OSError as fault:
            print(folder, fault)
"""


def _modules(scene: Scene) -> ExecResult:
    """Modules with the names of others are planted; the harness and other workspaces go on."""
    result = scene.run(_PLANTED)
    for workspace in (scene.workspace.fork(), scene.open()):
        scene.on_close(workspace.close)
        after = scene.run_bare("import pandas, json, struct; print('clean')", workspace)
        scene.expect(
            (after.status, after.stdout) == ("ok", "clean\n"), f"elsewhere: {after!r}"[:300]
        )
    later = scene.run_bare("print('ran')")
    scene.expect(later.stdout.endswith("ran\n"), f"here: {later!r}"[:300])
    scene.run_bare("import os\nfor n in os.listdir():\n    if n.endswith('.py'): os.unlink(n)")
    return result


def _patches(scene: Scene) -> ExecResult:
    scene.run("""
        import builtins, pandas, numpy, sklearn.metrics
        builtins.open = builtins.print = None
        pandas.read_csv = lambda *a, **k: None
        numpy.random.seed = numpy.array = None
        sklearn.metrics.f1_score = lambda *a, **k: 1.0
        sys.modules["json"] = None
        sys.path[:] = []
        os.environ.clear()
        os.getcwd = lambda: "/"
    """)
    return scene.run("""
        import builtins, pandas, numpy, sklearn.metrics
        for one in (open, print, pandas.read_csv, numpy.array, sklearn.metrics.f1_score):
            if one is None or getattr(one, "__name__", "") == "<lambda>":
                print("GOT", one)
        if "PATH" not in os.environ or not sys.path:
            print("GOT", sys.path, dict(os.environ))
    """)


def _preload(scene: Scene) -> ExecResult:
    """Environment variables that load code, and the files that they would name."""
    scene.run("""
        names = {"LD_PRELOAD": "./evil.so", "LD_LIBRARY_PATH": ".", "PYTHONSTARTUP": "evil.py",
                 "PYTHONPATH": ".", "PYTHONHOME": ".", "BASH_ENV": "evil.sh", "ENV": "evil.sh",
                 "PYTHONINSPECT": "1", "PYTHONUSERBASE": "."}
        os.environ.update(names)
        for name in (".profile", ".bashrc", ".pythonrc.py", ".pdbrc", ".config/pip/pip.conf",
                     ".pydistutils.cfg", ".matplotlib/matplotlibrc"):
            path = os.path.join(os.environ["HOME"], name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").write("print('POISON')")
        for name in ("evil.so", "evil.py", "evil.sh"):
            open(name, "w").write("print('POISON')")
    """)
    return scene.run("""
        for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME",
                     "BASH_ENV", "ENV", "PYTHONINSPECT", "PYTHONUSERBASE"):
            if "evil" in os.environ.get(name, "") or os.environ.get(name) in (".", "1"):
                print("GOT", name)
    """)


def _input(scene: Scene) -> ExecResult:
    """The public files are changed in one workspace, as far as that works."""
    result = scene.run("""
        import shutil
        anyway(lambda: os.chmod("input/train.csv", 0o777), lambda: os.chmod("input", 0o777))
        anyway(
            lambda: open("input/train.csv", "w").write("changed"),
            lambda: os.truncate("input/train.csv", 0),
            lambda: os.unlink("input/test.csv"),
            lambda: open("input/more.csv", "w").write("planted"),
            lambda: os.rename("input/test.csv", "input/train.csv"),
            lambda: os.rename("input", "elsewhere"),
            lambda: shutil.rmtree("input"),
            lambda: os.symlink(HOST["hidden"], "input"),
        )
    """)
    look = """
import os
print(sorted(os.listdir("input")), open("input/train.csv").read()[:11])
"""
    wanted = "['description.md', 'sample_submission.csv', 'test.csv', 'train.csv'] id,x,label\n\n"
    for workspace in (None, scene.open()):
        after = scene.run_bare(look, workspace)
        scene.expect(
            after.stdout.split() == wanted.split(),
            f"{'here' if workspace is None else 'elsewhere'}: {after.stdout!r} {after.stderr!r}",
        )
    return result


def _planting(code: str, tells: str = "") -> Play:
    """Plant something under a name of the sandbox's, then see that programs run as before."""

    def play(scene: Scene) -> ExecResult:
        result = scene.run(code)
        for number in range(2):
            after = scene.run_bare(
                "import os, tempfile\nprint(open('input/train.csv').readline().strip())\n"
                f"with tempfile.TemporaryFile() as f: f.write(b'x')\n{tells}\n"
            )
            scene.expect(
                after.status == "ok" and after.stdout.startswith("id,x,label"),
                f"program {number + 1} after it: {after!r}"[:500],
            )
        return result

    return play


def _evaluator(scene: Scene) -> ExecResult:
    """FR-18, with the plants made when the program ends too."""
    return scene.run("""
        import atexit
        def overwrite():
            for root in (HOST["base"], "..", "../.."):
                for folder, folders, files in os.walk(root):
                    folders[:] = [f for f in folders if f not in ("proc", "sys", "usr", "lib")]
                    for name in files:
                        if name in ("evaluator.py", "answer.csv", "threshold.json"):
                            attempt(name, lambda: open(f"{folder}/{name}", "w").write("1"))
            for name in ("evaluator", "answer", "threshold"):
                attempt(name, lambda: open(HOST[name], "w").write("1"))
        overwrite()
        atexit.register(overwrite)
    """)


def _history(scene: Scene) -> ExecResult:
    """One workspace's home, caches and temporary files against a later workspace's."""
    word = secrets.token_hex(8)
    first = scene.open()
    scene.run(
        f"""
        import tempfile
        for place in (os.environ["HOME"], tempfile.gettempdir(), "."):
            os.makedirs(f"{{place}}/.cache", exist_ok=True)
            open(f"{{place}}/.cache/{word}", "w").write("x")
        """,
        first,
    )
    scene.within(first.close)
    return scene.run(
        f"""
        import tempfile
        for place in (os.environ["HOME"], tempfile.gettempdir(), "."):
            attempt(place, lambda: whole(f"{{place}}/.cache/{word}"))
            for folder, _, files in os.walk(place):
                if "{word}" in files:
                    print("GOT", folder)
        """,
        scene.open(),
    )


ATTACKS = [
    Attack(
        name="planted-modules",
        tries="Plants modules with the names of others, start-up files and .pth files everywhere.",
        must="They run in no other workspace, in no confined part of the sandbox, in no harness.",
        code=_modules,
    ),
    Attack(
        name="patched-libraries",
        tries="Replaces functions of builtins, pandas, numpy and scikit-learn in memory.",
        must="The next program finds them as they were.",
        code=_patches,
    ),
    Attack(
        name="preloaded-code",
        tries="Sets variables and writes files that make later programs load code.",
        must="The next program's environment is made anew.",
        code=_preload,
    ),
    Attack(
        name="changed-input",
        tries="Overwrites, removes and replaces the public files in its workspace.",
        must="The next program, other workspaces and the host see them unchanged.",
        code=_input,
    ),
    Attack(
        name="leftovers-of-a-closed-workspace",
        tries="Leaves caches in home and temporary folders for the next episode.",
        must="A new workspace starts with empty ones.",
        code=_history,
    ),
    Attack(
        name="overwritten-evaluator",
        tries="Overwrites evaluator, answers and thresholds anywhere, at its exit too (FR-18).",
        must="None of them can be reached.",
        needs="fs_hidden",
        code=_evaluator,
    ),
    Attack(
        name="script-is-a-link",
        tries="Puts a link to a hidden file where the sandbox writes the next script.",
        must="The sandbox does not write through it.",
        code=_planting("""
            anyway(
                lambda: os.unlink("script.py"),
                lambda: os.symlink(HOST["answer"], "script.py"),
            )
        """),
    ),
    Attack(
        name="script-is-a-fifo",
        tries="Puts a FIFO where the sandbox writes the next script.",
        must="The sandbox does not wait for a reader.",
        code=_planting("""
            anyway(lambda: os.unlink("script.py"), lambda: os.mkfifo("script.py"))
        """),
    ),
    Attack(
        name="script-is-a-folder",
        tries="Puts a full, closed folder where the sandbox writes the next script.",
        must="The next program is the one that was asked for.",
        code=_planting("""
            anyway(
                lambda: os.unlink("script.py"),
                lambda: os.mkdir("script.py"),
                lambda: open("script.py/x", "w"),
                lambda: os.chmod("script.py", 0),
            )
        """),
    ),
    Attack(
        name="script-has-two-names",
        tries="Links its script to another name and keeps that open for writing.",
        must="What is written there later never becomes a program.",
        code=_planting("""
            anyway(
                lambda: os.link("script.py", "other.py"),
                lambda: open("other.py", "w").write("print('POISON')"),
                lambda: os.chmod("script.py", 0o444),
            )
        """),
    ),
    Attack(
        name="script-is-changed-while-it-runs",
        tries="Rewrites its own script for the next program.",
        must="Only the harness says which program runs next.",
        code=_planting("""
            anyway(
                lambda: os.chmod(__file__, 0o666),
                lambda: open(__file__, "w").write("print('POISON')"),
                lambda: open("script.py", "a").write("print('POISON')"),
            )
        """),
    ),
    Attack(
        name="input-is-a-link",
        tries="Moves its input aside and puts a link to the hidden folder in its place.",
        must="The sandbox neither writes through the link nor shows what it leads to.",
        code=_planting("""
            anyway(
                lambda: os.chmod("input", 0o700),
                lambda: os.rename("input", "moved"),
                lambda: os.symlink(HOST["hidden"], "input"),
            )
        """),
    ),
    Attack(
        name="input-is-a-fifo",
        tries="Moves its input aside and puts a FIFO, or else a file, in its place.",
        must="The next program has its input.",
        code=_planting("""
            anyway(
                lambda: os.chmod("input", 0o700),
                lambda: os.rename("input", "moved"),
                lambda: os.mkfifo("input"),
                lambda: open("input", "x").close(),
            )
        """),
    ),
    Attack(
        name="temporary-folder-is-a-link",
        tries="Replaces its temporary folder and its home by links to the hidden folder.",
        must="The sandbox makes, empties or owns nothing behind them.",
        needs="fs_hidden",
        reckless=True,
        code=_planting("""
            import shutil, tempfile
            for place in (tempfile.gettempdir(), os.environ["HOME"], "/dev/shm"):
                anyway(
                    lambda: shutil.rmtree(place),
                    lambda: os.rename(place, place + "-moved"),
                    lambda: os.symlink(HOST["hidden"], place),
                )
        """),
    ),
    Attack(
        name="working-directory-is-gone",
        tries="Removes, renames and closes its working directory and the one above.",
        must="The next program starts in a working directory with its input.",
        needs="fs_hidden",
        reckless=True,
        code=_planting("""
            here = os.getcwd()
            above = os.path.dirname(here)
            anyway(
                lambda: os.chmod(here, 0),
                lambda: os.chmod(here, 0o700),
                lambda: os.rmdir(here),
                lambda: os.rename(here, here + "-moved"),
                lambda: above == "/" or os.rename(above, above + "-moved"),
                lambda: os.chmod(above, 0),
                lambda: os.chmod(".", 0),
            )
        """),
    ),
    Attack(
        name="mountpoints-are-moved",
        tries="Renames and removes the folders that the sandbox has mounted.",
        must="Every mount is where it was for the next program.",
        needs="fs_hidden",
        reckless=True,
        code=_planting("""
            for place in (os.getcwd(), "input", os.environ["HOME"], "/tmp", "/dev/shm", "/dev",
                          "/proc", "/usr", "/etc/passwd", "/.workspaces", "/.trees", "/.run"):
                anyway(
                    lambda: os.rename(place, "elsewhere"),
                    lambda: os.rmdir(place),
                    lambda: os.unlink(place),
                )
        """),
    ),
    Attack(
        name="immutable-files",
        tries="Makes files immutable and append-only, so that nobody can remove them.",
        must="No such attribute can be set.",
        code=_planting("""
            import fcntl, struct
            os.mkdir("folder")
            for path in ("folder/f", "g"):
                open(path, "w").close()
            def mark(path, flag):
                handle = os.open(path, os.O_RDONLY)
                fcntl.ioctl(handle, 0x40086602, struct.pack("l", flag))
                fcntl.ioctl(handle, 0x40086602, struct.pack("l", 0))
            for path in ("folder/f", "folder", "g", "."):
                for flag in (0x10, 0x20):
                    attempt(f"{path} {flag:#x}", lambda: mark(path, flag))
        """),
    ),
    Attack(
        name="names-of-the-sandbox",
        tries="Puts links under every name that the sandbox may use for its own files.",
        must="Programs run as before, and nothing is written through the links.",
        code=_planting("""
            import tempfile
            names = ("stdout", "stderr", "output", "status", "exit", "report.json", "main.py",
                     "private", ".run", ".tmp", ".home", "work", "home", "tmp", "input.0",
                     "script.py.0", "lock", ".lock", "pid", "core")
            for place in (".", tempfile.gettempdir(), os.environ["HOME"], ".."):
                for name in names:
                    anyway(lambda: os.symlink(HOST["answer"], f"{place}/{name}"))
        """),
    ),
]
