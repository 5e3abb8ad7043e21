"""What the kinds say about their columns."""

import pytest

from sandmle.errors import UsageError
from sandmle.metrics.registry import METRICS


def test_a_schema_of_masks_needs_the_shape_and_one_of_boxes_their_number() -> None:
    dice, ap50 = METRICS.get("dice"), METRICS.get("ap50")
    assert dice.schema("id", "y", (), 1, shape=(4, 5)).columns[0].shape == (4, 5)
    assert ap50.schema("id", "y", (), 1, max_items=7).columns[0].max_items == 7
    with pytest.raises(UsageError, match="dice: a mask column needs shape"):
        dice.schema("id", "y", (), 1)
    with pytest.raises(UsageError, match="ap50: a boxes column needs max_items"):
        ap50.schema("id", "y", (), 1, shape=(4, 5))


def test_a_form_that_a_column_does_not_have_is_left_out() -> None:
    for name in ("accuracy", "exact_match", "mean_roc_auc"):
        plain = METRICS.get(name).schema("id", "y", ("a", "b"), 1)
        assert METRICS.get(name).schema("id", "y", ("a", "b"), 1, None, (4, 5), 7) == plain


def test_kinds_with_a_column_for_each_class_say_so() -> None:
    for metric in METRICS:
        form = {"shape": (4, 5), "max_items": 7}
        names = [c.name for c in metric.schema("id", "y", ("a", "b"), 1, **form).columns]
        assert names == (["a", "b"] if metric.kind.several else ["y"]), metric.name
