"""The same demands on every sandbox that works here, with real programs."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandmle.config import SandboxSection
from sandmle.errors import SandboxError, TaskError
from sandmle.files import UnsafeFile
from sandmle.sandbox.base import Sandbox, Workspace, open_sandbox, save
from sandmle.types import Limits


@pytest.fixture(scope="module", params=["ns", "cold", "bare"])
def any_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    made = open_sandbox(SandboxSection(backend=request.param, preload="tabular"), workers=2)
    yield made
    made.close()


@pytest.fixture
def workspace(any_sandbox: Sandbox, public: Path) -> Iterator[Workspace]:
    made = any_sandbox.open(public, Limits(wall_s=20, output_bytes=2000))
    yield made
    made.close()


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
def test_the_clock_is_ours(any_sandbox: Sandbox, public: Path, code: str) -> None:
    workspace = any_sandbox.open(public, Limits(wall_s=0.6))
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


def test_only_the_gpus_that_were_given_are_named(any_sandbox: Sandbox, public: Path) -> None:
    code = "import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    assert any_sandbox.open(public, Limits()).run(code).stdout == "''\n"
    assert any_sandbox.open(public, Limits(gpu=(3, 5))).run(code).stdout == "'3,5'\n"


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
    any_sandbox: Sandbox, public: Path, target: str
) -> None:
    (public.parent / "secret.csv").write_text("secret")
    (public / "more.csv").symlink_to(target)
    with pytest.raises(TaskError, match=r"more\.csv: not a plain file"):
        any_sandbox.open(public, Limits())


def test_workspaces_share_nothing(any_sandbox: Sandbox, public: Path) -> None:
    first, second = any_sandbox.open(public, Limits()), any_sandbox.open(public, Limits())
    code = "import tempfile; open(tempfile.gettempdir() + '/x', 'w').write('1'); open('y', 'w')"
    first.run(code)
    look = (
        "import tempfile, os\nprint('x' in os.listdir(tempfile.gettempdir()), sorted(os.listdir()))"
    )
    assert second.run(look).stdout == "False ['input', 'script.py']\n"
    assert first.run(look).stdout == "True ['input', 'script.py', 'y']\n"
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


@pytest.mark.parametrize(
    "damage",
    [
        "import os; os.mkdir('a'); open('a/b', 'w'); os.chmod('a', 0)",
        "import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')",
        "import os; os.symlink('/', 'root'); os.chmod('.', 0)",
    ],
)
def test_closing_removes_everything(any_sandbox: Sandbox, public: Path, damage: str) -> None:
    before = set(Path(tempfile.gettempdir()).glob("sandmle-*/workspaces/*/work"))
    before |= set(Path(tempfile.gettempdir()).glob("sandmle-*/work"))
    workspace = any_sandbox.open(public, Limits())
    workspace.run(damage)
    workspace.list()
    workspace.close()
    workspace.close()
    after = set(Path(tempfile.gettempdir()).glob("sandmle-*/workspaces/*/work"))
    after |= set(Path(tempfile.gettempdir()).glob("sandmle-*/work"))
    assert after == before


def test_text_that_is_not_unicode_still_runs(workspace: Workspace) -> None:
    assert workspace.run("print(1)  # \ud83d").stdout == "1\n"


@pytest.mark.parametrize("size", [300_000, 3_000_000])
def test_a_long_script_runs(workspace: Workspace, size: int) -> None:
    assert workspace.run(f"x = {'a' * size!r}\nprint(len(x))").stdout == f"{size}\n"


def test_private_files_are_shown_only_where_they_are_asked_for(
    any_sandbox: Sandbox, public: Path, tmp_path: Path
) -> None:
    private = tmp_path / "secret"
    (private / "deep").mkdir(parents=True)
    (private / "deep" / "answer.csv").write_text("id,y\na,1\n")
    ours = any_sandbox.open(public, Limits(), private)
    assert ours.run("print(open('private/deep/answer.csv').read())").stdout == "id,y\na,1\n\n"
    assert ours.fork().run("open('private/deep/answer.csv')").status == "ok"
    theirs = any_sandbox.open(public, Limits())
    assert "No such file" in theirs.run("open('private/deep/answer.csv')").stderr
    assert ours.list() == []


def test_what_a_program_wrote_can_be_taken_out(workspace: Workspace, tmp_path: Path) -> None:
    workspace.run("import os; os.makedirs('out/a'); open('out/a/b.bin', 'wb').write(b'\\0\\1')")
    assert save(workspace, tmp_path / "taken", 2) == ["out/a/b.bin"]
    assert (tmp_path / "taken" / "out" / "a" / "b.bin").read_bytes() == b"\0\1"


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("open('b', 'w').write('x' * 11)", "'b' is larger than the limit"),
        ("open('b', 'w').write('x' * 6); open('c', 'w').write('x' * 5)", "'c' is larger"),
        ("import os; open('b', 'w'); os.symlink('/etc/passwd', 'c')", "'c' is a link"),
        ("import os; open('b', 'w'); os.link('b', 'c')", "'b' has 2 hard links"),
    ],
)
def test_what_is_not_plain_is_not_taken_out(
    workspace: Workspace, tmp_path: Path, code: str, fault: str
) -> None:
    assert workspace.run(code).status == "ok"
    with pytest.raises(UnsafeFile, match=fault):
        save(workspace, tmp_path / "taken", 10)
    assert not (tmp_path / "taken").exists()


def test_many_public_files_arrive_whole(any_sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    for number in range(450):
        path = folder / f"d{number % 7}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number % 251]) * number)
    (folder / "empty").mkdir()
    code = (
        "from pathlib import Path\nn = 0\nfor p in Path('input').rglob('*.bin'):\n"
        "    k = int(p.stem); n += 1\n    assert p.read_bytes() == bytes([k % 251]) * k, p\n"
        "print(n, Path('input/empty').is_dir())"
    )
    assert any_sandbox.open(folder, Limits()).run(code).stdout == "450 True\n"


def test_changed_public_files_are_seen(any_sandbox: Sandbox, public: Path) -> None:
    for text in ("id\n1\n", "id\n2\n", "id\n3\n"):
        (public / "train.csv").write_text(text)
        workspace = any_sandbox.open(public, Limits())
        assert workspace.run("print(open('input/train.csv').read(), end='')").stdout == text


def test_a_closed_sandbox_runs_nothing(public: Path) -> None:
    for backend in ("ns", "bare"):
        sandbox = open_sandbox(SandboxSection(backend=backend, preload="none"))
        workspace = sandbox.open(public, Limits())
        sandbox.close()
        sandbox.close()
        assert workspace.run("print(1)").status == "infra"
        with pytest.raises(SandboxError, match="closed"):
            sandbox.open(public, Limits())
        workspace.close()


def test_closing_a_workspace_ends_what_runs_in_it(any_sandbox: Sandbox, public: Path) -> None:
    workspace = any_sandbox.open(public, Limits(wall_s=60))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(workspace.run, "print('on', flush=True)\nwhile True: pass")
        time.sleep(0.5)
        workspace.close()
        assert running.result().status in {"killed", "infra"}


def test_bare_warns(caplog: pytest.LogCaptureFixture) -> None:
    open_sandbox(SandboxSection(backend="bare")).close()
    assert "sees your files" in caplog.text


def test_bare_cannot_start_a_program_is_infra(public: Path, monkeypatch) -> None:
    sandbox = open_sandbox(SandboxSection(backend="bare"))
    workspace = sandbox.open(public, Limits())
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert workspace.run("print(1)").status == "infra"
    sandbox.close()
