from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.env.tokens import TokenLedger

PIECES = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 99), max_size=6)), max_size=8)


def fill(pieces: list[tuple[bool, list[int]]]) -> TokenLedger:
    ledger = TokenLedger([1, 2])
    for sampled, ids in pieces:
        if sampled:
            ledger.add_sampled(ids, [-0.5] * len(ids))
        else:
            ledger.add_given(ids)
    return ledger


def test_fr39_three_turns_by_hand() -> None:
    ledger = TokenLedger([7, 8, 9])
    ledger.add_sampled([10, 11, 2], [-1.0, -2.0, -0.5])
    ledger.add_given([3, 20, 21])
    ledger.add_sampled([12, 2], [-0.1, -0.2])
    ledger.add_given([3, 22])
    ledger.add_sampled([13, 14])
    assert ledger.completion_ids == [10, 11, 2, 3, 20, 21, 12, 2, 3, 22, 13, 14]
    assert ledger.mask == [1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1]
    none = None
    assert ledger.logprobs == [
        -1.0,
        -2.0,
        -0.5,
        none,
        none,
        none,
        -0.1,
        -0.2,
        none,
        none,
        none,
        none,
    ]
    assert ledger.ids == [7, 8, 9, *ledger.completion_ids]


@given(PIECES, st.integers(0, 40))
def test_fr40_lists_have_one_length_and_the_mask_counts_what_was_sampled(pieces, length) -> None:
    ledger = fill(pieces)
    assert sum(ledger.mask) == sum(len(ids) for sampled, ids in pieces if sampled)
    assert ledger.completion_ids == [i for _, ids in pieces for i in ids]
    ledger.truncate(length)
    assert len(ledger.completion_ids) == len(ledger.mask) == len(ledger.logprobs)
    assert len(ledger.completion_ids) == min(length, sum(len(ids) for _, ids in pieces))


def test_fr40_unequal_lengths_are_refused() -> None:
    ledger = TokenLedger([1])
    with pytest.raises(ValueError, match="3 ids but 2 log-probs"):
        ledger.add_sampled([1, 2, 3], [-1.0, -1.0])
    assert ledger.completion_ids == []
    with pytest.raises(ValueError, match="prompt"):
        TokenLedger([])


def test_saved_and_read_back(tmp_path: Path) -> None:
    ledger = fill([(True, [3, 4]), (False, [5])])
    ledger.save(tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as saved:
        assert saved["prompt_ids"].tolist() == [1, 2]
        assert saved["completion_ids"].tolist() == [3, 4, 5]
        assert saved["mask"].tolist() == [1, 1, 0]
        assert saved["logprobs"][:2].tolist() == [-0.5, -0.5]
        assert np.isnan(saved["logprobs"][2])
