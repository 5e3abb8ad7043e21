"""What only a confined sandbox promises: guarantees, workers that come and go, nothing left."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.config import SandboxSection
from sandmle.errors import SandboxError, UsageError
from sandmle.sandbox import modes
from sandmle.sandbox.base import open_sandbox
from sandmle.sandbox.confined import Confined
from sandmle.sandbox.inside import processes
from sandmle.types import Limits


@pytest.fixture(scope="module")
def confined() -> Iterator[Confined]:
    made = open_sandbox(SandboxSection(preload="numpy,numpy.random"), workers=2)
    assert isinstance(made, Confined)
    yield made
    made.close()


def below(pid: int) -> list[int]:
    return [one for one in processes.descendants(pid) if not gone(one)]


def gone(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def eventually(condition, seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def test_the_strongest_mode_is_taken_and_the_others_explained(confined: Confined) -> None:
    found = confined.isolation
    names = [mode.name for mode in modes.MODES]
    assert list(found.refused) == names[: names.index(found.mode)]
    assert all(found.refused.values())
    assert found.fs_hidden
    assert found.memory_limit


def test_a_mode_that_cannot_work_says_why() -> None:
    impossible = "uid+landlock" if os.geteuid() else None
    if impossible is None:
        pytest.skip("root may use every mode")
    with pytest.raises(SandboxError, match=r"uid\+landlock does not work here: needs root"):
        open_sandbox(SandboxSection(backend=impossible))


def test_a_guarantee_that_is_missing_stops_the_start() -> None:
    with pytest.raises(SandboxError, match="the sandbox here is bare, without net, fs_hidden"):
        open_sandbox(SandboxSection(backend="bare", require=("net", "fs_hidden")))
    with pytest.raises(UsageError, match="did you mean 'fs_hidden'"):
        open_sandbox(SandboxSection(require=("fs_hiden",)))
    open_sandbox(SandboxSection(preload="none", require=("fs_hidden", "memory_limit"))).close()


def test_unknown_modules_are_passed_over_and_bad_names_refused() -> None:
    sandbox = open_sandbox(SandboxSection(preload="no_such_module_at_all, json"))
    sandbox.close()
    with pytest.raises(UsageError, match="profiles are none, full, tabular"):
        open_sandbox(SandboxSection(preload="tabular + torch"))


def test_a_module_that_starts_a_thread_is_left_out(
    public: Path, tmp_path: Path, monkeypatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "packages").mkdir()
    module = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()"
    (tmp_path / "packages" / "threaded.py").write_text(module)
    path = str(tmp_path / "packages")
    shown, variables = modes.interpreter_paths(), modes.environment()
    monkeypatch.setattr(modes, "interpreter_paths", lambda: [*shown, path])
    monkeypatch.setattr(modes, "environment", lambda: {**variables, "PYTHONPATH": path})
    sandbox = open_sandbox(SandboxSection(preload="json,threaded,csv"))
    assert "importing threaded starts a thread" in caplog.text
    code = "import sys; print([name in sys.modules for name in ('json', 'threaded', 'csv')])"
    assert sandbox.open(public, Limits()).run(code).stdout == "[True, False, True]\n"
    sandbox.close()


def test_what_was_imported_is_there_at_once(confined: Confined, public: Path) -> None:
    workspace = confined.open(public, Limits())
    code = "import sys; print('numpy' in sys.modules, [m for m in sys.modules if 'sandmle' in m])"
    assert workspace.run(code).stdout == "True []\n"


def test_random_numbers_differ_between_runs_and_follow_a_seed(
    confined: Confined, public: Path
) -> None:
    workspace = confined.open(public, Limits())
    for draw in ("random.random()", "np.random.rand()", "np.random.default_rng().random()"):
        code = f"import random, numpy as np\nprint({draw})"
        assert len({workspace.run(code).stdout for _ in range(3)}) == 3
    seeded = "import random, numpy as np\nrandom.seed(7); np.random.seed(7)\n"
    seeded += "print(random.random(), np.random.rand(), hash('x'))"
    assert len({workspace.run(seeded).stdout for _ in range(3)}) == 1


def test_the_public_files_are_stored_once_for_all_workspaces(
    confined: Confined, public: Path
) -> None:
    os.utime(public / "train.csv")
    time.sleep(1.1)  # so that its time stamp cannot be that of another change
    first, second = confined.open(public, Limits()), confined.open(public, Limits())
    look = "import os; s = os.stat('input/train.csv'); print(s.st_dev, s.st_ino)"
    assert first.run(look).stdout == second.run(look).stdout
    assert first.run("open('input/train.csv', 'w')").status == "error"


def test_a_workspace_belongs_to_no_worker(confined: Confined, public: Path) -> None:
    workspace = confined.open(public, Limits(wall_s=30))
    other = confined.open(public, Limits(wall_s=30))
    workspace.run("open('a', 'w').write('kept')")
    with ThreadPoolExecutor(2) as pool:
        busy = pool.submit(other.run, "import time; time.sleep(1)")
        for _ in range(5):
            assert workspace.run("print(open('a').read())").stdout == "kept\n"
        assert busy.result().status == "ok"


def test_more_programs_than_workers_wait_for_their_turn(confined: Confined, public: Path) -> None:
    code = "import os, time\nopen('n', 'w').write('{0}'); time.sleep(0.2)\nprint(open('n').read())"
    spaces = [confined.open(public, Limits(wall_s=30)) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: spaces[n].run(code.format(n)), range(8)))
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(8)]
    for space in spaces:
        space.close()


def test_two_programs_in_one_workspace_follow_each_other(confined: Confined, public: Path) -> None:
    workspace = confined.open(public, Limits(wall_s=30))
    code = (
        "import os, time\nassert not os.path.exists('busy')\nopen('busy', 'w')\n"
        "time.sleep(0.2)\nos.unlink('busy')"
    )
    with ThreadPoolExecutor(4) as pool:
        assert {r.status for r in pool.map(workspace.run, [code] * 4)} == {"ok"}


def worker_pids(confined: Confined) -> list[int]:
    """The workers of a sandbox as the host sees them: children of the keeper, but the nursery."""
    supervisor = confined._keeper._process.pid
    keeper = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0]
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return [int(child) for child in children[sandbox_has_nursery(confined) :]]


def sandbox_has_nursery(confined: Confined) -> int:
    return int(confined.isolation.fs_absent)


def test_a_worker_that_died_is_replaced(public: Path) -> None:
    sandbox = open_sandbox(SandboxSection(preload="none"), workers=1)
    assert isinstance(sandbox, Confined)
    workspace = sandbox.open(public, Limits())
    workspace.run("open('kept', 'w').write('yes')")
    (pid,) = worker_pids(sandbox)
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: gone(pid))
    result = workspace.run("print(open('kept').read())")
    assert (result.status, result.stdout) == ("ok", "yes\n")
    sandbox.close()


def test_a_worker_that_dies_under_a_program_is_our_failure(public: Path) -> None:
    sandbox = open_sandbox(SandboxSection(preload="none"), workers=1)
    assert isinstance(sandbox, Confined)
    workspace = sandbox.open(public, Limits(wall_s=60))
    workspace.run("pass")
    (pid,) = worker_pids(sandbox)
    threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
    started = time.monotonic()
    assert workspace.run("import time; time.sleep(50)").status == "infra"
    assert time.monotonic() - started < 40, "it waited for the program"
    assert workspace.run("print(1)").stdout == "1\n"
    sandbox.close()


def test_a_worker_that_hangs_is_given_up(public: Path, monkeypatch) -> None:
    monkeypatch.setattr("sandmle.sandbox.worker.GRACE_S", 0.5)
    sandbox = open_sandbox(SandboxSection(preload="none"), workers=1)
    assert isinstance(sandbox, Confined)
    workspace = sandbox.open(public, Limits(wall_s=1))
    workspace.run("pass")
    (pid,) = worker_pids(sandbox)
    os.kill(pid, signal.SIGSTOP)
    result = workspace.run("print(1)")
    assert (result.status, result.stderr[:25]) == ("infra", "the worker did not answer")
    assert workspace.run("print(1)").stdout == "1\n"
    sandbox.close()


def test_a_keeper_that_died_is_replaced_and_its_workspaces_are_lost(public: Path) -> None:
    sandbox = open_sandbox(SandboxSection(preload="none"), workers=1)
    assert isinstance(sandbox, Confined)
    lost = sandbox.open(public, Limits())
    lost.run("pass")
    sandbox._keeper._process.kill()
    assert eventually(lambda: not sandbox._keeper.alive)
    assert lost.run("print(1)").status == "infra"
    fresh = sandbox.open(public, Limits())
    assert fresh.run("print(2)").stdout == "2\n"
    lost.close()
    sandbox.close()


def test_without_its_nursery_a_keeper_is_replaced(public: Path) -> None:
    sandbox = open_sandbox(SandboxSection(preload="none"), workers=1)
    assert isinstance(sandbox, Confined)
    lost = sandbox.open(public, Limits())
    if not sandbox_has_nursery(sandbox):
        sandbox.close()
        pytest.skip("no namespaces, no nursery")
    supervisor = sandbox._keeper._process.pid
    keeper = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0]
    nursery = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0]
    os.kill(int(nursery), signal.SIGKILL)
    assert eventually(lambda: not sandbox._keeper.alive)
    assert lost.run("print(1)").status == "infra"
    assert sandbox.open(public, Limits()).run("print(2)").stdout == "2\n"
    sandbox.close()


@pytest.mark.parametrize("backend", ["ns", "landlock", "cold"])
def test_a_killed_harness_leaves_nothing(backend: str, public: Path) -> None:
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\ntime.sleep(600)"
    code = (
        "import sys\nfrom pathlib import Path\nfrom sandmle.config import SandboxSection\n"
        "from sandmle.sandbox.base import open_sandbox\nfrom sandmle.types import Limits\n"
        f"s = open_sandbox(SandboxSection(backend={backend!r}, preload='none'))\n"
        f"w = s.open(Path({str(public)!r}), Limits(wall_s=500))\n"
        f"print('open', flush=True)\nw.run({daemon!r})\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert harness.stdout is not None
    if harness.stdout.readline() != b"open\n":
        harness.communicate()
        pytest.skip(f"{backend} does not work here")
    # supervisor, keeper, worker, program and its two children; with namespaces the nursery and
    # the first process too
    assert eventually(lambda: len(below(harness.pid)) == (6 if backend == "landlock" else 8))
    family = below(harness.pid)
    harness.kill()
    harness.wait()
    harness.stdout.close()
    assert eventually(lambda: all(gone(pid) for pid in family))


def test_closing_leaves_nothing(public: Path) -> None:
    before = set(below(os.getpid()))
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    sandbox = open_sandbox(SandboxSection(preload="none"), workers=2)
    spaces = [sandbox.open(public, Limits()) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda space: space.run("pass"), spaces))
    assert set(below(os.getpid())) > before
    sandbox.close()
    assert eventually(lambda: set(below(os.getpid())) == before)
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208


def test_a_task_among_the_interpreters_files_is_refused() -> None:
    sandbox = open_sandbox(SandboxSection(preload="none"))
    with pytest.raises(SandboxError, match="which agent code can read; move the tasks elsewhere"):
        sandbox.open(Path("/usr/share"), Limits())
    sandbox.close()


@given(st.lists(st.sampled_from(["a", "b", "a/x", "a/y", "a/x/1", "b/z"]), unique=True))
def test_spared_paths_cover_all_but_the_hidden(hidden: list[str]) -> None:
    import tempfile

    leaves = ["a/x/1", "a/x/2", "a/y/1", "b/z/1", "b/w"]
    with tempfile.TemporaryDirectory() as folder:
        for leaf in leaves:
            Path(folder, leaf).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, leaf).touch()
        Path(folder, "link").symlink_to("a")
        paths = [f"{folder}/{one}" for one in hidden]
        spared = modes.spared([folder, f"{folder}/link"], paths)
        for leaf in leaves:
            path = f"{folder}/{leaf}"
            shown = any(path == one or path.startswith(f"{one}/") for one in spared)
            covered = any(path == one or path.startswith(f"{one}/") for one in paths)
            assert shown != covered
