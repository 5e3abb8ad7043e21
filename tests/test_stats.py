import numpy as np
import pytest

from sandmle.stats import kendall_tau, mean_interval, paired_difference, win_rate


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
    assert mean_interval([]) == (None, None, None, 0)
    assert mean_interval([2.0]) == (2.0, 2.0, 2.0, 1)


def test_pairing_removes_what_units_share() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(0, 10, 60)
    better = base + 0.5 + rng.normal(0, 0.1, 60)
    estimate, low, high, n = paired_difference(better.tolist(), base.tolist())
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
