import numpy as np
import pytest

from sandmle.stats import (
    kendall_tau,
    mean_interval,
    order_interval,
    paired_difference,
    win_rate,
)


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = mean_interval(rng.normal(1.0, 1.0, 40).tolist())[1:3]
        hits += low <= 1.0 <= high
    assert 0.88 <= hits / 200 <= 0.99


def test_interval_is_repeatable_and_empty_data_has_none() -> None:
    values = [0.1, 0.5, 0.9, 0.3]
    assert mean_interval(values) == mean_interval(values)
    assert mean_interval([]) == (None, None, None, 0, 0)
    assert mean_interval([2.0]) == (2.0, None, None, 1, 1), "one value says nothing of others"
    assert mean_interval([1.0, 3.0], ["a", "a"]) == (2.0, None, None, 2, 1)


def test_values_of_one_unit_are_drawn_together() -> None:
    """Ten copies of each of four values know no more than the four do."""
    values = [0.0, 1.0, 0.5, 0.7]
    few = mean_interval(values)
    many = mean_interval(values * 10, ["a", "b", "c", "d"] * 10)
    alone = mean_interval(values * 10)
    assert many.estimate == pytest.approx(few.estimate)
    assert many.high - many.low == pytest.approx(few.high - few.low, rel=0.1)
    assert alone.high - alone.low < 0.5 * (few.high - few.low)


def test_the_order_of_values_does_not_matter() -> None:
    values, units = [0.1, 0.9, 0.4, 0.2], ["a", "b", "a", "c"]
    turned = mean_interval(values[::-1], units[::-1])
    assert mean_interval(values, units) == pytest.approx(turned)
    assert mean_interval(values) == pytest.approx(mean_interval(values[::-1]))


def test_units_of_unequal_size_count_by_their_values() -> None:
    assert mean_interval([1, 1, 1, 0], ["a", "a", "a", "b"]) == (0.75, 0.0, 1.0, 4, 2)


def test_pairing_removes_what_units_share() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(0, 10, 60)
    better = base + 0.5 + rng.normal(0, 0.1, 60)
    estimate, low, high, n, _ = paired_difference(better.tolist(), base.tolist())
    assert estimate == pytest.approx(0.5, abs=0.1)
    assert 0 < low < estimate < high < 1
    assert n == 60
    with pytest.raises(ValueError, match="zip"):
        paired_difference([1.0], [1.0, 2.0])


def test_ties_count_one_half() -> None:
    assert win_rate([3, 1, 2, 2], [1, 3, 2, 2]) == 0.5
    assert win_rate([1], [0]) == 1.0
    assert win_rate([], []) is None


def test_kendall() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    # 6 pairs, one of them discordant: (5 - 1) / 6
    assert kendall_tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    assert kendall_tau([1, 1, 1], [1, 2, 3]) is None


def test_order_is_told_with_its_interval() -> None:
    """Means .1, .6, .5, .9: of six pairs one is turned, so tau is (5 - 1) / 6."""
    found = order_interval([[0.0, 0.2], [0.7, 0.5], [0.6, 0.4], [0.8, 1.0]])
    assert found.estimate == pytest.approx(4 / 6)
    assert (found.low, found.high) == (pytest.approx(4 / 6), pytest.approx(4 / 6)), "always so"
    assert order_interval([[1.0, 0.9], [0.1, 0.0]]).estimate == -1.0
    assert order_interval([[0.2], [0.4]]) == (1.0, None, None, 1, 1), "one unit says nothing"
    assert order_interval([[0.5, 0.5], [0.5, 0.5]]) == (None, None, None, 2, 2), "all are equal"
    # the columns disagree: a resample of only the one or only the other is as good as both
    mixed = order_interval([[0.0, 1.0], [0.9, 0.2]])
    assert (mixed.estimate, mixed.low, mixed.high) == (1.0, -1.0, 1.0)
