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
from build import SEED, build_task

from sandmle.errors import UsageError
from sandmle.factory import regenerate
from sandmle.factory.pipeline import generate, plan
from sandmle.files import lock
from sandmle.grading.grader import Grader
from sandmle.sandbox.base import Sandbox
from sandmle.tasks.corpus import Corpus, open_corpus
from sandmle.tasks.folder import Task
from sandmle.types import Limits


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
    private = {
        "spec.json", "answer.csv", "threshold.json", "evaluator.py", "generate_task_env.py",
        "verification.json", "solutions/00-dummy.py", "solutions/20-linear.py",
        "solutions/40-forest.py", "solutions/60-tuned.py", "solutions/90-reference.py",
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


def test_train_has_the_promised_size(corpus: Corpus) -> None:
    for one in corpus:
        rows = len((one.public / "train.csv").read_text().splitlines()) - 1
        assert rows == one.spec.final_dimensions.n_samples
        assert 50 <= rows <= 200


def test_the_ladder_earns_in_the_sandbox_what_the_card_says(task: Task, sandbox: Sandbox) -> None:
    """The rungs were measured with the pool behind the test rows; alone they give the same."""
    grader = Grader(task)
    for rung, solution in zip(task.card.ladder, task.solutions(), strict=True):
        workspace = sandbox.open(task.public, Limits())
        result = workspace.run(solution.code)
        assert result.status == "ok", result.stderr
        grade = grader.grade(workspace.read("submission.csv", 10**6))
        workspace.close()
        assert grade.score == pytest.approx(rung.test, rel=1e-4)
        assert grade.reached["gold"] is (rung.kind == "reference")
        if rung.kind == "dummy":
            assert not grade.reached["median"]


def test_the_same_seed_gives_the_same_bytes(corpus: Corpus, tmp_path: Path) -> None:
    again = generate(tmp_path / "two", n=2, seed=SEED, workers=1)
    assert again.root_hash == corpus.root_hash
    assert same(corpus.root, again.root)
    index = (again.root / "corpus.json").read_bytes()
    generate(again.root, n=2, seed=SEED)
    assert (again.root / "corpus.json").read_bytes() == index, "doing it again changes nothing"


def test_the_sandbox_is_chosen_and_does_not_move_the_bytes(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (made,) = generate(tmp_path / "one", n=1, seed=SEED, sandbox="bare")
    assert "sandbox 'bare'" in caplog.text
    assert same(made.root, corpus.get(made.id).root)


def test_neighbouring_seeds_share_nothing() -> None:
    plans = [
        plan(seed, slot, attempt, ["interaction"])
        for seed in range(4)
        for slot in range(4)
        for attempt in range(4)
    ]
    configs = {json.dumps(one.recipe.config, sort_keys=True) for one in plans}
    assert len(configs) == len({one.task_id for one in plans}) == 64


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
    "options", [["--n-train", "0"], ["--n-test", "-1"], ["--seed", "-1"], ["--out", "FILE"]]
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
        f"generate(Path({str(out)!r}), n=2, seed={SEED})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ})
    while not list(out.glob("*/task.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = next(out.glob("*/task.json"))
    written = first.stat().st_mtime_ns
    resumed = generate(out, n=2, seed=SEED)
    assert first.stat().st_mtime_ns == written, "what was done is not done again"
    assert resumed.root_hash == corpus.root_hash
    shutil.rmtree(out)


def test_the_index_tells_how_the_corpus_was_made(corpus: Corpus) -> None:
    index = open_corpus(corpus.root).index
    assert index.root_hash == corpus.root_hash
    assert index.seed == SEED
    rejected = sum(n for name, n in index.funnel.items() if name.startswith("rejected: "))
    assert index.funnel["accepted"] == 2
    assert index.funnel["attempts"] == 2 + rejected
    assert sorted(i for ids in index.splits.values() for i in ids) == [t.id for t in corpus]
