"""Ten tasks, two medals, five honest failures, two evaluator crashes, one outage (FR-53)."""

import pytest

from sandmle.rollout.summary import summarise
from sandmle.types import Grade, Isolation, Mask, Reward, Trajectory

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
