import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from build import FAMILY, SEED, build_task

from sandmle.errors import TaskError, UsageError
from sandmle.factory import regenerate
from sandmle.factory.deep import check_deep
from sandmle.factory.mix import Mix, Stratum
from sandmle.factory.pipeline import generate
from sandmle.factory.plan import plan, task_id
from sandmle.factory.stream import Stream
from sandmle.files import lock
from sandmle.tasks.corpus import Corpus, open_corpus
from sandmle.tasks.folder import Task, open_task


def same(first: Path, second: Path) -> bool:
    compared = filecmp.dircmp(first, second)
    return not compared.left_only + compared.right_only and all(
        filecmp.cmp(a, second / a.relative_to(first), shallow=False)
        for a in first.rglob("*")
        if a.is_file()
    )


def test_a_task_folder_has_the_promised_files(task: Task) -> None:
    names = {p.relative_to(task.root).as_posix() for p in task.root.rglob("*") if p.is_file()}
    public = {"description.md", "train.csv", "test.csv", "sample_submission.csv"}
    rungs = ("00-dummy", "20-linear", "30-neighbours", "40-forest", "45-kernel", "50-boosting")
    private = {
        "spec.json", "answer.csv", "threshold.json", "evaluator.py", "generate_task_env.py",
        "verification.json", "solutions/60-tuned.py", "solutions/90-reference.py",
        *(f"solutions/{rung}.py" for rung in rungs),
    }  # fmt: skip
    expected = {f"public/{n}" for n in public} | {f"private/{n}" for n in private} | {"task.json"}
    assert names == expected
    card = (task.root / "task.json").read_text()
    assert "interaction" not in card
    assert task.spec.hidden_rule_logic not in card
    thresholds = json.loads((task.private / "threshold.json").read_text())
    assert sorted(thresholds) == [
        "bronze_threshold", "gold_threshold", "median_threshold", "silver_threshold",
    ]  # fmt: skip
    verification = json.loads((task.private / "verification.json").read_text())
    assert all(check["passed"] for check in verification["checks"])
    assert all({"value", "limit", "name"} <= set(check) for check in verification["checks"])
    assert verification["sound"] is task.card.sound is True
    assert len(task.spec.mutations) == 3


def test_train_has_the_promised_size(corpus: Corpus) -> None:
    for one in corpus:
        rows = len((one.public / "train.csv").read_text().splitlines()) - 1
        assert rows == one.spec.final_dimensions.n_samples
        assert 50 <= rows <= 200


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(corpus: Corpus, tmp_path: Path) -> None:
    again = generate(tmp_path / "two", 2, SEED, FAMILY, workers=1)
    assert again.root_hash == corpus.root_hash
    assert same(corpus.root, again.root)
    index = (again.root / "corpus.json").read_bytes()
    generate(again.root, 2, SEED, FAMILY)
    assert (again.root / "corpus.json").read_bytes() == index, "doing it again changes nothing"


@pytest.mark.slow
def test_the_sandbox_is_chosen_and_does_not_move_the_bytes(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (made,) = generate(tmp_path / "one", 1, SEED, FAMILY, sandbox="bare", workers=1)
    assert "sandbox 'bare'" in caplog.text
    assert same(made.root, corpus.get(made.id).root)


def test_neighbouring_seeds_share_nothing() -> None:
    wanted = Stratum("interaction", "mcc", 2, None)
    plans = [
        plan(seed, slot, attempt, wanted)
        for seed in range(4)
        for slot in range(4)
        for attempt in range(4)
    ]
    configs = {json.dumps(one.recipe.config, sort_keys=True) for one in plans}
    assert len(configs) == len({one.task_id for one in plans}) == 64
    assert all(task_id(*one.seed, None) == one.task_id for one in plans)


def test_the_stub_rebuilds_the_shipped_data(task: Task, tmp_path: Path) -> None:
    script = task.private / "generate_task_env.py"
    assert len(script.read_text().splitlines()) <= 14
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path / "same")], check=True)
    for name in ("train.csv", "test.csv", "sample_submission.csv", "description.md"):
        assert (tmp_path / "same" / name).read_bytes() == (task.public / name).read_bytes()
    answer = (tmp_path / "same" / "answer.csv").read_bytes()
    assert answer == task.answer_path.read_bytes()


def test_the_stub_draws_fresh_rows(task: Task, tmp_path: Path) -> None:
    spec = task.private / "spec.json"
    options = ["--out", str(tmp_path / "a"), "--seed", "5", "--n-train", "30", "--n-test", "40"]
    regenerate.main(spec, options)
    regenerate.main(spec, [*options[:1], str(tmp_path / "b"), *options[2:]])
    first = (tmp_path / "a" / "test.csv").read_text()
    assert first == (tmp_path / "b" / "test.csv").read_text()
    assert len(first.splitlines()) == 41
    assert len((tmp_path / "a" / "train.csv").read_text().splitlines()) == 31
    shipped = {
        line.split(",", 1)[1] for line in (task.public / "test.csv").read_text().splitlines()
    }
    fresh = {line.split(",", 1)[1] for line in first.splitlines()}
    assert len(shipped & fresh) == 1, "only the header"


@pytest.mark.parametrize(
    "options",
    [
        ["--n-train", "0"],
        ["--n-test", "90000"],
        ["--n-test", "-1"],
        ["--seed", "-1"],
        ["--out", "FILE"],
    ],
)
def test_the_stub_refuses_what_cannot_be(task: Task, tmp_path: Path, options, capsys) -> None:
    (tmp_path / "f").write_text("x")
    given = [str(tmp_path / "f") if option == "FILE" else option for option in options]
    with pytest.raises(SystemExit) as caught:
        regenerate.main(task.private / "spec.json", ["--out", str(tmp_path / "out"), *given])
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "at least one"),
        ({"seed": -1}, "whole number from 0 up"),
        ({"workers": 0}, "takes at least one"),
        ({"policy": "paper30"}, "did you mean 'paper20'"),
        ({"thresholds": "papers"}, "did you mean 'paper'"),
        ({"mix": Mix(levels=(7,))}, "levels go from 1 to 5"),
        ({"family": "interactions"}, "did you mean 'interaction'"),
        ({"sandbox": "cool"}, "did you mean 'cold'"),
    ],
)
def test_impossible_requests_are_refused_before_any_work(
    tmp_path: Path, options: dict, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        generate(tmp_path / "out", **{"n": 1, **options})
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_tasks_is_refused(tmp_path: Path) -> None:
    build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1"))
    with pytest.raises(UsageError, match="'small-task', which is not of this corpus"):
        generate(tmp_path, n=1)


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    (tmp_path / "page.html").write_text("what `sandmle view` leaves is not in the way")
    with pytest.raises(UsageError, match=r"'thesis\.tex', which is not of this corpus"):
        generate(tmp_path, n=1)


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    with lock(tmp_path), pytest.raises(UsageError, match="another process is writing"):
        generate(tmp_path, n=1)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be written"):
        generate(tmp_path / "file" / "out", n=1)


def test_it_goes_on_after_kill_9(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "two"
    code = (
        "from pathlib import Path\nfrom sandmle import generate\n"
        f"generate(Path({str(out)!r}), 2, {SEED}, {FAMILY!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ})
    while not list(out.glob("*/task.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = next(out.glob("*/task.json"))
    written = first.stat().st_mtime_ns
    resumed = generate(out, 2, SEED, FAMILY)
    assert first.stat().st_mtime_ns == written, "what was done is not done again"
    assert resumed.root_hash == corpus.root_hash
    shutil.rmtree(out)


def test_a_killed_parent_leaves_no_worker(tmp_path: Path) -> None:
    """The workers' input ends with their parent, and so do they, and their sandboxes."""
    out = tmp_path / "two"
    code = (
        f"from pathlib import Path\nfrom sandmle import generate\ngenerate(Path({str(out)!r}), 6)"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        workers = until(lambda: len(found := descendants(process.pid)) >= 4 and found)
    finally:
        process.kill()
        process.wait()
    until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}").exists()])


def descendants(pid: int) -> list[int]:
    """Return the processes that descend from one; those that end meanwhile are left out."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def until(condition, seconds: float = 30):
    """Wait for something to become true, and return it."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return value


def test_another_job_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    generate(tmp_path, 1, SEED, FAMILY, workers=1)
    for options in ({"seed": SEED + 1}, {"mix": Mix(levels=(1,))}, {"policy": "paper20"}):
        with pytest.raises(UsageError, match="another seed, mix or policy"):
            generate(tmp_path, **{"n": 1, "seed": SEED, "family": FAMILY, **options})


def test_a_slot_that_cannot_be_filled_is_told(tmp_path: Path, monkeypatch) -> None:
    """With impossible limits the gate refuses everything, and says what it was."""
    monkeypatch.setattr("sandmle.factory.gate.MIN_GAP_SE", 1e9)
    monkeypatch.setattr("sandmle.factory.slot.MAX_ATTEMPTS", 2)
    with pytest.raises(TaskError, match=r"slot 0 \(interaction, .*: 2 x milestones_apart_in_se"):
        generate(tmp_path / "out", 1, SEED, FAMILY, workers=1)
    assert not list((tmp_path / "out").glob("*/task.json"))


def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """Files may not grow beyond 20 kB, which is how a full disk looks to whoever writes."""
    code = (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from pathlib import Path\nfrom sandmle import generate\n"
        "import sandmle.tasks.folder as folder\n"
        "write = folder._write\n"
        "def limited(*args):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
        "    try:\n        write(*args)\n    finally:\n"
        "        hard = resource.RLIM_INFINITY\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "folder._write = limited\n"
        f"generate(Path('out'), 1, {SEED}, {FAMILY!r}, workers=1)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "UsageError: out: cannot be written" in result.stderr, result.stderr
    assert [p.name for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")] == []


def test_the_papers_way_is_marked_as_unsound(tmp_path: Path) -> None:
    options = {"policy": "paper20", "thresholds": "paper", "workers": 1}
    (made,) = generate(tmp_path, 1, 1, "polar_longtail", **options)
    rows = made.spec.final_dimensions
    assert rows.n_test == max(10, round(0.2 * rows.n_samples))
    assert made.card.sound is False
    record = json.loads((made.private / "verification.json").read_text())
    checks = {check["name"]: check["passed"] for check in record["checks"]}
    assert record["sound"] is False
    assert checks["paper_monotone"] is checks["control_oracle"] is True
    assert checks["milestones_apart_in_se"] is False
    milestones = {rung.name: rung.test for rung in made.card.ladder}
    assert made.card.milestones.silver == milestones["forest"]
    assert made.card.milestones.bronze == milestones["linear"]
    assert "examined" not in made.description, "the answers are as noisy as the rest"


def test_held_out_families_are_a_split_of_their_own(tmp_path: Path) -> None:
    mix = Mix(families={"interaction": 1, "regime": 1}, holdout=("regime",))
    corpus = generate(tmp_path, 2, 0, mix=mix, validation=0.5)
    (held,) = corpus.split("ood")
    assert held.spec.provenance.source.startswith("family regime")
    rest = [*corpus.split("train"), *corpus.split("val")]
    assert [task.spec.provenance.source.split(",")[0] for task in rest] == ["family interaction"]


def test_a_stream_is_the_corpus_without_end(corpus: Corpus, tmp_path: Path) -> None:
    stream = Stream(SEED, Mix(families={FAMILY: 1}), tmp_path)
    tasks = [task for task, _ in zip(stream, range(2), strict=False)]
    assert {task.content_hash for task in tasks} == {task.content_hash for task in corpus}
    assert [task.id for task, _ in zip(stream, range(2), strict=False)] == [t.id for t in tasks]
    (first,) = [task for task, _ in zip(Stream(SEED, Mix(families={FAMILY: 1})), [0], strict=False)]
    assert first.content_hash == tasks[0].content_hash


def test_a_deep_check_makes_the_task_again(corpus: Corpus, tmp_path: Path, sandbox) -> None:
    copy = shutil.copytree(corpus[0].root, tmp_path / corpus[0].id)
    checks = check_deep(open_task(copy), sandbox)
    assert {c.name: c.passed for c in checks if not c.passed} == {}
    assert {"rebuilt", "ladder_again", "milestones_again", "checks_again"} <= {
        c.name for c in checks
    }
    card = json.loads((copy / "task.json").read_text())
    card["milestones"]["gold"] += 0.01
    card["ladder"][1]["test"] += 0.01
    card["files"]["public/train.csv"] = "0" * 64
    (copy / "task.json").write_text(json.dumps(card))
    found = {c.name: c for c in check_deep(open_task(copy), sandbox) if c.passed is False}
    assert set(found) == {"rebuilt", "ladder_again", "milestones_again"}
    assert "public/train.csv" in found["rebuilt"].detail
    assert "linear on test" in found["ladder_again"].detail


def test_a_task_without_recipe_cannot_be_rebuilt(tmp_path: Path, sandbox) -> None:
    (check,) = check_deep(build_task(tmp_path, "id,label\na,1\nb,0\n", classes=("0", "1")), sandbox)
    assert check.passed is None


def test_the_index_tells_how_the_corpus_was_made(corpus: Corpus) -> None:
    index = open_corpus(corpus.root).index
    assert index.root_hash == corpus.root_hash
    assert index.seed == SEED
    rejected = sum(n for name, n in index.funnel.items() if name.startswith("rejected: "))
    assert index.funnel["accepted"] == 2
    assert index.funnel["attempts"] == 2 + rejected
    assert sorted(i for ids in index.splits.values() for i in ids) == [t.id for t in corpus]
