"""MLE-bench's competitions and our metrics."""

import metrics_page

from sandmle.metrics.registry import METRICS

RECORDS = metrics_page.competitions()


def test_every_competition_has_its_metric_or_a_reason() -> None:
    names = [name for record in RECORDS for name in record["competitions"]]
    assert len(names) == len(set(names)) == 82
    for record in RECORDS:
        assert set(record) <= {"name", "ours", "params", "note", "competitions"}
        if "ours" in record:
            METRICS.get(record["ours"]).check_params(record.get("params", {}))
        else:
            assert record["note"], record["name"]
    uncovered = [r["competitions"] for r in RECORDS if "ours" not in r]
    assert uncovered == [["3d-object-detection-for-autonomous-vehicles"]]


def test_parameters_have_the_types_of_the_defaults() -> None:
    for record in RECORDS:
        for name, value in record.get("params", {}).items():
            default = METRICS.get(record["ours"]).params[name]
            assert default is None or type(value) is type(default), record["name"]
