"""HumanRank, in both variants, against values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.bench.humanrank import human_rank, mean_human_rank, place, require_direction
from sandmle.errors import UsageError

BOARD = [0.9, 0.8, 0.8, 0.5]


@pytest.mark.parametrize(
    ("score", "taken", "code", "paper"),
    [
        (0.95, 1, 1.0, 0.75),
        (0.9, 1, 1.0, 0.75),
        (0.85, 2, 0.75, 0.5),
        (0.8, 2, 0.75, 0.5),
        (0.6, 4, 0.25, 0.0),
        (0.5, 4, 0.25, 0.0),
        (0.4, 5, 0.0, 0.0),
        (math.nan, 5, 0.0, 0.0),
        (None, 5, 0.0, 0.0),
    ],
)
def test_places_and_ranks_by_hand(score, taken: int, code: float, paper: float) -> None:
    assert place(score, BOARD, "max") == taken
    assert human_rank(score, BOARD, "max") == code
    assert human_rank(score, BOARD, "max", "paper") == paper


def test_lower_is_better_mirrors_it() -> None:
    board = [1.0, 2.0, 3.0]
    assert human_rank(0.5, board, "min") == 1.0
    assert human_rank(2.0, board, "min") == pytest.approx(2 / 3)
    assert human_rank(2.5, board, "min") == pytest.approx(1 / 3)
    assert human_rank(9.0, board, "min") == 0.0


def test_boards_are_averaged_and_none_gives_none() -> None:
    assert mean_human_rank(0.8, [BOARD, [0.9, 0.7]], "max") == pytest.approx((0.75 + 0.5) / 2)
    assert mean_human_rank(0.8, [], "max") is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0, 1))
def test_the_paper_s_variant_is_smaller_by_one_team(board: list[float], score: float) -> None:
    code, paper = (human_rank(score, board, "max", v) for v in ("code", "paper"))
    assert code - paper == pytest.approx(1 / len(board) if code else 0.0)
    assert 0 <= paper <= code <= 1
    assert human_rank(score, board[::-1], "max") == code, "boards are sorted before"


def test_a_metric_against_its_board_is_refused() -> None:
    require_direction(BOARD, "max", "x")
    require_direction([0.5, 0.5], "min", "x")
    with pytest.raises(UsageError, match="lower is better by the metric"):
        require_direction(BOARD, "min", "x")
