"""The command line as a person meets it: a real process, its output and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from build import build_task

import sandmle
from sandmle.tasks.corpus import Corpus

ANSWERS = "id,label\na,1\nb,0\n"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sandmle.cli.app", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    code = f"open('submission.csv', 'w').write({ANSWERS!r})\n"
    solutions = {"90-reference": code}
    return build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), solutions=solutions).root


def test_list_show_check(corpus: Corpus) -> None:
    listed = run("tasks", "list", corpus.root)
    assert listed.returncode == 0
    assert all(task.id in listed.stdout for task in corpus)
    assert "\x1b" not in listed.stdout, "plain lines where there is no terminal"

    shown = run("tasks", "show", corpus.root, corpus[0].id)
    assert corpus[0].card.title in shown.stdout
    assert "reference" in shown.stdout
    assert corpus[0].spec.hidden_rule_logic not in shown.stdout

    checked = run("tasks", "check", corpus.root, "--json")
    assert checked.returncode == 0, checked.stdout
    report = json.loads(checked.stdout)
    assert report["ok"] is True
    assert [one["id"] for one in report["tasks"]] == [task.id for task in corpus]
    for check in report["tasks"][0]["checks"]:
        assert set(check) == {"name", "passed", "value", "limit", "detail"}


def test_a_deep_check_says_what_it_found(corpus: Corpus, small: Path) -> None:
    checked = run("tasks", "check", corpus.root, corpus[0].id, "--deep", "--json")
    assert checked.returncode == 0, checked.stdout
    (report,) = json.loads(checked.stdout)["tasks"]
    found = {check["name"]: check["passed"] for check in report["checks"]}
    assert found["rebuilt"] is found["ladder_again"] is found["files_unchanged"] is True
    (report,) = json.loads(run("tasks", "check", small, "--deep", "--json").stdout)["tasks"]
    assert {c["name"]: c["passed"] for c in report["checks"]}["rebuilt"] is None


def test_json_is_one_object_on_stdout(corpus: Corpus, small: Path) -> None:
    listed = json.loads(run("tasks", "list", corpus.root, "--json").stdout)
    assert [one["id"] for one in listed["tasks"]] == [task.id for task in corpus]
    assert [one["sound"] for one in listed["tasks"]] == [True, True]
    shown = json.loads(run("tasks", "show", small, "--json").stdout)
    assert shown["id"] == "small-task"
    assert len(shown["content_hash"]) == 64
    facts = json.loads(run("doctor", "--json").stdout)
    assert facts["ok"] is True
    assert {"sandbox cold", "python", "torch"} <= {fact["name"] for fact in facts["facts"]}


def test_grade(small: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(ANSWERS)
    bad.write_text("id,label\na,1\n")
    graded = run("grade", small, good)
    assert (graded.returncode, graded.stdout) == (0, "score 1: median, bronze, silver, gold\n")
    refused = run("grade", small, bad)
    assert refused.returncode == 1
    assert refused.stdout.startswith("invalid: the ids must be those of the test rows")
    verdict = json.loads(run("grade", small, tmp_path / "no.csv", "--json").stdout)
    assert (verdict["status"], verdict["score"]) == ("missing", None)


def test_a_damaged_task_fails_the_check(small: Path) -> None:
    (small / "public" / "train.csv").write_text("changed")
    checked = run("tasks", "check", small)
    assert checked.returncode == 1
    assert "files_unchanged" in checked.stdout
    (small / "task.json").write_text("{")
    broken = run("tasks", "check", small.parent, "--json")
    assert broken.returncode == 1
    (report,) = json.loads(broken.stdout)["tasks"]
    assert (report["id"], report["ok"]) == ("small-task", False)
    (check,) = report["checks"]
    assert (check["name"], check["passed"], check["value"]) == ("folder", False, None)
    assert "task.json" in check["detail"]
    assert "broken:" in broken.stderr


def test_rollout_and_view(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    played = run("rollout", small, "--out", out, "--group", "2", "--policy", "scripted:reference")
    assert played.returncode == 0, played.stderr
    assert "mean reward  1     -" in played.stdout, "one task has no interval"
    assert played.stderr.count("reward 1") == 2
    again = run("rollout", "--config", out / "config.toml", "--out", out, "--json")
    assert json.loads(again.stdout)["complete"] is True
    viewed = run("view", out)
    assert viewed.stdout.strip() == str(out / "page.html")
    assert (out / "page.html").exists()
    page = tmp_path / "task.html"
    assert run("view", small, "--out", page).stdout.strip() == str(page)
    assert "small-task" in page.read_text()
    both = run("view", out, small, "--out", page)
    assert (both.returncode, both.stdout) == (2, "")
    assert "only runs can be compared" in both.stderr


def test_seeds_are_listed_and_made_from_data(tmp_path: Path) -> None:
    listed = json.loads(run("seeds", "list", "--json").stdout)["seeds"]
    assert len(listed) == 60
    assert listed[0]["metric"] == "order_tau"
    rows = "".join(f"{i},{i * i % 13},{'uv'[i % 2]}\n" for i in range(30))
    (tmp_path / "own.csv").write_text(f"id,zebrafinch,kind\n{rows}")
    to = tmp_path / "seeds.json"
    made = run("seeds", "from-data", tmp_path / "own.csv", "--target", "kind", "--to", to, "--json")
    dna = json.loads(made.stdout)
    assert (dna["modality"], dna["target_info"]["cardinality"]) == ("tabular", 2)
    assert "zebrafinch" not in made.stdout
    assert json.loads(to.read_text())["seeds"][0]["dna"] == dna


def test_dry_run_prints_a_configuration_that_can_be_fed_back(small: Path, tmp_path: Path) -> None:
    first = run("rollout", small, "--set", "env.max_turns=3", "--dry-run", "--out", tmp_path / "r")
    assert first.returncode == 0
    assert "max_turns = 3" in first.stdout
    (tmp_path / "c.toml").write_text(first.stdout)
    assert run("rollout", "-c", tmp_path / "c.toml", "--dry-run").stdout == first.stdout
    assert not (tmp_path / "r").exists()
    as_json = run("rollout", small, "--set", "env.max_turns=3", "--dry-run", "--json")
    assert json.loads(as_json.stdout)["env"]["max_turns"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tasks", "list", "nothing"], "no such folder"),
        (["rollout", "nothing"], "no such folder"),
        (["rollout"], "no corpus given"),
        (["rollout", "nothing", "--set", "env.max_turn=3"], "did you mean 'max_turns'"),
        (["rollout", "nothing", "--set", "reward.weights={gold=0.5}"], "mode and weights"),
        (["view", "nothing"], "holds no run"),
        (["grade", "nothing", "s.csv"], "no such folder"),
        (["rollout", "nothing", "--set", ".a=1"], "write it as section.key=value"),
        (["train", "grpo", "nothing"], "cannot be trained; give --policy"),
        (["train", "grpo", "nothing", "--policy", "tiny:x", "--dry-run"], "must be a number"),
        (["generate", "out", "--n", "0"], "at least one"),
        (["generate", "out", "--family", "interactoin"], "did you mean 'interaction'"),
        (["generate", "out", "--sandbox", "cool"], "did you mean 'cold'"),
        (
            ["generate", "out", "--modality", "smell"],
            "unknown modality 'smell'; Known: audio, graph",
        ),
        (["generate", "out", "--level", "hard"], "levels are whole numbers"),
        (["generate", "out", "--level", "9"], "levels go from 1 to 5"),
        (["generate", "out", "--mix", "no.toml"], "no.toml: cannot be read"),
        (["generate", "out", "--seeds", "no.json"], "no.json: cannot be read"),
        (["generate", "out", "--seeds", "leaf-classification"], "--force takes it all the same"),
        (["generate", "out", "--factory", "magic"], "procedural, llm or hybrid"),
        (["generate", "out", "--factory", "llm"], "--seeds"),
        (
            ["generate", "out", "--factory", "llm", "--seeds", "mle-bench", "--model", "gpt"],
            "write it as replay:example, openai:MODEL or hf:PATH",
        ),
        (["seeds", "show", "spaceship-titanik"], "did you mean 'spaceship-titanic'"),
        (["seeds", "from-data", "no.csv", "--target", "y"], "no.csv: cannot be read"),
        (["generate", "out", "--test-policy", "small"], "Known: adaptive, paper20"),
        (["generate", "out", "--thresholds", "medals"], "Known: anchors, paper"),
        (["generate", "out", "--workers", "0"], "at least one"),
        (["generate", "out", "--holdout-families", "forests"], "unknown family 'forests'"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_missing_submission_is_named(small: Path, tmp_path: Path) -> None:
    assert "there is no nope.csv" in run("grade", small, tmp_path / "nope.csv").stdout
    (tmp_path / "link.csv").symlink_to(small / "public" / "sample_submission.csv")
    assert "is a link; give the file itself" in run("grade", small, tmp_path / "link.csv").stdout


def test_a_file_where_a_folder_should_be_is_status_2(small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        result = run("rollout", small, "--out", out)
        assert result.returncode == 2, result.stderr
        assert f"{out}: cannot be written" in result.stderr


def test_version() -> None:
    assert run("--version").stdout == f"{sandmle.__version__}\n"


def test_a_terminal_without_unicode(small: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "sandmle.cli.app", "grade", str(small)]
    command.append(str(tmp_path / "größe.csv"))
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 1
    assert "gr\\xf6\\xdfe.csv" in result.stdout


def test_a_broken_task_is_status_1(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "task.json").write_text("{}")
    result = run("grade", tmp_path / "t", tmp_path / "s.csv")
    assert result.returncode == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_training_without_its_packages_says_what_to_install(small: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\nfrom sandmle.cli import app\n"
        f"sys.argv = ['sandmle', 'train', 'grpo', {str(small)!r}, '--policy', 'tiny:0',"
        f" '--out', {str(tmp_path / 'run')!r}]\napp.main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "pip install 'sandmle[train]'" in result.stderr
    assert not (tmp_path / "run").exists()


def test_unknown_options_are_status_2() -> None:
    assert run("rollout", "--no-such-option").returncode == 2
    assert run("no-such-command").returncode == 2
