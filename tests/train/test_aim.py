"""The sampler that aims at a rate: what it wants, worked by hand."""

import math
from collections import Counter

import pytest

from sandmle.config import GRPOSection
from sandmle.train.aim import LEAST, PRIOR, WINDOW, Aim
from sandmle.train.sampling import InBatches
from sandmle.types import Trajectory
from train.conftest import ScriptedSampler

KINDS = {"a": "easy", "b": "even", "c": "even", "d": "hard"}
SOLVED = {"easy": 10, "even": 5, "hard": 0}


@pytest.fixture
def one(collector, corpus, tokenizer) -> Trajectory:
    """An episode that reached every milestone."""
    sampler = InBatches(ScriptedSampler(tokenizer, ["good", "good"]))
    return collector.play([corpus[0]] * 2, sampler, step=0)[0].trajectory


def history(one: Trajectory, step: int) -> list[Trajectory]:
    """Ten episodes of each kind; of the even one, five reach the median."""
    grade = one.grade.model_copy(update={"reached": dict.fromkeys(one.grade.reached, False)})
    task = {kind: name for name, kind in KINDS.items()}
    return [
        one.model_copy(
            update={
                "task_id": task[kind],
                "sampling": {"step": step, "group": 0},
                "grade": one.grade if i < SOLVED[kind] else grade,
            }
        )
        for kind in SOLVED
        for i in range(10)
    ]


def test_weights_worked_by_hand(one: Trajectory) -> None:
    aim = Aim(KINDS, GRPOSection(aim=0.5, tasks_per_step=2), 0, history(one, 3))
    rates = aim.rates(4)
    assert PRIOR == 8
    assert rates == pytest.approx({"easy": 14 / 18, "even": 9 / 18, "hard": 4 / 18})
    far = math.exp(-((5 / 18 / 0.2) ** 2) / 2)
    assert aim.weights(4) == pytest.approx([far, 1, 1, far])
    assert aim.weights(3) == [1, 1, 1, 1], "a step does not know itself, nor what comes"
    assert aim.weights(3 + WINDOW) == pytest.approx([far, 1, 1, far])
    assert aim.weights(4 + WINDOW) == [1, 1, 1, 1], "what is long ago is forgotten"


def test_what_is_far_off_is_still_drawn(one: Trajectory) -> None:
    many = [past for step in range(5) for past in history(one, step)]
    aim = Aim(KINDS, GRPOSection(aim=0.9, tasks_per_step=3), 0, many)
    even = math.exp(-2)  # its rate is 0.4 off, two widths
    easy = math.exp(-(((54 / 58 - 0.9) / 0.2) ** 2) / 2)
    assert aim.weights(5) == pytest.approx([easy, even, even, LEAST])
    assert len(set(aim.draw(5))) == 3, "no task twice"
    drawn = Counter(
        number
        for seed in range(400)
        for number in Aim(KINDS, GRPOSection(aim=0.9, tasks_per_step=1), seed, many).draw(5)
    )
    total = easy + 2 * even + LEAST
    for number, weight in enumerate((easy, even, even, LEAST)):
        assert drawn[number] / 400 == pytest.approx(weight / total, abs=0.08)
    assert drawn[3] > 0


def test_another_goal_is_another_rate(one: Trajectory) -> None:
    grpo = GRPOSection(aim=0.5, aim_at="valid")
    assert set(Aim(KINDS, grpo, 0, history(one, 0)).rates(1).values()) == {1.0}
