"""What goes wrong for a newcomer ends in one line that says so; each fault here is a real one."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
from build import build_task

ROOT = Path(__file__).parents[2]
ANSWERS = "id,label\na,1\nb,0\n"
SANDMLE = [sys.executable, "-m", "sandmle.cli.app"]
# a filter that refuses new namespaces and Landlock, as some containers do: kept by every child
REFUSING = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
rules = [(load, 0, 0, 0)]
for number in (272, 308, 444, 445, 446):  # unshare, setns, the three of Landlock
    rules += [(equal, 0, 1, number), (give, 0, 0, 0x50001)]
rules += [(equal, 0, 1, 435), (give, 0, 0, 0x50026)]  # clone3, whose flags a filter cannot see
rules += [(equal, 0, 3, 56), (load, 0, 0, 16), (any_bit, 0, 1, 0x7E020000), (give, 0, 0, 0x50001)]
rules += [(give, 0, 0, 0x7FFF0000)]
data = b"".join(struct.pack("HBBI", *rule) for rule in rules)
buffer = ctypes.create_string_buffer(data, len(data))
header = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(header, len(header)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def run(
    command: Sequence[str | Path], cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Demand that a command failed with one line that holds the words, and nothing else."""
    said = [line for line in done.stderr.splitlines() if not line.startswith("1 task, about")]
    assert len(said) == 1, done.stderr
    assert said[0].startswith("error: ")
    assert all(word in said[0] for word in words), said[0]
    assert done.returncode in (1, 2)


def mounted(folder: Path, options: str, command: Sequence[str | Path], ready: str = "true"):
    """Run a command where a small file system of its own lies at `folder`."""
    script = f'mount -t tmpfs -o {options} none "$0" && {ready} && exec "$@"'
    return run(["unshare", "-rm", "sh", "-c", script, folder, *command], cwd=folder.parent)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    code = f"open('submission.csv', 'w').write({ANSWERS!r})\n"
    solutions = {"90-reference": code}
    return build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), solutions=solutions).root


mounts = pytest.mark.skipif(
    shutil.which("unshare") is None
    or run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).returncode != 0,
    reason="no small file system can be mounted here",
)


def test_a_healthy_machine() -> None:
    done = run([*SANDMLE, "doctor"], OPENAI_BASE_URL="http://localhost:8000/v1")
    assert done.returncode == 0, done.stdout
    assert "generate, grade, rollout and view work here" in done.stdout.splitlines()[-1]
    rows = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert "http://localhost:8000/v1" in rows["model server"]
    assert "GB free" in rows["temporary files"]


def test_a_machine_without_packages(tmp_path: Path) -> None:
    """The command line itself needs typer and pydantic; nothing else is there."""
    site = Path(typer.__file__).parents[1]
    there = ("typer", "click", "shellingham", "annotated", "pydantic", "typing_", "ast_", "rich",
             "markdown_it", "mdurl", "pygments", "jinja2-", "Jinja2-")  # fmt: skip
    for path in site.iterdir():
        if path.name.lower().startswith(there) and path.name != "ast_serialize":
            (tmp_path / path.name).symlink_to(path)
    paths = [str(ROOT / "src"), str(tmp_path)]
    program = f"import sys; sys.path += {paths}; from sandmle.cli.app import main; main()"
    done = run([sys.executable, "-I", "-S", "-c", program, "doctor", "--json"], cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    facts = {fact["name"]: fact for fact in report["facts"]}
    assert report["ok"] is False
    assert facts["numpy"]["ok"] is False
    assert facts["numpy"]["detail"] == "sandmle needs it: pip install sandmle"
    assert "would enable sandmle train" in facts["torch"]["detail"]
    assert "figures" in facts["matplotlib"]["detail"]
    assert facts["typer"]["ok"] is True
    done = run([sys.executable, "-I", "-S", "-c", program, "doctor"], cwd=tmp_path)
    assert done.stdout.splitlines()[-1].startswith("not ready: ")
    assert "numpy" in done.stdout.splitlines()[-1]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter is of x86-64")
def test_no_namespaces_and_no_landlock(task: Path, tmp_path: Path) -> None:
    here = [sys.executable, "-c", REFUSING, *SANDMLE]
    told = "no confinement works here"
    for workers in ("1", "2"):
        out = tmp_path / f"made-{workers}"
        done = run([*here, "generate", out, "--n", "1", "--workers", workers])
        one_line(done, told, "bare")
    one_line(run([*here, "rollout", task, "--out", tmp_path / "run"]), told, "bare")
    done = run([*here, "doctor"])
    assert done.returncode == 0, "what needs no sandbox works, and so does bare"
    assert done.stdout.splitlines()[-1].startswith("only unconfined: generate --sandbox bare")
    assert "kernel.unprivileged_userns_clone" in done.stdout


@mounts
def test_no_space(task: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    full = "No space left on device"
    done = mounted(small, "size=4k,nr_inodes=2", [*SANDMLE, "generate", small, "--n", "1"])
    one_line(done, str(small), full)
    played = ["rollout", task, "--group", "1", "--policy", "scripted:nop"]
    one_line(mounted(small, "size=4k", [*SANDMLE, *played, "--out", small]), full)
    one_line(mounted(small, "size=4k", [*SANDMLE, "view", task, "--out", small / "x.html"]), full)
    done = mounted(small, "size=4k", ["env", f"TMPDIR={small}", *SANDMLE, "doctor", "--json"])
    facts = {fact["name"]: fact for fact in json.loads(done.stdout)["facts"]}
    assert facts["temporary files"]["ok"] is False
    assert "which is little" in facts["temporary files"]["detail"]
    assert done.returncode == 1


@mounts
def test_a_folder_that_is_read_only(task: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    only = 'mount -o remount,ro "$0" && cd "$0"'
    for command in (
        ["generate", "tasks", "--n", "1"],
        ["rollout", task, "--out", "run"],
        ["view", task, "--out", "page.html"],
    ):
        done = mounted(small, "size=1m", [*SANDMLE, *command], only)
        one_line(done, "Read-only file system")
    done = mounted(small, "size=1m", [*SANDMLE, "doctor"], only)
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("this folder"))
    assert "cannot be written (Read-only file system)" in row


PLACES = [
    *map(Path, os.environ.get("PATH", "").split(os.pathsep)),
    *Path.home().glob(".pyenv/versions/*/bin"),
]
OLD = [str(f) for p in PLACES for f in (*p.glob("python3.[6-9]"), *p.glob("python3.10"))]
make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


def demo(tmp_path: Path, python: str | Path, **environment: str):
    options = [f"PYTHON={python}", f"VENV={tmp_path / 'venv'}", f"DEMO={tmp_path / 'demo'}"]
    return run(["make", "-C", ROOT, *options, "demo"], **environment)


@make
@pytest.mark.parametrize("python", ["/no/python3", *OLD[:1]])
def test_make_with_an_old_python_or_none(python: str, tmp_path: Path) -> None:
    done = demo(tmp_path, python)
    assert done.returncode != 0
    assert "sandmle needs Python 3.11 or newer: make PYTHON=python3.11" in done.stdout
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "venv").exists()


@make
def test_make_where_venv_is_not_whole(tmp_path: Path) -> None:
    """Debian's Python without python3-venv makes half an environment before it gives up."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$1" != -m ] && exec "{sys.executable}" "$@"\n'
        'mkdir -p "$3/bin" && touch "$3/bin/python"\nexit 1\n'
    )
    python.chmod(0o755)
    done = demo(tmp_path, python)
    assert done.returncode != 0
    assert "apt-get install python3-venv" in done.stdout
    assert not (tmp_path / "venv").exists(), "the next make begins again"


@make
def test_make_without_a_network(tmp_path: Path) -> None:
    away = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    done = demo(tmp_path, sys.executable, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull, **away)
    assert done.returncode != 0
    assert "is there a network, and room on the disk?" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
