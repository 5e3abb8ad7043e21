"""Ten tasks, two medals, five honest failures, two evaluator crashes, one outage (FR-53)."""

import pytest

from sandmle.rollout.summary import summarise
from sandmle.stats import pass_at_k
from sandmle.types import Action, Grade, Isolation, Mask, Reward, Trajectory, Turn, Usage

MEDAL = Grade(
    status="ok", score=0.5, reached={"median": True, "bronze": True, "silver": False, "gold": False}
)
POOR = Grade(
    status="ok", score=0.1, reached=dict.fromkeys(("median", "bronze", "silver", "gold"), False)
)


def trajectory(i: int, grade: Grade, reason: str = "submitted", reward: float | None = 0.4):
    parts = {"format": 1.0}
    return Trajectory(
        id=f"t{i}.0",
        task_id=f"t{i}",
        task_hash="0",
        group=f"t{i}",
        k=0,
        scaffold="react",
        policy="p",
        seed=0,
        feedback="validity",
        isolation=Isolation(mode="cold"),
        turns=(),
        stop_reason=reason,
        grade=grade,
        reward=None
        if reward is None
        else Reward(total=reward, parts=parts, weights={"format": 1.0}, mode="cumulative"),
        mask=Mask(masked=reward is None, why=None if reward is not None else reason),
    )


def ten() -> list[Trajectory]:
    crash = Grade(status="grader_error", reason="ZeroDivisionError")
    return [
        *(trajectory(i, MEDAL, reward=0.7) for i in range(2)),
        *(trajectory(i, POOR) for i in range(2, 5)),
        *(trajectory(i, Grade(status="invalid", reason="x"), reward=0.1) for i in range(5, 7)),
        *(trajectory(i, crash, "grader_error", None) for i in range(7, 9)),
        trajectory(9, Grade(status="missing"), "model_error", None),
    ]


def test_failures_of_ours_stay_in_the_denominator() -> None:
    summary = summarise(ten(), expected=10)
    medals = summary["rates"]["any_medal"]
    assert (medals["n"], medals["tasks"]) == (10, 10)
    assert 0 <= medals["low"] < 0.2 < medals["high"] < 0.6
    assert summary["rates"]["any_medal"]["mean"] == pytest.approx(0.2)
    assert summary["without_failures"]["any_medal"]["mean"] == pytest.approx(2 / 7)
    assert summary["rates"]["valid"]["mean"] == pytest.approx(0.5)
    assert summary["stop_reasons"] == {"submitted": 7, "grader_error": 2, "model_error": 1}
    assert summary["masked"] == {"grader_error": 2, "model_error": 1}
    assert summary["complete"] is False
    assert summary["reward"]["n"] == 7


def test_missing_episodes_make_it_incomplete() -> None:
    scored = ten()[:7]
    assert summarise(scored, expected=7)["complete"] is True
    assert summarise(scored, expected=8)["complete"] is False
    assert summarise(scored, 7, broken=["x/task.json: missing"])["complete"] is False


def test_nothing_played_is_not_zero() -> None:
    summary = summarise([], expected=3)
    assert summary["reward"]["mean"] is None
    assert summary["rates"]["gold"]["mean"] is None


def graded(score: float | None) -> Grade:
    if score is None:
        return Grade(status="invalid", reason="x")
    reached = dict.fromkeys(("median", "bronze", "silver", "gold"), score >= 0.5)
    return Grade(status="ok", score=score, reached=reached)


def played(i: int, group: str, scores: list[float | None], final: float | None, **usage):
    turns = tuple(
        Turn(index=k, completion="", action=Action(kind="code", code=""), hidden_grade=graded(s))
        for k, s in enumerate(scores)
    )
    one = trajectory(i, graded(final), reward=0.1)
    return one.model_copy(
        update={"group": group, "task_id": group, "turns": turns, "usage": Usage(**usage)}
    )


def test_pass_at_k_is_the_share_of_draws_that_succeed() -> None:
    from itertools import combinations

    for n in range(1, 7):
        for c in range(n + 1):
            for k in range(1, n + 1):
                draws = list(combinations([i < c for i in range(n)], k))
                assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    with pytest.raises(ValueError, match="no such draw"):
        pass_at_k(2, 1, 3)


def test_groups_give_pass_at_k() -> None:
    first = [played(i, "a", [], score) for i, score in enumerate([0.9, 0.1, 0.1, 0.1])]
    second = [played(i, "b", [], score) for i, score in enumerate([0.9, 0.9, 0.1, None])]
    found = summarise([*first, *second], 8)["pass_at_k"]["gold"]
    assert list(found) == ["1", "2", "4"]
    assert found["1"]["mean"] == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert found["2"]["mean"] == pytest.approx((1 / 2 + 5 / 6) / 2)
    assert (found["4"]["mean"], found["4"]["tasks"]) == (1, 2)


def test_who_ends_worse_than_before_has_reverted() -> None:
    episodes = [
        played(0, "up", [0.1, 0.9], 0.9),
        played(1, "up", [0.9, 0.1], 0.1),  # worse at the end
        played(2, "up", [0.9, None], None),  # broken at the end
        played(3, "down", [0.9, 0.1], 0.1),  # where lower is better this is no reversion
        played(4, "down", [0.1, 0.9], 0.9),
        played(6, "down", [0.2, 0.3], 0.3),
        played(5, "up", [None, None], None),  # never had anything to lose
    ]
    found = summarise(episodes, 7, directions={"up": "max", "down": "min"})["reverted"]
    assert (found["mean"], found["n"]) == (pytest.approx(4 / 6), 6)
    assert summarise(episodes, 7)["reverted"]["n"] == 0


def test_tokens_and_dollars_are_added_or_unknown() -> None:
    known = [played(i, "a", [], 0.1, prompt_tokens=5, usd=0.25) for i in range(2)]
    usage = summarise(known, 2)["usage"]
    assert usage == {"prompt_tokens": 10, "completion_tokens": None, "usd": 0.5}
    usage = summarise([*known, played(2, "a", [], 0.1, prompt_tokens=1)], 3)["usage"]
    assert usage == {"prompt_tokens": 11, "completion_tokens": None, "usd": None}
