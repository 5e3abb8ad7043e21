"""Grading a file of submissions: keys, totals, modes, and what is never a score."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from sandmle.bench.facts import competitions
from sandmle.bench.mlebench import (
    MODES,
    Data,
    Entry,
    grade_file,
    grade_one,
    read_submissions,
)
from sandmle.bench.strict import strict_score
from sandmle.errors import GradingError, UsageError

# the keys of MLE-bench's reports, in their order
KEYS = [
    *("competition_id", "score", "gold_threshold", "silver_threshold", "bronze_threshold"),
    *("median_threshold", "any_medal", "gold_medal", "silver_medal", "bronze_medal"),
    *("above_median", "submission_exists", "valid_submission", "is_lower_better", "created_at"),
    "submission_path",
]
TOTALS = [
    *("total_runs", "total_runs_with_submissions", "total_valid_submissions", "total_medals"),
    *("total_gold_medals", "total_silver_medals", "total_bronze_medals", "total_above_median"),
    "competition_reports",
]
PIZZA = "random-acts-of-pizza"


@pytest.fixture
def prepared(tmp_path):
    """Two competitions as `mlebench prepare` leaves them, and their boards."""
    data = tmp_path / "data"
    private = data / PIZZA / "prepared" / "private"
    private.mkdir(parents=True)
    (private / "test.csv").write_text(
        "request_id,requester_received_pizza,extra\nt1,True,x\nt2,False,y\nt3,True,z\nt4,False,w\n"
    )
    taxi = data / "new-york-city-taxi-fare-prediction" / "prepared" / "private"
    taxi.mkdir(parents=True)
    (taxi / "test.csv").write_text("key,fare_amount\na,10\nb,20\n")
    for name, low, high in ((PIZZA, 0.5, 1.0), (taxi.parent.parent.name, 9.0, 2.0)):
        teams = competitions()[name].teams
        board = tmp_path / "boards" / name
        board.mkdir(parents=True)
        steps = [high + (low - high) * n / (teams - 1) for n in range(teams)]
        (board / "leaderboard.csv").write_text("score\n" + "".join(f"{s}\n" for s in steps))
    return Data(data, tmp_path / "boards")


def write(tmp_path, text: str, name: str = "submission.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


HEAD = "request_id,requester_received_pizza\n"


def test_a_report_has_the_keys_of_mle_bench(prepared, tmp_path) -> None:
    path = write(tmp_path, HEAD + "t4,0.1\nt3,0.9\nt2,0.2\nt1,0.8\n")
    report = grade_one(Entry(PIZZA, path), prepared).report
    assert list(report) == KEYS
    assert report["score"] == 1.0
    assert report["gold_medal"]
    assert report["any_medal"]
    assert report["above_median"]
    assert not report["silver_medal"]
    assert not report["is_lower_better"]
    # of 462 teams the tenth has gold: 1 - 0.5 * 9 / 461
    assert report["gold_threshold"] == pytest.approx(1 - 4.5 / 461)
    assert report["median_threshold"] == pytest.approx(0.75)


def test_a_lower_score_is_better_by_the_board(prepared, tmp_path) -> None:
    path = write(tmp_path, "key,fare_amount\nb,23\na,13\n")
    report = grade_one(Entry("new-york-city-taxi-fare-prediction", path), prepared).report
    assert report["score"] == 3.0
    assert report["is_lower_better"]
    assert report["above_median"]
    # 1483 teams: silver to place 74, bronze to 148 with 2 + 7 * 147 / 1482 = 2.694
    assert not report["any_medal"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("t1,0.5\nt2,0.5\nt3,0.5\n", "1 ids are missing"),
        ("t1,0.5\nt2,0.5\nt3,0.5\nt4,0.5\nt5,0.5\n", "1 are unknown"),
        ("t1,0.5\nt2,0.5\nt3,0.5\nt3,0.5\n", "twice"),
        ("t1,0.5\nt2,0.5\nt3,0.5\nt4,NaN\n", "holds 'NaN'"),
        ("t1,0.5\nt2,0.5\nt3,0.5\nt4,inf\n", "holds 'inf'"),
        ("t1,0.5\nt2,0.5\nt3,0.5\nt4,1.5\n", "outside"),
        ("t1,0.5\nt2,0.5\nt3,0.5\nt4,\n", "empty cell"),
    ],
)
def test_strict_refuses_malformed_submissions(prepared, tmp_path, rows, reason) -> None:
    result = grade_one(Entry(PIZZA, write(tmp_path, HEAD + rows)), prepared)
    assert result.report["score"] is None
    assert result.report["submission_exists"]
    assert not result.report["valid_submission"]
    assert not result.report["any_medal"]
    assert not result.report["above_median"]
    assert reason in result.reason


def test_only_csv_files_are_submissions(prepared, tmp_path) -> None:
    good = HEAD + "t1,1\nt2,0\nt3,1\nt4,0\n"
    for name, exists in (("a.csv", True), ("a.CSV", True), ("a.txt", False)):
        report = grade_one(Entry(PIZZA, write(tmp_path, good, name)), prepared).report
        assert report["submission_exists"] == exists
        assert report["valid_submission"] == exists


def test_a_file_of_submissions_becomes_one_report(prepared, tmp_path) -> None:
    best = write(tmp_path, HEAD + "t1,1\nt2,0\nt3,1\nt4,0\n", "best.csv")
    bad = write(tmp_path, HEAD + "t1,1\n", "bad.csv")
    lines = [
        json.dumps({"competition_id": PIZZA, "submission_path": str(best), "logs_path": "x"}),
        "",
        "# a comment",
        "// another",
        json.dumps({"competition_id": PIZZA, "submission_path": str(bad)}),
        json.dumps({"competition_id": PIZZA, "submission_path": None}),
    ]
    submissions = write(tmp_path, "\n".join(lines), "submissions.jsonl")
    path, report, notes = grade_file(submissions, prepared, tmp_path / "deep" / "out")
    assert path.name.endswith("-GMT_grading_report.json")
    written = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert list(written) == TOTALS == list(report)
    assert [written[k] for k in TOTALS[:-1]] == [3, 2, 1, 1, 1, 0, 0, 1]
    assert written["competition_reports"][2]["submission_path"] == "None"
    assert len(notes) == 2, "a score that is missing has a reason"


def test_nothing_is_graded_when_a_line_cannot_be(prepared, tmp_path) -> None:
    for line, fault in (
        ('{"competition_id": "pizza", "submission_path": "a.csv"}', "no competition 'pizza'"),
        ('{"competition_id": "spooky-author-identification", "submission_path": "a"}', "prepare"),
        ('{"submission_path": "a"}', "line 1: write"),
        ("[]", "line 1: write"),
        ("", "no submission in it"),
    ):
        submissions = write(tmp_path, line, "s.jsonl")
        with pytest.raises(UsageError, match=fault):
            grade_file(submissions, prepared, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_our_fault_is_never_a_score(prepared, tmp_path) -> None:
    path = write(tmp_path, HEAD + "t1,1\nt2,0\nt3,1\nt4,0\n")
    answers = prepared.root / PIZZA / "prepared" / "private" / "test.csv"
    answers.write_text("request_id,requester_received_pizza\nt1,1\nt2,maybe\nt3,1\nt4,0\n")
    with pytest.raises(GradingError, match="maybe"):
        grade_one(Entry(PIZZA, path), prepared)


def test_a_pointer_in_the_place_of_a_board_stops_it(prepared, tmp_path) -> None:
    board = tmp_path / "boards" / PIZZA / "leaderboard.csv"
    board.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(UsageError, match="git lfs pull"):
        grade_one(Entry(PIZZA, write(tmp_path, HEAD)), prepared)


@pytest.mark.skipif(find_spec("mlebench") is not None, reason="it is installed")
def test_upstream_mode_asks_for_the_installation(prepared, tmp_path) -> None:
    path = write(tmp_path, HEAD + "t1,1\nt2,0\nt3,1\nt4,0\n")
    with pytest.raises(ImportError, match="git clone https"):
        grade_one(Entry(PIZZA, path), prepared, "upstream")
    line = json.dumps({"competition_id": PIZZA, "submission_path": str(path)})
    submissions = write(tmp_path, line, "s.jsonl")
    # without --boards either: the line is about mlebench, which has both
    command = [
        *(sys.executable, "-m", "sandmle.cli.app", "bench", "grade", "--mode", "upstream"),
        *("--submissions", str(submissions), "--data-dir", str(prepared.root)),
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr == (
        "error: mlebench cannot be imported (No module named 'mlebench'): git clone "
        "https://github.com/openai/mle-bench && git -C mle-bench lfs pull && "
        "pip install -e mle-bench\n"
    )


@pytest.mark.skipif(find_spec("mlebench") is None, reason="needs an installed mlebench")
def test_upstream_mode_scores_as_strict_does_where_the_form_is_right(prepared, tmp_path) -> None:
    path = write(tmp_path, HEAD + "t1,0.7\nt2,0.8\nt3,0.9\nt4,0.1\n")
    entry = Entry(PIZZA, path)
    assert grade_one(entry, prepared, "upstream").report["score"] == 0.75
    assert grade_one(entry, prepared, "strict").report["score"] == 0.75
    # a row that is missing is refused by both
    short = Entry(PIZZA, write(tmp_path, HEAD + "t1,0.7\nt2,0.8\nt3,0.9\n", "short.csv"))
    for mode in MODES:
        found = grade_one(short, prepared, mode)
        assert found.report["score"] is None
        assert found.reason


def test_a_null_path_is_no_submission(tmp_path) -> None:
    path = write(tmp_path, '{"competition_id": "x", "submission_path": null}\n', "s.jsonl")
    assert read_submissions(path) == [Entry("x", type(path)("None"))]


def test_a_sure_mistake_costs_what_it_costs_there(tmp_path) -> None:
    """The graders clip at 2^-52: of two rows one is surely wrong, -ln(2^-52) / 2 = 26 ln 2."""
    dogs = competitions()["dogs-vs-cats-redux-kernels-edition"]
    answers = write(tmp_path, "id,label\n1,1\n2,0\n", "answers.csv")
    found = strict_score(b"id,label\n1,0\n2,0\n", dogs, answers)
    assert found.score == pytest.approx(18.02183, abs=1e-5)
    assert strict_score(b"id,label\n2,1\n1,1\n", dogs, answers).score == pytest.approx(18.02183)
    assert strict_score(b"id,label\n1,0.5\n2,0.25\n", dogs, answers).score == pytest.approx(
        0.490415,
        abs=1e-6,  # (ln 2 - ln 0.75) / 2
    )
    spooky = competitions()["spooky-author-identification"]
    answers = write(tmp_path, "id,EAP,HPL,MWS\na,1,0,0\nb,0,1,0\n", "answers.csv")
    sure = strict_score(b"id,EAP,HPL,MWS\nb,0,1,0\na,0,1,0\n", spooky, answers)
    assert sure.score == pytest.approx(18.02183, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "head", "off"),
    [
        ("spooky-author-identification", "id,EAP,HPL,MWS", 1.1e-5),
        ("lmsys-chatbot-arena", "id,winner_model_a,winner_model_b,winner_tie", 5e-7),
    ],
)
def test_rows_add_up_as_closely_as_they_must_there(tmp_path, name, head, off) -> None:
    one = competitions()[name]
    answers = write(tmp_path, f"{head}\na,1,0,0\nb,0,1,0\n", "answers.csv")

    def graded(last: float):
        rows = f"{head}\na,0.25,0.25,0.5\nb,0.25,0.25,{last!r}\n"
        return strict_score(rows.encode(), one, answers)

    assert graded(0.5 + 0.9 * off).score is not None
    assert graded(0.5 - 0.9 * off).score is not None
    assert graded(0.5 + 1.1 * off).reason.startswith("row 2 adds up to 1.0000")
    assert graded(0.5 - 1.1 * off).score is None


def test_a_text_is_a_text_and_a_set_is_of_known_labels(tmp_path) -> None:
    words = competitions()["text-normalization-challenge-english-language"]
    answers = write(tmp_path, "id,after\na,true\nb,False\nc,NA\n", "answers.csv")
    found = strict_score(b"id,after\nc,NA\na,true\nb,0\n", words, answers)
    assert found.score == pytest.approx(2 / 3)
    # MLE-bench leaves out a label that no hidden row has: 2 hits, 2 of 3 given and 2 of 3 wanted
    plants = competitions()["plant-pathology-2021-fgvc8"]
    answers = write(tmp_path, "image,labels\na,rust scab\nb,healthy\n", "answers.csv")
    found = strict_score(b"image,labels\nb,rust unheard\na,scab rust\n", plants, answers)
    assert found.score == pytest.approx(2 * 2 / (3 + 3))


def test_lists_may_name_anything_up_to_their_length(tmp_path) -> None:
    """Average precision with one right label is 1 / its place."""
    hotels = competitions()["hotel-id-2021-fgvc8"]
    answers = write(tmp_path, "image,hotel_id\na,7\nb,8\n", "answers.csv")
    found = strict_score(b"image,hotel_id\nb,1 8\na,7 2 3 4 5\n", hotels, answers)
    assert found.score == pytest.approx((1 + 1 / 2) / 2)
    assert strict_score(b"image,hotel_id\nb,1\na,7 2 3 4 5 6\n", hotels, answers).score is None
