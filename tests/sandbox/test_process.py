"""The same demands on both process sandboxes, with real programs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandmle.errors import TaskError
from sandmle.files import UnsafeFile
from sandmle.sandbox.base import SANDBOXES, Sandbox, Workspace
from sandmle.types import Limits


@pytest.fixture(params=["cold", "bare"])
def either(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    made = SANDBOXES.get(request.param)()
    yield made
    made.close()


@pytest.fixture
def workspace(either: Sandbox, public: Path) -> Workspace:
    return either.open(public, Limits(wall_s=20, output_bytes=2000))


def alive(marker: str) -> list[int]:
    """Processes whose command line holds a marker."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def gone(marker: str) -> bool:
    """Say whether no such process is left; the kernel may take a moment to end a killed one."""
    for _ in range(100):
        if not alive(marker):
            return True
        time.sleep(0.05)
    return False


def test_a_program_runs_with_its_data(workspace: Workspace) -> None:
    result = workspace.run("print(open('input/train.csv').read()); print('né', flush=True)")
    assert (result.status, result.exit_code) == ("ok", 0)
    assert result.stdout == "id,x,y\na,1,2\n\nné\n"
    assert result.wall_s > 0
    assert result.cpu_s > 0
    assert result.peak_mb > 5


def test_files_persist_and_memory_does_not(workspace: Workspace) -> None:
    workspace.run("x = 1; open('kept.txt', 'w').write('yes')")
    result = workspace.run("print(open('kept.txt').read()); print('x' in globals())")
    assert result.stdout == "yes\nFalse\n"
    assert workspace.list() == ["kept.txt"]
    assert workspace.read("kept.txt", 10) == b"yes"


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "number"),
    [
        ("raise ValueError('bad column')", "error", 1, None),
        ("import sys; sys.exit(3)", "error", 3, None),
        ("import sys; sys.exit()", "ok", 0, None),
        ("import os; os._exit(0)", "ok", 0, None),
        ("import ctypes; ctypes.string_at(0)", "killed", None, signal.SIGSEGV),
        ("import os; os.abort()", "killed", None, signal.SIGABRT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed", None, signal.SIGKILL),
        ("def f(:", "error", 1, None),
        ("input()", "error", 1, None),
        ("import getpass; getpass.getpass()", "error", 1, None),
    ],
)
def test_every_ending_is_a_result(
    workspace: Workspace, code: str, status: str, exit_code: int | None, number: int | None
) -> None:
    result = workspace.run(code)
    assert (result.status, result.exit_code, result.signal) == (status, exit_code, number)


def test_a_traceback_names_the_lines_of_the_script(workspace: Workspace) -> None:
    result = workspace.run("a = 1\nraise ValueError('bad column')")
    assert "script.py" in result.stderr
    assert "line 2" in result.stderr
    assert "bad column" in result.stderr


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time\nwhile True:\n  try: time.sleep(1)\n  except BaseException: pass",
        "import signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(600)",
        "import time\ntime.time = time.monotonic = time.perf_counter = lambda: 0\nwhile True: pass",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import os, time; os.close(1); os.close(2); time.sleep(600)",
        "import subprocess\nsubprocess.Popen(['sleep', 'MARKER'])\nwhile True: pass",
    ],
)
def test_the_clock_is_ours(either: Sandbox, public: Path, code: str) -> None:
    workspace = either.open(public, Limits(wall_s=0.6))
    marker = f"600.{os.getpid()}"
    started = time.monotonic()
    result = workspace.run("print('begun', flush=True)\n" + code.replace("MARKER", marker))
    assert result.status == "timeout"
    assert result.stdout == "begun\n"
    assert time.monotonic() - started < 60, "the program would have run for minutes"
    assert gone(marker)


def test_what_a_program_leaves_running_ends_with_it(workspace: Workspace) -> None:
    marker = f"601.{os.getpid()}"
    result = workspace.run(
        f"import subprocess; subprocess.Popen(['sleep', '{marker}']); print('done')"
    )
    assert (result.status, result.stdout) == ("ok", "done\n")
    assert gone(marker)


def test_output_is_bounded_with_both_ends_kept(workspace: Workspace) -> None:
    code = "print('first')\nfor i in range(20000): print('é' * 50)\nraise ValueError('bad column')"
    result = workspace.run(code)
    assert result.truncated
    assert result.stdout.startswith("first")
    assert "bytes left out" in result.stdout
    assert "�" not in result.stdout, "cut within a character"
    assert len(result.stdout.encode()) < 2200
    assert "bad column" in result.stderr


def test_undecodable_output_is_replaced(workspace: Workspace) -> None:
    result = workspace.run("import sys; sys.stdout.buffer.write(b'a\\xff\\x00b')")
    assert result.stdout == "a�\0b"


def test_the_environment_holds_no_secret(workspace: Workspace, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    result = workspace.run("import os; print(sorted(os.environ.items()))")
    assert "canary-key" not in result.stdout
    assert "OMP_NUM_THREADS" in result.stdout


def test_nothing_of_ours_is_inherited(workspace: Workspace, tmp_path: Path) -> None:
    with (tmp_path / "canary.txt").open("w") as stream:
        os.set_inheritable(stream.fileno(), True)
        result = workspace.run(
            "import os\nfor n in os.listdir('/proc/self/fd'):\n"
            "    try: print(os.readlink(f'/proc/self/fd/{n}'))\n    except OSError: pass"
        )
    assert "canary" not in result.stdout


def test_input_is_a_copy(workspace: Workspace, public: Path) -> None:
    name = "'input/train.csv'"
    workspace.run(f"import os; os.chmod({name}, 0o666); open({name}, 'w').write('x')")
    assert (public / "train.csv").read_text().startswith("id,x,y")


@pytest.mark.parametrize("target", ["../secret.csv", "/etc/hostname", "nothing"])
def test_links_among_the_public_files_are_not_followed(
    either: Sandbox, public: Path, target: str
) -> None:
    (public.parent / "secret.csv").write_text("secret")
    (public / "more.csv").symlink_to(target)
    with pytest.raises(TaskError, match=r"more\.csv: not a plain file"):
        either.open(public, Limits())


def test_workspaces_share_nothing(either: Sandbox, public: Path) -> None:
    first, second = either.open(public, Limits()), either.open(public, Limits())
    code = "import tempfile; open(tempfile.gettempdir() + '/x', 'w').write('1'); open('y', 'w')"
    first.run(code)
    look = "import tempfile, os; print(os.listdir(tempfile.gettempdir()), sorted(os.listdir()))"
    assert second.run(look).stdout == "[] ['input', 'script.py']\n"
    assert second.fork().list() == []


@pytest.mark.parametrize(
    "damage",
    [
        "import shutil; shutil.rmtree('.', ignore_errors=True)",
        "import os; os.chmod('.', 0)",
        "import os; os.mkdir('a'); os.chmod('input', 0o700); os.rename('input', 'a/input')",
        "import os; os.rename(os.getcwd(), os.getcwd() + '-moved')",
        "import os; r = os.path.dirname(os.getcwd()); os.rename(r, r + '-moved')",
        "import os; os.unlink('script.py'); os.symlink('/etc/passwd', 'script.py')",
        "import os; os.unlink('script.py'); os.mkdir('script.py'); open('script.py/x', 'w')",
    ],
)
def test_a_damaged_workspace_is_mended(workspace: Workspace, damage: str) -> None:
    workspace.run(damage)
    result = workspace.run("print(open('input/train.csv').readline())")
    assert result.stdout.startswith("id,x,y"), result


def test_a_planted_link_is_not_written_through(workspace: Workspace, tmp_path: Path) -> None:
    target = tmp_path / "ours.txt"
    target.write_text("untouched")
    workspace.run(f"import os; os.unlink('script.py'); os.symlink({str(target)!r}, 'script.py')")
    workspace.run("print(1)")
    assert target.read_text() == "untouched"


def test_links_are_not_read(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "answer.csv").write_text("secret")
    workspace.run(f"import os; os.symlink({str(tmp_path / 'answer.csv')!r}, 'submission.csv')")
    with pytest.raises(UnsafeFile):
        workspace.read("submission.csv", 100)


def test_closing_removes_everything(either: Sandbox, public: Path) -> None:
    workspace = either.open(public, Limits())
    root = Path(workspace.run("import os; print(os.path.dirname(os.getcwd()))").stdout.strip())
    workspace.run("import os; os.mkdir('a'); open('a/b', 'w'); os.chmod('a', 0)")
    assert root.is_dir()
    workspace.close()
    workspace.close()
    assert not root.exists()


def test_cold_limits_memory_and_files(public: Path) -> None:
    sandbox = SANDBOXES.get("cold")()
    workspace = sandbox.open(public, Limits(memory_mb=300, disk_mb=1))
    result = workspace.run("x = bytearray(10**9)")
    assert result.status == "error"
    assert "MemoryError" in result.stderr
    result = workspace.run("open('big', 'wb').write(b'x' * 10**7)")
    assert result.status == "error"
    assert "File too large" in result.stderr
    sandbox.close()


def test_numeric_libraries_work_within_the_default_limits(public: Path) -> None:
    sandbox = SANDBOXES.get("cold")()
    code = (
        "import numpy as np, pandas as pd\nfrom sklearn.ensemble import RandomForestClassifier\n"
        "X = np.random.rand(100, 5)\ny = X[:, 0] > 0.5\n"
        "print(RandomForestClassifier(10, n_jobs=2).fit(X, y).score(X, y))"
    )
    result = sandbox.open(public, Limits()).run(code)
    assert result.status == "ok", result.stderr
    sandbox.close()


def test_cold_dies_with_its_harness(public: Path) -> None:
    """A killed parent leaves no program behind."""
    code = (
        "from pathlib import Path\nfrom sandmle.sandbox.base import SANDBOXES\n"
        "from sandmle.types import Limits\n"
        f"w = SANDBOXES.get('cold')().open(Path({str(public)!r}), Limits())\n"
        "w.run('import time; time.sleep(601.5)  # marker')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    for _ in range(200):
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        if children and b"script.py" in Path(f"/proc/{children[0]}/cmdline").read_bytes():
            break
        time.sleep(0.05)
    child = int(children[0])
    parent.kill()
    parent.wait()
    for _ in range(40):
        if not Path(f"/proc/{child}/cmdline").exists() or not alive_pid(child):
            break
        time.sleep(0.05)
    assert not alive_pid(child)


def alive_pid(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_isolation_says_what_is_open() -> None:
    cold, bare = (SANDBOXES.get(name)() for name in ("cold", "bare"))
    assert cold.isolation.memory_limit
    assert not bare.isolation.memory_limit
    for sandbox in (cold, bare):
        assert not sandbox.isolation.fs_hidden
        assert not sandbox.isolation.net


def test_bare_warns(caplog: pytest.LogCaptureFixture) -> None:
    SANDBOXES.get("bare")()
    assert "sees your files" in caplog.text


def test_a_program_that_cannot_start_is_infra(workspace: Workspace, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert workspace.run("print(1)").status == "infra"
