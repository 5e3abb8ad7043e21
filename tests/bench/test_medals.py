"""MLE-bench's medal rule at every boundary of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.bench.boards import read_board
from sandmle.bench.facts import SPLITS, competitions, dojo_lists, split
from sandmle.bench.medals import Medal, positions, rank, thresholds
from sandmle.errors import UsageError


def board(teams: int) -> list[float]:
    """A board on which the score tells the place: the p-th team has -p, higher is better."""
    return [float(-p) for p in range(1, teams + 1)]


@pytest.mark.parametrize(
    ("teams", "gold", "silver", "bronze"),
    [
        (1, 1, 1, 1),
        (2, 1, 1, 1),
        (5, 1, 1, 2),
        (9, 1, 1, 3),
        (10, 1, 2, 4),
        (19, 1, 3, 7),
        (20, 2, 4, 8),
        (99, 9, 19, 39),
        (100, 10, 20, 40),
        (249, 10, 49, 99),
        (250, 10, 50, 100),
        (499, 10, 50, 100),
        (500, 11, 50, 100),
        (999, 11, 50, 100),
        (1000, 12, 50, 100),
        (1999, 13, 99, 199),
        (5000, 20, 250, 500),
    ],
)
def test_places_of_the_last_medals(teams: int, gold: int, silver: int, bronze: int) -> None:
    assert positions(teams) == (gold, silver, bronze)
    levels = thresholds(board(teams))
    assert levels[:3] == (-gold, -silver, -bronze)
    assert levels.median == -(teams + 1) / 2


def test_medals_exclude_each_other_and_ties_win_them() -> None:
    levels = thresholds(board(100))
    assert rank(-10.0, levels) == Medal(True, False, False, True)
    assert rank(-10.001, levels) == Medal(False, True, False, True)
    assert rank(-20.0, levels) == Medal(False, True, False, True)
    assert rank(-40.0, levels) == Medal(False, False, True, True)
    assert rank(-40.001, levels) == Medal(False, False, False, True)
    assert rank(-50.5, levels) == Medal(False, False, False, False), "the median is strict"
    assert rank(-50.499, levels).above_median


def test_lower_is_better_iff_the_first_score_is_below_the_last() -> None:
    levels = thresholds([-score for score in board(100)])
    assert levels.lower_is_better
    assert rank(10.0, levels).gold
    assert rank(10.001, levels) == Medal(False, True, False, True)
    assert not rank(50.5, levels).above_median
    flat = thresholds([0.5] * 30)
    assert not flat.lower_is_better
    assert rank(0.5, flat) == Medal(True, False, False, False)
    assert not rank(0.4, flat).any
    assert not thresholds([0.3]).lower_is_better


def test_the_order_of_the_file_counts_not_that_of_the_scores() -> None:
    shuffled = [0.9, 0.5, 0.8, 0.7, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0]
    levels = thresholds(shuffled)
    assert (levels.gold, levels.silver, levels.bronze) == (0.9, 0.5, 0.7)


def test_the_score_is_rounded_and_the_threshold_is_not() -> None:
    levels = thresholds([0.930508, 0.9, 0.8, 0.7])
    assert rank(round(0.9305084, 5), levels).gold
    assert not rank(0.9305079, levels).gold
    lower = thresholds([0.1234551, 0.2, 0.3, 0.4])
    assert rank(0.1234551, lower).gold
    assert not rank(round(0.1234551, 5), lower)[0], "and the reverse can lose"


@pytest.mark.parametrize("score", [None, math.nan])
def test_no_score_and_nan_win_nothing(score: float | None) -> None:
    assert rank(score, thresholds(board(50))) == Medal(False, False, False, False)
    assert rank(score, thresholds([-s for s in board(50)])) == Medal(False, False, False, False)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.floats(-1e6, 1e6), st.booleans()
)
def test_at_most_one_medal_and_better_never_loses(
    scores: list[float], score: float, lower: bool
) -> None:
    levels = thresholds(sorted(scores, reverse=not lower))
    medal = rank(score, levels)
    assert medal.gold + medal.silver + medal.bronze <= 1
    worse = score + 1 if levels.lower_is_better else score - 1
    tiers = [
        (m.gold, m.gold or m.silver, m.any, m.above_median) for m in (medal, rank(worse, levels))
    ]
    assert all(after <= before for before, after in zip(*tiers, strict=True))


def made_up(name: str) -> list[float]:
    """A board as long as that of a competition, with its thresholds at the places they belong."""
    one = competitions()[name]
    teams = one.teams or 777
    levels = one.thresholds
    gold, silver, bronze = positions(teams)
    middle = teams // 2 + 1
    steps = [(gold, levels["gold"]), (silver, levels["silver"]), (bronze, levels["bronze"])]
    scores: list[float] = []
    for last, level in [*steps, (middle, levels["median"])]:
        scores += [level] * (last - len(scores))
    sign = 1 if one.lower_is_better else -1
    return scores + [levels["median"] + sign] * (teams - len(scores))


@pytest.mark.parametrize("name", sorted(competitions()))
def test_thresholds_of_every_competition_come_back(name: str) -> None:
    one = competitions()[name]
    found = thresholds(made_up(name))
    middle = one.thresholds["median"]
    sign = 1 if one.lower_is_better else -1
    # of an even number of teams the median is between two, and the upper one is known here
    if (one.teams or 777) % 2 == 0:
        assert found.median == pytest.approx(middle, abs=0) or found.median == middle + sign / 2
    else:
        assert found.median == middle
    for tier in ("gold", "silver", "bronze"):
        assert getattr(found, tier) == one.thresholds[tier]
    assert found.lower_is_better == one.lower_is_better


def test_splits_have_the_known_sizes() -> None:
    sizes = {name: len(split(name)) for name in SPLITS}
    assert sizes == {
        "lite": 22, "low": 22, "medium": 38, "high": 15, "dev": 7, "split75": 75, "all": 82,
    }  # fmt: skip
    with pytest.raises(UsageError, match="there are"):
        split("easy")
    lists = {name: len(set(ids)) for name, ids in dojo_lists().items()}
    assert lists == {"evaluation": 51, "training": 151, "own": 62}


# --- boards from files ------------------------------------------------------------------------


def test_a_board_is_read_in_its_order(tmp_path) -> None:
    path = tmp_path / "leaderboard.csv"
    path.write_text("teamId,score,hasScore\n7,0.9,True\n8,0.95,True\n9,0.1,True\n")
    assert read_board(path) == [0.9, 0.95, 0.1]
    path.write_text("rank,score\n1,0.25\n2,0.5\n")
    assert read_board(path, column=1) == [0.25, 0.5]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "git lfs pull"),
        ("teamId\n1\n", "no column 'score'"),
        ("teamId,score\n", "no teams"),
        ("", "no column"),
        ("score\n0.5\n\n0.4\nnan\n", "row 4: 'nan' is no score"),
        ("score\n0.5\nx\n", "row 3: there is no score"),
        ("score\n" + "0.5\n" * 20, "first page only"),
    ],
)
def test_what_is_no_board_is_refused_with_the_fix(tmp_path, text: str, fix: str) -> None:
    path = tmp_path / "leaderboard.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=fix):
        read_board(path, teams=1221)


def test_a_board_that_lacks_a_few_teams_is_taken(tmp_path) -> None:
    path = tmp_path / "leaderboard.csv"
    path.write_text("score\n" + "0.5\n" * 700)
    assert len(read_board(path, teams=1221)) == 700
    with pytest.raises(UsageError, match="cannot be read"):
        read_board(tmp_path / "other.csv")
