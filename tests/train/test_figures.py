"""Which groups teach something, and where the seconds of a step went."""

import time

import pytest

from sandmle.train.collect import Clock
from sandmle.train.figures import Spent, flat_groups, phases


@pytest.mark.parametrize(
    ("rewards", "flat"),
    [
        ([0.1 + 0.2, 0.3, 0.3, 0.3], True),  # sums of weights that differ in their last bit
        ([0.4] * 4, True),
        ([0.4, 0.4, None, 0.4], True),
        ([None, None, None, 1.0], True),
        ([None] * 4, True),
        ([0.1, None, None, 1.0], False),
        ([0.3, 0.3, 0.3, 0.4], False),
    ],
)
def test_fr44_a_group_without_spread_is_flat(rewards: list[float | None], flat: bool) -> None:
    assert flat_groups([*rewards, 0.0, 1.0, 0.0, 1.0], 4) == [flat, False]


def test_the_phases_of_a_step_add_up_to_it() -> None:
    clock = Clock()
    clock.generate, clock.waiting, clock.handling = 5.0, 3.0, 0.5
    clock.cpu["generate"] = 9.0
    assert phases(clock, Spent(20.0, 10.0, 1.5), Spent(33.0, 13.0, 2.5)) == {
        "seconds": 20.0,
        "seconds_generate": 5.0,
        "seconds_execute": 2.5,
        "seconds_update": 11.5,
        "seconds_other": 1.0,  # 10 until the batch was ready, of which 9.5 are named, and our share
        "cpu_generate": 9.0,
        "cpu_update": 22.5,
        "cpu_other": 1.5,  # 33 in all
    }


def test_a_clock_counts_the_cpu_seconds_of_its_block() -> None:
    clock = Clock()
    with clock.of("collating"):
        sum(range(3_000_000))
    with clock.of("waiting"):
        time.sleep(0.2)
    assert clock.collating >= clock.cpu["collating"] > 0.01
    assert clock.cpu["waiting"] < 0.1 < clock.waiting
