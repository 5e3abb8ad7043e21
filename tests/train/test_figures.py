"""Which groups teach something, and where the seconds of a step went."""

import pytest

from sandmle.train.collect import Clock
from sandmle.train.figures import flat_groups, phases


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
    seconds = phases(clock, wall=20.0, batch=10.0, forward=1.5)
    assert seconds == {
        "seconds": 20.0,
        "seconds_generate": 5.0,
        "seconds_execute": 2.5,
        "seconds_update": 11.5,
        "seconds_other": 1.0,  # 10 until the batch was ready, of which 9.5 are named, and our share
    }
    assert sum(seconds.values()) == 40.0
