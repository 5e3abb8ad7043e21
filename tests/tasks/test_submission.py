"""What the checker accepts, and the arrays it gives; what it refuses is in tests/grading."""

import contextlib
import itertools
import time
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandmle.tasks.cells import (
    MAX_CELL,
    Invalid,
    decode_mask,
    encode_mask,
    parse_boxes,
    parse_mask,
    parse_number,
    sound_boxes,
)
from sandmle.tasks.submission import check, label_speller, read_json_lines, read_table, to_csv

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


CELL = {"name": "y", "choices": None, "minimum": None, "maximum": None, "max_items": 2,
        "shape": (2, 3)}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "cells", "values"),
    [
        ("mask", ("1 2 4 3", "", " 6  1 "), [[[0, 2], [3, 6]], [], [[5, 6]]]),
        ("mask", ("1 2 3 1", "2 2", "1 6"), [[[0, 2], [2, 3]], [[1, 3]], [[0, 6]]]),
        ("boxes", ("", ".5 1 -2 3e0 4", "0 0 0 1 1  1 9 9 2 .5"),
         [[], [[0.5, 1, -2, 3, 4]], [[0, 0, 0, 1, 1], [1, 9, 9, 2, 0.5]]]),
        ("text", ("", "nan ", "x" * 2000), ["", "nan ", "x" * 2000]),
    ],
)  # fmt: skip
def test_cells_with_a_form_of_their_own(kind: str, cells: tuple[str, ...], values: list) -> None:
    schema = {**NUMBER, "columns": [{**CELL, "kind": kind}]}
    data = to_csv({"id": ["c", "b", "a"], "y": cells[::-1]})
    checked = check(data, schema, ["a", "b", "c"])["y"]
    assert checked.shape == (3,)
    assert [v if kind == "text" else v.tolist() for v in checked] == values
    if kind != "text":
        assert {v.dtype for v in checked} == {np.dtype(int if kind == "mask" else float)}
        assert {v.shape[1] for v in checked} == {2 if kind == "mask" else 5}


@given(st.data(), st.integers(1, 9), st.integers(1, 9))
def test_a_mask_survives_being_written(data: st.DataObject, height: int, width: int) -> None:
    pixels = data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))
    mask = np.array(pixels).reshape(height, width)
    cell = encode_mask(mask)
    painted = np.zeros((height, width), dtype=bool)
    for start, end in parse_mask(cell, mask.shape):
        for pixel in range(start, end):
            painted[pixel % height, pixel // height] = True
    assert (painted == mask).all()
    assert (decode_mask(cell, mask.shape) == mask).all()
    assert encode_mask(decode_mask(cell, mask.shape)) == cell


def test_pixels_are_counted_down_the_columns() -> None:
    mask = np.array([[False, True, False], [True, True, False]])
    assert encode_mask(mask) == "2 3"
    assert encode_mask(np.zeros((4, 4), dtype=bool)) == ""
    with pytest.raises(Invalid, match="the mask holds 1 number"):
        decode_mask("7", (2, 3))


def test_the_longest_mask_is_short_enough() -> None:
    for shape in ((1, 1), (1, 2), (3, 3), (10, 10), (64, 64)):
        mask = np.zeros(shape[0] * shape[1], dtype=bool)
        mask[::2] = True
        mask = mask.reshape(shape, order="F")
        assert (decode_mask(encode_mask(mask), shape) == mask).all()


@pytest.mark.parametrize(
    "part",
    ["1", "1 ", "1 1 ", "0 1 ", "nan ", "1e999 ", "-1 ", "[", "(1 ", " ", ".", "1e", "9" * 9 + " "],
)
def test_a_hostile_cell_takes_no_time(part: str) -> None:
    """The longest cell that the csv module lets through, and one that it does not."""
    for size in (MAX_CELL, 1_000_000):
        cell = (part * size)[:size]
        started = time.process_time()
        for parse, form in ((parse_mask, (4096, 4096)), (parse_boxes, 10**6)):
            with contextlib.suppress(Invalid):
                parse(cell, form)
        assert time.process_time() - started < 1


@given(st.text("0123456789 .-+en", max_size=40))
def test_any_cell_is_read_or_refused(cell: str) -> None:
    with contextlib.suppress(Invalid):
        runs = parse_mask(cell, (5, 7))
        flat = [-1, *runs.ravel().tolist()]
        assert all(a < b if i % 2 else a <= b for i, (a, b) in enumerate(itertools.pairwise(flat)))
        assert flat[-1] <= 35
    with contextlib.suppress(Invalid):
        boxes = parse_boxes(cell, 3)
        assert np.isfinite(boxes).all()
        assert (boxes[:, 3:] > 0).all()


BOX = st.sampled_from(["", " ", ".5 1 -2 3e0 4", "1.000001 0 0 1 1  1 9 9 2 .5 ", "-0 1 1 1 1"])
FAULT = st.sampled_from(
    ["1", "1.1 2 3 4 5", "1 2 3 4 0", "nan 1 1 1 1", "1 1e7 1 1 1", "1 2\t3 4 5"]
)


@given(st.lists(BOX, max_size=5), st.lists(FAULT, max_size=1), st.randoms())
def test_boxes_are_read_at_once_as_one_by_one(
    sound: list[str], faulty: list[str], random: Random
) -> None:
    cells = [*sound, *faulty]
    random.shuffle(cells)
    together = sound_boxes(cells, 2)
    if faulty:
        assert together is None
        with pytest.raises(Invalid):
            [parse_boxes(cell, 2) for cell in cells]
    else:
        assert together is not None
        for own, cell in zip(together, cells, strict=True):
            assert np.array_equal(own, parse_boxes(cell, 2))


def test_three_boxes_in_one_cell_are_no_less_than_in_two() -> None:
    assert sound_boxes(["1 1 1 1 1 " * 3, ""], 2) is None
    assert sound_boxes(["1 1 1", "1 1"], 2) is None
    assert sound_boxes(["1 1 1 1 1" + " " * 400], 2) is None  # longer than any two boxes


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
