"""Competitions in MLE-Dojo's layout: opened, graded, played, and ranked on both boards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandmle.bench.dojoplay import grade_file, lay_out, mean_ranks, write_ranks
from sandmle.bench.facts import competitions, dojo_lists, dojo_metrics
from sandmle.bench.mledojo import grade_dojo, metric_of, names_of, open_competition, rank_score
from sandmle.bench.recipes import MLE_DOJO, recipe
from sandmle.config import load_config
from sandmle.errors import GradingError, UsageError
from sandmle.llm.scripted import Scripted
from sandmle.metrics.registry import METRICS
from sandmle.report.paper import write_report
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.runner import run_rollout

PRICES, CLASSES = "home-depot-product-search-relevance", "forest-cover-type-kernels-only"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".txt" if "description" in name else ".csv").write_text(text)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two competitions as MLE-Dojo prepares them: one of numbers, one of classes."""
    root = tmp_path / "data"
    write(
        root / PRICES / "data",
        public__description="How relevant is it?",
        public__train="id,x,relevance\nq,1,1\n",
        public__sample_submission="id,relevance\na,0\nb,0\nc,0\n",
        private__test_answer="id,relevance\na,1\nb,2\nc,3\n",
        private__private_leaderboard="rank,score\n1,0.1\n2,0.5\n3,2\n",
        private__public_leaderboard="rank,score\n1,0.6\n2,0.7\n",
    )
    write(
        root / CLASSES,  # without the folder in between, as some keep it
        public__description="Which tree?",
        public__train="Id,x,Cover_Type\nq,1,1\n",
        public__sample_submission="Id,Cover_Type\na,1\nb,1\nc,1\nd,1\n",
        private__test_answer="Id,Cover_Type\na,1\nb,2\nc,3\nd,1\n",
        private__public_leaderboard="rank,score\n1,0.9\n2,0.75\n3,0.5\n4,0.2\n",
    )
    return root


# every prediction is off by one half: RMSE 0.5, second of three and first of two
HALF_OFF = "id,relevance\nc,3.5\na,1.5\nb,2.5\n"
THREE_OF_FOUR = "Id,Cover_Type\nd,1\na,1\nb,2\nc,2\n"


def test_a_submission_is_ranked_on_both_boards(data: Path) -> None:
    one = open_competition(data / PRICES)
    grade = grade_dojo(HALF_OFF.encode(), one, "rmse")
    assert grade.score == 0.5
    assert grade.positions == {"private": pytest.approx(2 / 3), "public": 1.0}
    assert grade.human_rank == pytest.approx(5 / 6)
    paper = grade_dojo(HALF_OFF.encode(), one, "rmse", "paper")
    assert paper.human_rank == pytest.approx((1 / 3 + 1 / 2) / 2)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "id,relevance\na,1\nb,\nc,\n",  # the rows left out would not count there
        "id,relevance\na,1\nb,2\n",
        "id,relevance\na,1\nb,2\nc,inf\n",
    ],
)
def test_holes_of_the_original_are_closed(data: Path, text: str | None) -> None:
    content = None if text is None else text.encode()
    grade = grade_dojo(content, open_competition(data / PRICES), "rmse")
    assert grade.score is None
    assert grade.human_rank == 0.0
    assert grade.reason


def test_what_is_missing_or_does_not_fit_is_named(data: Path) -> None:
    one = open_competition(data / PRICES)
    with pytest.raises(UsageError, match="the board is the other way"):
        rank_score(0.5, one, "max")
    one.answers.write_text("id,relevance,more\na,1,1\nb,2,1\nc,3,1\n")
    with pytest.raises(UsageError, match="scores one column, the answers have relevance, more"):
        grade_dojo(HALF_OFF.encode(), one, "rmse")
    one.answers.write_text("id\na,b\n")
    with pytest.raises(GradingError, match="test_answer"):
        grade_dojo(HALF_OFF.encode(), one, "rmse")
    (one.root / "public" / "description.txt").unlink()
    with pytest.raises(UsageError, match=r"description\.txt: missing"):
        open_competition(data / PRICES)


def test_a_board_that_is_a_pointer_is_refused(data: Path) -> None:
    board = data / CLASSES / "private" / "public_leaderboard.csv"
    board.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(UsageError, match="git lfs pull"):
        lay_out(data, [CLASSES], data / "tasks")


# --- lists and metrics ----------------------------------------------------------------------------


def test_lists_have_the_known_sizes_and_members(data: Path) -> None:
    sizes = {name: len(names_of(data, name)) for name in ("evaluation", "training", "own")}
    assert sizes == {"evaluation": 51, "training": 151, "own": 62}
    assert not set(dojo_lists()["own"]) & set(competitions()), "they are MLE-Dojo's own"
    assert not set(dojo_lists()["evaluation"]) & set(dojo_lists()["training"])
    assert names_of(data, "all") == sorted([PRICES, CLASSES])
    assert names_of(data, "own", [PRICES]) == [PRICES]
    with pytest.raises(UsageError, match="there are: all, evaluation"):
        names_of(data, "test")
    (data / "empty").mkdir()
    with pytest.raises(UsageError, match="no prepared MLE-Dojo competition"):
        names_of(data / "empty", "all")


def test_metrics_are_known_shared_or_given() -> None:
    for name, ref in dojo_metrics().items():
        METRICS.get(ref.name).check_params(ref.params)
        assert name in {*dojo_lists()["evaluation"], *dojo_lists()["training"]}
    assert metric_of(PRICES).name == "rmse"
    assert metric_of("spooky-author-identification").name == "log_loss_multiclass"
    assert metric_of(PRICES, {PRICES: "mae"}).name == "mae"
    with pytest.raises(UsageError, match="--metric airbus-ship-detection=rmse"):
        metric_of("airbus-ship-detection")


# --- played ---------------------------------------------------------------------------------------


def test_a_competition_becomes_a_task(data: Path, tmp_path: Path) -> None:
    prepared = lay_out(data, [PRICES, CLASSES, "airbus-ship-detection"], tmp_path / "tasks")
    assert list(prepared.left_out) == ["airbus-ship-detection"]
    prices, classes = prepared.tasks
    assert prices.faults() == classes.faults() == []
    assert sorted(p.name for p in prices.public.iterdir()) == [
        "description.md", "sample_submission.csv", "train.csv",
    ]  # fmt: skip
    assert prices.description == "How relevant is it?"
    # three teams: gold, silver and bronze to the first place; the median is the second
    assert prices.card.milestones.direction == "min"
    assert (prices.card.milestones.gold, prices.card.milestones.median) == (0.1, 0.5)
    assert classes.card.submission.columns[0].choices == ("1", "2", "3")
    assert classes.card.milestones.gold == 0.9, "of the public board, there is no other"
    assert lay_out(data, [PRICES], tmp_path / "tasks").tasks[0].root == prices.root, "kept"
    with pytest.raises(UsageError, match="was made for rmse; remove it"):
        lay_out(data, [PRICES], tmp_path / "tasks", {PRICES: "mae"})


def test_without_a_board_there_is_nothing_to_play_for(data: Path, tmp_path: Path) -> None:
    (data / CLASSES / "private" / "public_leaderboard.csv").unlink()
    with pytest.raises(UsageError, match="no leaderboard"):
        lay_out(data, [CLASSES], tmp_path / "tasks")


class Acts:
    """Speaks MLE-Agent's JSON: asks, then runs a program that counts."""

    def __init__(self, argument: str, section: object) -> None:
        self.name = f"acts:{argument}"

    def open(self, task, seed: int, k: int) -> Scripted:
        text = HALF_OFF if task.id == PRICES else THREE_OF_FOUR
        code = f"open('submission.csv', 'w').write({text!r})\nprint('validation metric: 0.5')"
        asked = {"action": "request_info", "params": {"info_type": "overview"}}
        act = {"action": "execute_code", "params": {"code": code}}
        # the second of each group never gets to a program
        said = [asked, act] if k == 0 else [asked, asked]
        return Scripted([json.dumps(one) for one in said])

    def close(self) -> None:
        pass


POLICIES.add("acts", Acts)


def test_what_was_played_is_ranked(data: Path, tmp_path: Path) -> None:
    lay_out(data, [PRICES, CLASSES], tmp_path / "tasks")
    settings = [
        *(f"corpus.path='{tmp_path / 'tasks'}'", "group=2", "policy.name='acts:x'"),
        *("env.max_turns=2", "sandbox.preload='none'"),
    ]
    out = tmp_path / "run"
    summary = run_rollout(recipe(load_config(None, settings), MLE_DOJO), out)
    assert summary["complete"]
    ranks = write_ranks(out, data, tmp_path / "tasks")
    # accuracy 0.75 ties with the second of four
    assert ranks[f"{CLASSES}.0"] == {"code": 0.75, "paper": 0.5}
    assert ranks[f"{PRICES}.0"] == {"code": pytest.approx(5 / 6), "paper": pytest.approx(5 / 12)}
    assert ranks[f"{PRICES}.1"] == {"code": 0.0, "paper": 0.0}
    means = mean_ranks(list(ranks.values()))
    assert means["paper"] == pytest.approx((0.5 + 5 / 12) / 4), "four episodes, two without a score"
    write_report([out], tmp_path / "report")
    table = (tmp_path / "report" / "table3.md").read_text()
    assert "| mle-agent-paper | acts:x | 50.0 " in table
    assert "| 22.92 [" in table
    assert "| 39.58 [" in table


def test_a_file_of_submissions_is_graded(data: Path, tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(HALF_OFF)
    lines = [
        {"competition_id": PRICES, "submission_path": str(tmp_path / "good.csv")},
        {"competition_id": CLASSES, "submission_path": None},
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    written, report = grade_file(path, data, tmp_path / "out")
    assert json.loads(written.read_text(), parse_constant=pytest.fail) == report
    assert (report["total_runs"], report["total_valid_submissions"]) == (2, 1)
    assert report["human_rank"]["code"] == pytest.approx(5 / 12)
    first, second = report["competition_reports"]
    assert first["positions"]["paper"] == {"private": pytest.approx(1 / 3), "public": 0.5}
    assert second["reason"] == "no submission"


def test_the_command_plays_and_ranks(data: Path, tmp_path: Path) -> None:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sandmle.cli.app", "bench", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    played = run(
        *("mle-dojo", "--data-dir", data, "--out", tmp_path / "run", "--policy", "scripted:nop"),
        *("--scaffold", "react", "--set", "sandbox.preload=none", "--group", 1, "--json"),
    )
    assert played.returncode == 0, played.stderr
    found = json.loads(played.stdout)
    assert found["human_rank"] == {"code": 0.0, "paper": 0.0}
    assert set(found["ranks"]) == {f"{PRICES}.0", f"{CLASSES}.0"}
    wrong = run("mle-dojo", "--data-dir", data, "--out", tmp_path / "r", "--metric", "rmse")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == (
        "error: --metric rmse: write COMPETITION=METRIC, for example a-name=rmse\n"
    )
