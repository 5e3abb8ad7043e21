import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from build import build_task

from sandmle.errors import TaskError, UsageError
from sandmle.tasks.folder import Task, open_task, write_task

ANSWERS = "id,label\na,1\nb,0\n"


def small(parent: Path, **options) -> Task:
    return build_task(parent, ANSWERS, classes=("0", "1"), **options)


def link(path: Path) -> None:
    """Put a link to itself, moved away, in the place of a file or folder."""
    elsewhere = path.parents[2] / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_write_and_open(tmp_path: Path) -> None:
    written = small(tmp_path)
    opened = open_task(tmp_path / "small-task")
    assert opened.card == written.card
    assert opened.description.startswith("Predict.")
    assert opened.answer_path.name == "answer.csv"
    assert opened.spec is None
    assert opened.faults() == []


def test_the_spec_and_the_ladder_are_read_when_asked_for(task: Task) -> None:
    assert task.spec.id == task.id
    names = [solution.name for solution in task.solutions()]
    assert names == [rung.name for rung in task.card.ladder]
    assert (names[0], names[-1]) == ("dummy", "reference")


def test_equal_content_has_one_hash_wherever_it_lies(tmp_path: Path) -> None:
    first, second = small(tmp_path / "a"), small(tmp_path / "b")
    assert first.content_hash == second.content_hash
    shutil.copytree(first.root, tmp_path / "c" / "small-task")
    assert open_task(tmp_path / "c" / "small-task").content_hash == first.content_hash
    other = build_task(tmp_path / "d", ANSWERS.replace("b,0", "b,1"), classes=("0", "1"))
    assert other.content_hash != first.content_hash


def test_the_hash_is_the_same_on_every_machine(tmp_path: Path) -> None:
    """A literal, made on another day: it changes only when the format of the card does."""
    card = small(tmp_path).card.model_copy(update={"files": {"public/x": "0" * 64}})
    expected = "c4622f17b10121382d886fe8a6260d524ba464917dbdf6dc69a4fd65f7f107d9"
    assert Task(tmp_path, card).content_hash == expected


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda root: (root / "public/test.csv").write_text("x"), "public/test.csv: changed"),
        (lambda root: (root / "public/test.csv").unlink(), "public/test.csv: missing"),
        (
            lambda root: (root / "public/answers.csv").write_text("x"),
            "public/answers.csv: not listed",
        ),
        (
            lambda root: (
                (root / "public/test.csv").unlink(),
                (root / "public/test.csv").symlink_to(root / "private/answer.csv"),
            ),
            "public/test.csv: a link",
        ),
    ],
)
def test_every_change_is_found(tmp_path: Path, damage, fault: str) -> None:
    task = small(tmp_path)
    damage(task.root)
    assert any(line.startswith(fault) for line in task.faults()), task.faults()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda root: (root / "task.json").unlink(), "cannot be read"),
        (lambda root: (root / "task.json").write_text("{"), "Invalid JSON"),
        (lambda root: (root / "task.json").write_text("{}"), "Field required"),
        (lambda root: shutil.rmtree(root / "private"), "private: missing"),
        (lambda root: link(root / "private"), "not a plain folder"),
        (lambda root: link(root / "public"), "not a plain folder"),
        (lambda root: link(root / "task.json"), "cannot be read"),
        (lambda root: fifo(root / "task.json"), "not a regular file"),
        (lambda root: edit(root / "task.json", '"params": {}', '"params": {"k": NaN}'), "params"),
        (lambda root: edit(root / "task.json", '"gold": 0.8', '"gold": NaN'), "gold"),
        (lambda root: root.rename(root.with_name("renamed")), "not the task's id"),
    ],
)
def test_a_broken_folder_is_told_with_path_and_reason(tmp_path: Path, damage, reason: str) -> None:
    task = small(tmp_path / "c")
    damage(task.root)
    root = next(path for path in (tmp_path / "c").iterdir())
    with pytest.raises(TaskError, match=reason) as caught:
        open_task(root)
    assert str(root) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("private/spec.json", lambda task: task.spec),
        ("private/solutions/00-a.py", lambda task: task.solutions()),
        ("public/description.md", lambda task: task.description),
    ],
)
@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_files_that_cannot_be_read_are_told(tmp_path: Path, name: str, use, content) -> None:
    task = small(tmp_path / "c", solutions={"00-a": "print(1)"})
    path = task.root / name
    path.unlink(missing_ok=True)
    if content is None:
        path.symlink_to(task.private / "answer.csv")
    else:
        path.write_bytes(content)
    with pytest.raises(TaskError, match=path.name):
        use(task)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path).root / "task.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(TaskError, match="schema_version"):
        open_task(path.parent)


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    small(tmp_path)
    with pytest.raises(UsageError, match="is there already"):
        small(tmp_path)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil"])
def test_files_cannot_leave_the_folder(tmp_path: Path, name: str) -> None:
    card = small(tmp_path / "a").card
    with pytest.raises(UsageError, match="not a path below"):
        write_task(tmp_path / "b", card, {name: b""})
    assert list((tmp_path / "b").iterdir()) == []


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    card = small(tmp_path / "a").card

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_task(tmp_path / "b", card, {"public/x": b"", "private/y": b""})
    assert list((tmp_path / "b").iterdir()) == []


def test_a_killed_writer_leaves_nothing_that_loads(tmp_path: Path) -> None:
    """Kill a process that writes task after task; whatever is visible must be whole."""
    script = (
        "import sys, itertools\nfrom pathlib import Path\nsys.path.insert(0, 'tests')\n"
        "from build import build_task\n"
        f"out = Path({str(tmp_path)!r})\n"
        "for i in itertools.count():\n"
        f"    build_task(out, {ANSWERS!r}, classes=('0', '1'), task_id=f't{{i}}')\n"
        "    print(i, flush=True)\n"
    )
    root = Path(__file__).parents[2]
    for wait in (0.0, 0.003, 0.007, 0.011):
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        visible = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
        assert visible
        for path in visible:
            assert open_task(path).faults() == []
            shutil.rmtree(path)
