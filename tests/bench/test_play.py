"""Competitions of a prepared data directory as tasks, played and graded from end to end."""

import numpy as np
import pytest
from build import build_task

from sandmle.bench.facts import competitions
from sandmle.bench.mlebench import Data, grade_file
from sandmle.bench.play import lay_out, names_of, write_submissions
from sandmle.bench.recipes import recipe
from sandmle.bench.scaling import run_budgets
from sandmle.config import load_config
from sandmle.errors import UsageError
from sandmle.grading.grader import Grader
from sandmle.llm.scripted import Scripted
from sandmle.report.runs import read_run
from sandmle.report.scaling import separate
from sandmle.rollout.policies import POLICIES
from sandmle.rollout.runner import run_rollout

CACTUS = "aerial-cactus-identification"
PROGRAM = """\
import csv

with open("submission.csv", "w") as out:
    out.write("id,has_cactus\\n")
    for row in csv.DictReader(open("input/test.csv")):
        out.write(f"{row['id']},{0.9 if float(row['x']) > 0 else 0.1}\\n")
"""


class Told:
    """A policy that says what it was told to say."""

    name = "told:x"

    def __init__(self, argument, section) -> None:
        self.replies = [f"<think>x</think>\n```python\n{PROGRAM}```", "<think>x</think>\n<submit/>"]

    def open(self, task, seed, k):
        return Scripted(self.replies)

    def close(self) -> None:
        pass


POLICIES.add("told", Told)


@pytest.fixture
def data(tmp_path):
    """One competition as `mlebench prepare` leaves it, with a private sample that must stay so."""
    root = tmp_path / "data" / CACTUS / "prepared"
    (root / "public").mkdir(parents=True)
    (root / "private").mkdir()
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    train = "".join(f"n{i},{x:.3f},{int(x > 0)}\n" for i, x in enumerate(rng.normal(0, 1, 80)))
    (root / "public" / "train.csv").write_text("id,x,has_cactus\n" + train)
    test = "".join(f"m{i},{0.5 if t else -0.5}\n" for i, t in enumerate(truth))
    (root / "public" / "test.csv").write_text("id,x\n" + test)
    (root / "public" / "description.md").write_text("# Cactus\n\nid and has_cactus\n")
    (root / "public" / "raw.zip").write_bytes(b"PK")
    (root / "private" / "test.csv").write_text(
        "id,has_cactus\n" + "".join(f"m{i},{t}\n" for i, t in enumerate(truth))
    )
    (root / "private" / "secret.csv").write_text("x\n")
    teams = competitions()[CACTUS].teams
    board = tmp_path / "boards" / CACTUS
    board.mkdir(parents=True)
    scores = np.linspace(0.99, 0.5, teams)
    (board / "leaderboard.csv").write_text("score\n" + "".join(f"{s:.6f}\n" for s in scores))
    return Data(tmp_path / "data", tmp_path / "boards")


def test_a_competition_becomes_a_task_without_its_private_files(data, tmp_path) -> None:
    prepared = lay_out(data, [CACTUS, "spooky-author-identification"], tmp_path / "tasks")
    (task,) = prepared.tasks
    assert list(prepared.left_out) == ["spooky-author-identification"]
    assert sorted(p.name for p in task.public.iterdir()) == [
        "description.md", "sample_submission.csv", "test.csv", "train.csv",
    ]  # fmt: skip
    levels = data.levels(competitions()[CACTUS])
    milestones = task.card.milestones
    assert (milestones.gold, milestones.silver) == (levels.gold, levels.silver)
    assert task.faults() == []
    assert lay_out(data, [CACTUS], tmp_path / "tasks").tasks[0].root == task.root, "kept"
    with pytest.raises(UsageError, match="no competition can be played"):
        lay_out(data, ["ventilator-pressure-prediction"], tmp_path / "none")


def test_what_was_played_is_graded_as_mle_bench_grades_it(data, tmp_path) -> None:
    prepared = lay_out(data, [CACTUS], tmp_path / "tasks")
    settings = [f"corpus.path='{tmp_path / 'tasks'}'", "group=2", "policy.name='told:x'"]
    summary = run_rollout(recipe(load_config(None, settings)), tmp_path / "run")
    assert summary["complete"]
    submissions = write_submissions(tmp_path / "run", prepared.tasks)
    _, report, notes = grade_file(submissions, data, tmp_path / "out")
    assert report["total_runs"] == 2
    assert report["total_gold_medals"] == 2
    assert [one["score"] for one in report["competition_reports"]] == [1.0, 1.0]
    assert summary["rates"]["gold"]["mean"] == 1.0, "the run and the report agree"
    assert notes == []


def test_a_split_is_named_or_its_members_are() -> None:
    assert len(names_of("lite")) == 22
    assert names_of("lite", [CACTUS]) == [CACTUS]


def test_each_budget_is_a_run_of_its_own(tmp_path) -> None:
    answers = "id,label\na,1\nb,0\n"
    code = f"open('submission.csv', 'w').write({answers!r})\n"
    build_task(tmp_path / "c", answers, classes=("0", "1"), solutions={"90-reference": code})
    config = load_config(None, [f"corpus.path='{tmp_path / 'c'}'", "group=1"])
    roots = run_budgets(config, [0, 1, 3], tmp_path / "scaling")
    assert [root.name for root in roots] == ["turns-001", "turns-003"]
    rungs = separate([read_run(root) for root in roots])
    assert [rung.budget for rung in rungs] == [1, 3]
    again = (roots[0] / "trajectories.jsonl").read_bytes()
    run_budgets(config, [1], tmp_path / "scaling")
    assert (roots[0] / "trajectories.jsonl").read_bytes() == again, "resumed, not played again"
    with pytest.raises(UsageError, match="none negative"):
        run_budgets(config, [-1], tmp_path / "scaling")


def lay(tmp_path, name: str, answers: str, low: float, high: float):
    """Return a competition with these answers as a task."""
    one, root = competitions()[name], tmp_path / "data" / name
    (root / "prepared" / "public").mkdir(parents=True)
    (root / "prepared" / "private").mkdir()
    (root / one.answers_file).write_text(answers)
    board = tmp_path / "boards" / name
    board.mkdir(parents=True)
    lines = "".join(f"{score:.6f}\n" for score in np.linspace(high, low, one.teams))
    (board / "leaderboard.csv").write_text("score\n" + lines)
    data = Data(tmp_path / "data", tmp_path / "boards")
    return lay_out(data, [name], tmp_path / "tasks").tasks[0]


@pytest.mark.parametrize(
    ("name", "answers", "worse", "best"),
    [
        (
            "text-normalization-challenge-english-language",
            "id,after\n1_0,true\n1_1,nineteen\n",
            "id,after\n1_0,1\n1_1,nineteen\n",
            1.0,
        ),
        (
            "hotel-id-2021-fgvc8",
            "image,hotel_id\na,7\nb,8\n",
            "image,hotel_id\na,99 7\nb,8\n",
            1.0,
        ),
        (
            "aptos2019-blindness-detection",
            "id_code,diagnosis\na,0\nb,4\nc,2\n",
            "id_code,diagnosis\na,0\nb,2\nc,2\n",
            1.0,
        ),
        (
            "spooky-author-identification",
            "id,EAP,HPL,MWS\na,1,0,0\nb,0,1,0\n",
            "id,EAP,HPL,MWS\na,0.5,0.25,0.25\nb,0.1,0.8,0.1\n",
            0.0,
        ),
    ],
)
def test_other_kinds_of_answers_are_laid_out(tmp_path, name, answers, worse, best) -> None:
    """Texts (one that says true is a text), lists, classes, and probabilities."""
    least = competitions()[name].lower_is_better
    task = lay(tmp_path, name, answers, *((1.0, 0.5) if least else (0.5, 1.0)))
    grader = Grader(task)
    assert grader.grade(answers.encode()).score == pytest.approx(best, abs=1e-9)
    score = grader.grade(worse.encode()).score
    assert score > best + 0.1 if least else score < best - 0.1
    assert grader.validate(task.read("public/sample_submission.csv")) is None


def test_all_of_the_lite_split_is_in_play() -> None:
    known = competitions()
    assert all(known[name].same_score for name in names_of("lite"))
    assert sum(one.same_score for one in known.values()) == 56
