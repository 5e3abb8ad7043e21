"""What the checker accepts, and the arrays it gives; what it refuses is in tests/grading."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.tasks.submission import (
    Invalid,
    check,
    label_speller,
    parse_number,
    read_json_lines,
    read_table,
    to_csv,
)

NUMBER = {
    "id_column": "id",
    "columns": [
        {"name": "y", "kind": "number", "choices": None, "minimum": 0.0, "maximum": 1.0,
         "max_items": None},
    ],
    "n_rows": 3,
    "row_sum": None,
}  # fmt: skip


def test_columns_come_in_the_order_of_the_ids() -> None:
    checked = check(b"y,id\n0.3,c\n0.1,a\n0.2,b\n", NUMBER, ["a", "b", "c"])
    assert checked["y"].tolist() == [0.1, 0.2, 0.3]


def test_values_just_outside_the_range_are_clipped() -> None:
    """A float32 probability of one prints as 1.0000001; it is not a different answer."""
    checked = check(b"id,y\na,1.0000001\nb,-1e-9\nc,1\n", NUMBER, ["a", "b", "c"])
    assert checked["y"].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(Invalid, match="outside"):
        check(b"id,y\na,1.00001\nb,0\nc,1\n", NUMBER, ["a", "b", "c"])


def test_without_an_id_column_rows_are_counted() -> None:
    schema = {**NUMBER, "id_column": None}
    assert check(b"y\n0.5\n0.1\n0.2\n", schema, None)["y"].tolist() == [0.5, 0.1, 0.2]
    with pytest.raises(Invalid, match="there are 2 rows, 3 expected"):
        check(b"y\n0.5\n0.1\n", schema, None)


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1", 1), ("-1.5", -1.5), ("+.5", 0.5), ("5.", 5), ("1e3", 1000), ("2.5E-3", 0.0025)],
)
def test_numbers(cell: str, value: float) -> None:
    assert parse_number(cell) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_survives_printing(value: float) -> None:
    assert parse_number(repr(value)) == value
    assert parse_number(str(np.float64(value))) == value


@given(st.text())
def test_numbers_are_never_taken_from_words(text: str) -> None:
    value = parse_number(text)
    assert np.isnan(value) or set(text) <= set("0123456789+-.eE")


def test_labels_that_are_whole_numbers_may_end_in_point_zero() -> None:
    spell = label_speller(("0", "1", "10"))
    assert [spell(c) for c in ("1", "1.0", "10.", "1.5", "01", "", "True")] == [
        "1", "1", "10", None, None, None, None,
    ]  # fmt: skip
    assert label_speller(("0", "x"))("0.0") is None


@pytest.mark.parametrize(
    ("row", "valid"),
    [
        ("0.333,0.333,0.333", True),
        ("0.334,0.334,0.333", True),
        ("0.999,0,0", True),
        ("0.3,0.3,0.399", True),
        ("0.998,0,0", False),
        ("0.334,0.334,0.334", False),
    ],
)
def test_rows_rounded_to_three_digits_add_up(row: str, valid: bool) -> None:
    columns = [{**NUMBER["columns"][0], "name": name} for name in "abc"]
    schema = {**NUMBER, "columns": columns, "n_rows": 1, "row_sum": 1.0}
    data = f"id,a,b,c\nx,{row}\n".encode()
    if valid:
        assert check(data, schema, ["x"])
    else:
        with pytest.raises(Invalid, match="add up to"):
            check(data, schema, ["x"])


def test_true_and_false_fold_only_if_they_are_all_the_classes() -> None:
    assert label_speller(("True", "False"))("TRUE") == "True"
    assert label_speller(("True", "true", "False"))("TRUE") is None


def test_a_hostile_number_takes_linear_time() -> None:
    """A quadratic pattern would take minutes here; the test would not end."""
    for cell in ("1" * 1_000_000 + "x", "." * 1_000_000, "1e" + "1" * 1_000_000 + "x"):
        assert np.isnan(parse_number(cell))


def test_blank_lines_at_the_end_are_not_kept() -> None:
    table = read_table(b"id,y\na,1\n" + b"\n" * 1000)
    assert table.rows == [["a", "1"]]
    with pytest.raises(Invalid, match=r"row 2 \(line 3\) is blank"):
        read_table(b"id,y\na,1\n\nb,2\n")


def test_reading_stops_at_the_row_limit() -> None:
    data = b"id,y\n" + b"a,1\n" * 50
    assert len(read_table(data, most_rows=50).rows) == 50
    with pytest.raises(Invalid, match="more than 49 rows"):
        read_table(data, most_rows=49)


def test_quoted_commas_and_newlines_are_text() -> None:
    table = read_table(b'id,text\n1,"a,b\nc"\n2,"say ""hi"""\n')
    assert table.column("text") == ["a,b\nc", 'say "hi"']
    assert table.lines == [3, 4]


@given(st.lists(st.text('a,"\n é'), min_size=1))
def test_what_is_written_is_read_back(cells: list[str]) -> None:
    table = read_table(to_csv({"id": cells, 'a "b", c': cells[::-1]}))
    assert table.header == ["id", 'a "b", c']
    assert table.rows == [list(row) for row in zip(cells, cells[::-1], strict=True)]


def test_json_lines_have_the_text_form_of_a_table() -> None:
    table = read_json_lines(b'{"id": "07", "y": 1.5, "z": null, "b": true}\n')
    assert table.rows == [["07", "1.5", "", "True"]]
    assert read_json_lines('{"id": "b\u2028\x85", "y": "0"}\n'.encode()).rows[0][0] == "b\u2028\x85"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n{"b": 1}\n', "same keys"),
        (b"1\n2\n", "must be a JSON object"),
        (b"null\n", "must be a JSON object"),
        (b'"ab"\n"ab"\n', "must be a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": ["cat", "dog"]}\n', "not a single value"),
    ],
)
def test_json_lines_that_are_no_table_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        read_json_lines(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(Invalid):
        table = read_table(data)
        assert all(len(row) == len(table.header) for row in table.rows)
