"""Field reports on evaluation, each with the smallest input that shows it."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from build import build_task
from llm.faulty_server import chat, serving
from small import write_run

from sandmle.config import load_config
from sandmle.errors import TaskError
from sandmle.llm.scripted import Scripted
from sandmle.report.conditions import conditions_table, repeats
from sandmle.report.graded import graded_table
from sandmle.report.paired import compare
from sandmle.report.paper import write_report
from sandmle.report.runs import read_run
from sandmle.report.tables import Grid, paper_tables
from sandmle.report.view import write_view
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.runner import run_rollout

ANSWERS = "id,label\na,1\nb,0\nc,1\nd,0\n"
WRITE = "open('submission.csv', 'w').write({!r})"
SUBMIT = "<think>done</think>\n<submit/>"


def code(text: str) -> str:
    return f"<think>so</think>\n```python\n{text}\n```"


def row(grid: Grid, number: int = 0) -> dict[str, str]:
    return dict(zip(grid.header, grid.rows[number], strict=True))


def sandmle(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    command = [sys.executable, "-m", "sandmle.cli.app", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


# --- FR-53: failed runs leave the denominator -----------------------------------------------------


def test_fr53_ten_tasks_with_three_failures_of_ours_show_twenty_percent(tmp_path: Path) -> None:
    # 2 medals, 5 honest failures, 2 evaluator crashes, 1 outage of the model's server
    ends = [0.9, 0.5, *[0.1] * 5, "grader", "grader", "model"]
    run = read_run(write_run(tmp_path / "r", {f"t{n}": [one] for n, one in enumerate(ends)}))
    (grid,) = paper_tables([run])
    found = row(grid)
    assert found["n"] == "10"
    assert found["Any medal"].startswith("20.0 ")
    assert found["Our failures"] == "2 grader_error, 1 model_error"
    assert found["Any medal without them"].startswith("28.6 ")
    assert "Incomplete: r" in grid.note


def test_fr53_a_repeat_that_lacks_tasks_is_not_averaged_in(tmp_path: Path) -> None:
    # two whole repeats with rates 1/2 and 0; a third has played one task only, and won it
    outcomes = {"t0": [0.9, 0.1, 0.9], "t1": [0.1, 0.1]}
    run = read_run(write_run(tmp_path / "r", outcomes))
    assert repeats(run) == (2, 1, 0.25, 0.25)  # the deviation of (1/2, 0) over the root of two
    found = row(conditions_table([run]))
    assert found["Repeats"] == "2 (and 1 not whole)"
    assert found["Any medal by repeat"] == "25.0 ± 25.0"


def test_fr53_a_comparison_says_which_run_is_incomplete(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "a", {f"t{n}": [0.9] for n in range(6)})
    failed = write_run(tmp_path / "b", {f"t{n}": [0.9 if n else "infra"] for n in range(6)})
    said = sandmle("bench", "compare", whole, failed)
    assert said.returncode == 0
    assert said.stderr == f"incomplete: {failed} lacks episodes, or some of them failed\n"


# --- FR-54: temperature 0 is not repeatable -------------------------------------------------------


def test_fr54_one_task_more_is_no_improvement(tmp_path: Path) -> None:
    tasks = [f"t{n:02d}" for n in range(22)]
    base = {task: [0.9 if n < 5 else 0.1] for n, task in enumerate(tasks)}
    a = read_run(write_run(tmp_path / "a", base))
    b = read_run(write_run(tmp_path / "b", {**base, "t05": [0.9]}))
    found = {one.name: one for one in compare(a, b).figures}
    assert found["any_medal"].difference.estimate == pytest.approx(1 / 22)
    assert found["any_medal"].verdict == "no difference shown"


def test_fr54_the_report_says_how_each_run_was_made(tmp_path: Path) -> None:
    """The same evaluation with 1 and with 16 episodes at once, of a server that names itself."""
    replies = [code(WRITE.format(ANSWERS)), SUBMIT]
    for name in ("one", "two"):
        build_task(tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=name)

    def answer(request: dict) -> dict:
        text = replies[sum(m["role"] == "assistant" for m in request["messages"])]
        return chat(text, model="tiny-2026", system_fingerprint="fp_17")

    for concurrency in (1, 16):
        with serving(*[answer] * 12) as server:
            played = sandmle(
                *("rollout", tmp_path / "c", "--out", tmp_path / f"with-{concurrency}"),
                *("--policy", "openai:tiny", "--group", 3, "--concurrency", concurrency),
                *("--set", "policy.temperature=0.0", "--set", "sandbox.preload=none"),
                OPENAI_BASE_URL=server.url,
            )
        assert played.returncode == 0, played.stderr
    grid = conditions_table([read_run(tmp_path / f"with-{n}") for n in (1, 16)])
    assert [row(grid, n)["Concurrency"] for n in (0, 1)] == ["1", "16"]
    for n in (0, 1):
        found = row(grid, n)
        assert (found["Seed"], found["Temperature"], found["Repeats"]) == ("0", "0", "3")
        assert found["Server"] == "tiny-2026 fp_17"
        assert found["Any medal by repeat"] == "100.0 ± 0.0"
        assert found["Feedback"] == "validity"
    assert "Fewer than" not in grid.note
    once = write_run(tmp_path / "once", {"t0": [0.9]})
    assert "Fewer than 3 repeats: once" in conditions_table([read_run(once)]).note


def test_fr54_no_document_promises_the_same_text_twice() -> None:
    docs = Path(__file__).parents[2] / "docs" / "evaluation.md"
    assert "Temperature 0 is not repeatable" in docs.read_text()


# --- FR-55: which file is graded ------------------------------------------------------------------

# the third reply leaves a valid file, the seventh overwrites it with its header only
OVERWRITES = [
    *[code("print('looking')")] * 2,
    code(WRITE.format(ANSWERS)),
    *[code("print('thinking')")] * 3,
    code(WRITE.format("id,label\n")),
    SUBMIT,
]


class Overwrites:
    """Writes a good file, spoils it, and submits."""

    def __init__(self, argument: str, section: object) -> None:
        self.name = f"overwrites:{argument}"

    def open(self, task: object, seed: int, k: int) -> Scripted:
        return Scripted(OVERWRITES)

    def close(self) -> None:
        pass


POLICIES.add("overwrites", Overwrites)


@pytest.mark.parametrize(
    ("finalize", "turn", "status", "note"),
    [
        ("last", 7, "invalid", "valid earlier, not at the end"),
        ("last_valid", 3, "ok", ""),
    ],
)
def test_fr55_the_report_names_the_graded_file(
    tmp_path: Path, finalize: str, turn: int, status: str, note: str
) -> None:
    build_task(tmp_path / "c", ANSWERS, classes=("0", "1"))
    settings = [
        *(f"corpus.path='{tmp_path / 'c'}'", "group=1", "policy.name='overwrites:x'"),
        "sandbox.preload=none",
    ]
    out = tmp_path / "run"
    run_rollout(load_config(None, [*settings, f"env.finalize='{finalize}'"]), out)
    found = row(graded_table([read_run(out)]))
    text = ANSWERS if finalize == "last_valid" else "id,label\n"
    assert (found["Turn"], found["Bytes"]) == (str(turn), str(len(text)))
    assert (found["Grade"], found["Note"]) == (status, note)
    (line,) = (out / "trajectories.jsonl").read_text().splitlines()
    whole = json.loads(line)["turns"][turn - 1]["submission_sha256"]
    assert found["SHA-256"] == whole[:12]
    page = write_view([out]).read_text()
    assert f"the file that turn {turn} wrote (SHA-256 {whole[:12]}" in page
    assert f", {len(text)} bytes)." in page
    assert ("was there after turn 6, but not at the end" in page) == (finalize == "last")
    assert row(conditions_table([read_run(out)]))["Finalize"] == finalize


# --- FR-56: NaN makes the report unreadable -------------------------------------------------------


def strict(text: str) -> object:
    return json.loads(text, parse_constant=pytest.fail)


def test_fr56_an_undefined_score_is_null_with_a_reason(tmp_path: Path) -> None:
    """One task has rows of a single class only: the area under its curve does not exist."""
    one_class, two_classes = "id,label\na,1\nb,1\nc,1\n", "id,label\na,1\nb,0\nc,1\n"
    program = WRITE.format("id,label\na,0.5\nb,0.1\nc,0.9\n")
    for name, answers in (("undefined", one_class), ("defined", two_classes)):
        build_task(
            tmp_path / "c", answers, "roc_auc", ("label",), task_id=name,
            solutions={"90-reference": program},
        )  # fmt: skip
    out = tmp_path / "run"
    played = sandmle(
        "rollout",
        tmp_path / "c",
        "--out",
        out,
        "--group",
        1,
        "--json",
        "--set",
        "sandbox.preload=none",
    )
    assert played.returncode == 1, "an episode could not be scored"
    strict(played.stdout)
    for path in out.rglob("*.json*"):
        for text in (
            path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        ):
            strict(text)
    found = {t.task_id: t for t in read_run(out).trajectories}
    undefined = found["undefined"].grade
    assert (undefined.status, undefined.score) == ("grader_error", None)
    assert "all hidden answers are the same" in undefined.reason
    assert found["defined"].grade.score == 1.0
    reported = sandmle("report", out, "--out", tmp_path / "report", "--json")
    assert reported.returncode == 0, reported.stderr
    strict(reported.stdout)
    compared = sandmle("bench", "compare", out, out, "--json")
    strict(compared.stdout)
    for path in (tmp_path / "report").glob("*.md"):
        assert not re.search(r"\b(nan|inf)\b", path.read_text(), re.IGNORECASE)


@pytest.mark.parametrize("name", ["metrics.jsonl", "validation.jsonl", "human_rank.json"])
def test_fr56_a_file_with_a_bare_nan_is_named(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "r", {"t0": [0.9]})
    (run / name).write_text('{"step": 1, "reward": NaN}\n')
    with pytest.raises(TaskError, match=re.escape(name)):
        write_report([run], tmp_path / "report")


# --- FR-57: what is expected is quiet, and what failed says how to see it -------------------------


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        build_task(
            tmp_path / "c", ANSWERS, classes=("0", "1"), task_id=name,
            solutions={"90-reference": WRITE.format(ANSWERS)},
        )  # fmt: skip
    return tmp_path / "c"


def test_fr57_the_limit_of_the_context_is_a_line_and_a_count(tasks: Path, tmp_path: Path) -> None:
    long = chat(code("print('x' * 20_000)"))
    with serving(long, long) as server:
        played = sandmle(
            *("rollout", tasks, "--out", tmp_path / "run", "--policy", "openai:tiny"),
            *("--group", 1, "--set", "sandbox.preload=none", "--set", "env.context_tokens=1000"),
            OPENAI_BASE_URL=server.url,
        )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["stop_reasons"] == {"context_limit": 2}
    assert played.returncode == 0, "an episode that is too long is over, not broken"
    assert "[1/2] " in played.stderr
    assert "ended: 2 context_limit" in played.stderr
    assert "rror" not in played.stderr


def test_fr57_a_failure_is_shown_with_its_task_its_seed_and_the_command(
    tasks: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serving(*[(500, "no such adapter")] * 2) as server:
        played = sandmle(
            *("rollout", tasks, "--out", out, "--policy", "openai:tiny", "--group", 1),
            *("--set", "policy.retries=0", "--set", "sandbox.preload=none"),
            OPENAI_BASE_URL=server.url,
        )
    assert played.returncode == 1
    seed = {t.task_id: t.seed for t in read_run(out).trajectories}["one"]
    assert f"first failure: one.0 (task one, seed {seed})" in played.stderr
    assert "no such adapter" in played.stderr
    command = re.search(r"its task alone: sandmle (.*)", played.stderr)
    assert command is not None
    replies = [code(WRITE.format(ANSWERS)), SUBMIT]
    with serving(*[chat(text) for text in replies]) as server:
        again = sandmle(*shlex.split(command[1]), OPENAI_BASE_URL=server.url)
    assert again.returncode == 0, again.stderr
    (replayed,) = read_run(Path(f"{out}-one")).trajectories
    assert (replayed.task_id, replayed.seed, replayed.grade.score) == ("one", seed, 1.0)


def test_fr57_a_model_that_is_not_there_is_one_line_before_any_work(
    tasks: Path, tmp_path: Path
) -> None:
    for policy in ("hf:nowhere/at-all", "replay:nothing.db"):
        played = sandmle("rollout", tasks, "--out", tmp_path / "run", "--policy", policy)
        assert played.returncode in (1, 2)
        assert len(played.stderr.splitlines()) == 1
        assert played.stderr.startswith("error: ")
        assert not (tmp_path / "run").exists()
