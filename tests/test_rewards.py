"""The reward tables of all presets, by hand."""

import pytest
from build import milestones
from hypothesis import given
from hypothesis import strategies as st

from sandmle.config import RewardSection
from sandmle.errors import UsageError
from sandmle.grading.grader import reached, thresholds
from sandmle.rewards import PRESETS, reward, reward_rule, skill
from sandmle.types import (
    MILESTONES,
    Grade,
    MetricRef,
    RewardRule,
    Rung,
    SubmissionSchema,
    TaskCard,
)


def card(direction: str = "max", floor: float | None = 0.0) -> TaskCard:
    """Milestones at 0.2, 0.4, 0.6 and 0.8 (negated where lower is better)."""
    schema = {"id_column": "id", "columns": [{"name": "y", "kind": "number"}], "n_rows": 1}
    dummy = [Rung(name="dummy", kind="dummy", test=floor)] if floor is not None else []
    return TaskCard(
        id="t",
        title="T",
        modality="tabular",
        metric=MetricRef(name="r2"),
        submission=SubmissionSchema.model_validate(schema),
        milestones=milestones(direction),
        ladder=tuple(dummy),
        files={},
    )


def graded(score: float, direction: str = "max") -> Grade:
    levels = thresholds(milestones(direction))
    return Grade(status="ok", score=score, reached=reached(score, direction, levels))


# score -> total, with every reply in the asked form
TABLES = {
    "paper": {0.1: 0.4, 0.2: 0.5, 0.4: 0.7, 0.6: 0.9, 0.8: 1.0, 0.9: 1.0, 0.79: 0.9},
    "sparse": {0.1: 0.1, 0.2: 0.1, 0.4: 0.1, 0.6: 0.1, 0.8: 1.0, 0.9: 1.0},
    "release": {0.1: 0.3, 0.2: 0.4, 0.4: 0.8, 0.6: 0.9, 0.8: 1.0, 0.9: 1.0},
    "continuous": {-1.0: 0.4, 0.0: 0.4, 0.2: 0.55, 0.4: 0.7, 0.6: 0.85, 0.8: 1.0, 0.9: 1.0},
}
ROWS = [(name, score, total) for name, table in TABLES.items() for score, total in table.items()]


@pytest.mark.parametrize(("preset", "score", "total"), ROWS)
def test_tables(preset: str, score: float, total: float) -> None:
    for sign, direction in ((1, "max"), (-1, "min")):
        made = reward(graded(sign * score, direction), card(direction), 1.0, PRESETS[preset])
        assert made.total == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("status", ["invalid", "missing"])
def test_without_a_valid_submission_only_the_form_pays(preset: str, status: str) -> None:
    made = reward(Grade(status=status, reason="x"), card(), 0.5, PRESETS[preset])
    assert made.total == pytest.approx(0.05)
    assert made.parts["format"] == 0.5
    assert sum(made.parts.values()) == 0.5


@pytest.mark.parametrize("preset", PRESETS)
def test_what_could_not_be_scored_has_no_reward(preset: str) -> None:
    assert reward(Grade(status="grader_error", reason="x"), card(), 1.0, PRESETS[preset]) is None


def test_parts_are_itemised() -> None:
    made = reward(graded(0.4), card(), 0.75, PRESETS["paper"])
    assert made.parts == {
        "format": 0.75, "execute": 1.0, "median": 1.0, "bronze": 1.0, "silver": 0.0, "gold": 0.0,
    }  # fmt: skip
    release = reward(graded(0.4), card(), 0.75, PRESETS["release"])
    assert [release.parts[name] for name in MILESTONES] == [0, 1, 0, 0]


def test_milestones_are_inclusive_and_unrounded() -> None:
    levels = {"gold": 0.93051}
    assert reached(0.93051, "max", levels) == {"gold": True}
    assert reached(0.930509999, "max", levels) == {"gold": False}
    assert reached(0.93051, "min", levels) == {"gold": True}
    assert reached(0.930510001, "min", levels) == {"gold": False}


@given(st.floats(-2, 2), st.floats(0, 1), st.sampled_from(sorted(PRESETS)))
def test_total_is_the_weighted_sum_and_within_bounds(score: float, share: float, name: str) -> None:
    made = reward(graded(score), card(), share, PRESETS[name])
    total = sum(made.weights[part] * made.parts[part] for part in made.parts)
    assert made.total == pytest.approx(total, abs=1e-11)
    assert 0 <= made.total <= 1


@given(st.floats(-2, 2), st.floats(-2, 2), st.sampled_from(sorted(PRESETS)))
def test_a_better_score_never_pays_less(first: float, second: float, name: str) -> None:
    low, high = sorted((first, second))
    first_pay, second_pay = (
        reward(graded(score), card(), 1.0, PRESETS[name]).total for score in (low, high)
    )
    assert first_pay <= second_pay


def test_equal_rewards_are_equal_to_the_last_bit() -> None:
    """0.1 + 0.2 and 0.3 differ in floating point; a group must not get a spread from that."""
    rule = RewardRule(
        mode="cumulative",
        weights={"format": 0.1, "execute": 0.2, "median": 0.3, "gold": 0.4},
    )
    first = reward(graded(0.1), card(), 1.0, rule)  # 0.1 + 0.2
    second = reward(
        Grade(status="ok", score=0.1, reached={**graded(0.1).reached, "median": True}),
        card(),
        0.0,
        RewardRule(mode="cumulative", weights={"format": 0.7, "median": 0.3}),
    )
    assert first.total == second.total == 0.3


def test_skill_needs_a_floor_below_gold() -> None:
    with pytest.raises(UsageError, match="floor"):
        skill(0.5, card(floor=None))
    with pytest.raises(UsageError, match="floor"):
        skill(0.5, card(floor=0.8))
    assert skill(0.4, card()) == pytest.approx(0.5)


def test_rules_from_a_configuration() -> None:
    assert reward_rule(RewardSection()) == PRESETS["paper"]
    weights = {"format": 0.5, "gold": 0.5}
    own = reward_rule(RewardSection(mode="cumulative", weights=weights))
    assert own.weights == weights
    with pytest.raises(UsageError, match="did you mean 'sparse'"):
        reward_rule(RewardSection(preset="spars"))


@pytest.mark.parametrize(
    ("mode", "weights", "message"),
    [
        ("cumulative", {"format": 0.5, "gold": 0.4}, "sum to 0.9"),
        ("exclusive", {"format": 0.1, "silver": 0.5, "gold": 0.5}, "sum to 0.6"),
        ("cumulative", {"format": 1.5, "gold": -0.5}, "negative"),
        ("cumulative", {"format": 0.5, "medal": 0.5}, "unknown reward part 'medal'"),
        ("cumulative", {"format": 0.5, "skill": 0.5}, "continuous mode only"),
        ("continuous", {"skill": 0.5, "gold": 0.5}, "not for milestones"),
        ("exclusive", {"execute": 0.2, "bronze": 0.8}, "pays less"),
    ],
)
def test_impossible_weights_are_refused(mode: str, weights: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RewardRule(mode=mode, weights=weights)
