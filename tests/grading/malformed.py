"""Malformed submissions, made systematically: every fault on every kind of submission it fits.

The faults come from field reports of graders (see `test_field_reports.py`) and from a table of what
50 public graders did with them. Each is a function from the lines of a good submission to bytes.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sandmle.tasks.submission import MAX_BYTES

Rows = list[list[str]]
Fault = Callable[[Rows], bytes]


class Sort(NamedTuple):
    """A kind of submission: metric, answers, a good submission, classes, form of a cell."""

    metric: str
    answers: str
    good: str
    classes: tuple[str, ...] = ()
    form: dict[str, Any] = {}


SORTS = {
    "label": Sort(
        "accuracy",
        "id,label\n007,cat\n010,dog\na-3,owl\nb 4,cat\n",
        "id,label\n007,cat\n010,dog\na-3,cat\nb 4,cat\n",
        ("cat", "dog", "owl"),
    ),
    "number": Sort(
        "rmse",
        "id,label\n007,1.5\n010,2\na-3,-3\nb 4,4e2\n",
        "id,label\n007,1.25\n010,2\na-3,-3\nb 4,4e2\n",
    ),
    "nonnegative": Sort(
        "rmsle",
        "id,label\n007,1.5\n010,2\na-3,3\nb 4,4\n",
        "id,label\n007,1\n010,2\na-3,3\nb 4,0\n",
    ),
    "probability": Sort(
        "log_loss",
        "id,label\n007,1\n010,0\na-3,1\nb 4,0\n",
        "id,label\n007,0.9\n010,0.2\na-3,0.5\nb 4,0\n",
    ),
    "probabilities": Sort(
        "log_loss_multiclass",
        "id,cat,dog,owl\n007,1,0,0\n010,0,1,0\na-3,0,0,1\nb 4,1,0,0\n",
        "id,cat,dog,owl\n007,0.7,0.2,0.1\n010,0.1,0.8,0.1\na-3,0,0,1\nb 4,0.4,0.3,0.3\n",
        ("cat", "dog", "owl"),
    ),
    "lists": Sort(
        "map",
        "id,label\n007,cat\n010,dog\na-3,owl\nb 4,cat dog\n",
        "id,label\n007,cat dog\n010,dog\na-3,cat owl\nb 4,dog\n",
        ("cat", "dog", "owl"),
    ),
    "masks": Sort(
        "dice",
        "id,label\n007,1 3\n010,\na-3,2 3 9 1\nb 4,12 1\n",
        "id,label\n007,1 2 3 1\n010,\na-3,  1 4  9 1 \nb 4,\n",
        form={"shape": (3, 4)},
    ),
    "boxes": Sort(
        "ap50",
        "id,label\n007,1 0 0 9.5 9\n010,\na-3,1 0 0 8 8 1 9 9 4 4\nb 4,0 -1 5 3 3\n",
        "id,label\n007,0.9 1 0 9 9\n010,\na-3,0 0 0 8 8  1.0000001 9 9 4 4 \nb 4,\n",
        form={"max_items": 2},
    ),
    "texts": Sort(
        "word_jaccard",
        "id,label\n007,too late\n010,\na-3,NA\nb 4,a door\n",
        "id,label\n007,Late\n010,\na-3,none\nb 4,a  DOOR!\n",
    ),
    "columns": Sort(
        "mean_roc_auc",
        "id,cat,dog,owl\n007,1,1,0\n010,0,0,0\na-3,0,0,1\nb 4,1,0,0\n",
        "id,cat,dog,owl\n007,0.7,0.9,0.1\n010,0.1,0.8,0.1\na-3,0,1,1\nb 4,0,0.3,0.3\n",
        ("cat", "dog", "owl"),
    ),
    "shares": Sort(
        "kl_divergence",
        "id,cat,dog,owl\n007,0.5,0.5,0\n010,0,1,0\na-3,0.3334,0.3333,0.3333\nb 4,1,0,0\n",
        "id,cat,dog,owl\n007,0.7,0.2,0.1\n010,0.1,0.8,0.1\na-3,0,0,1\nb 4,0.4,0.3,0.3\n",
        ("cat", "dog", "owl"),
    ),
    "table": Sort(
        "mcrmse",
        "id,cat,dog,owl\n007,1.5,1,0\n010,2,-1,0\na-3,-3,0,1\nb 4,4e2,0,0\n",
        "id,cat,dog,owl\n007,0.7,0.9,0.1\n010,0.1,-8,0.1\na-3,0,1,1\nb 4,9,0.3,0.3\n",
        ("cat", "dog", "owl"),
    ),
    "places": Sort(
        "haversine",
        "id,cat,dog,group\n007,1.5,1,x\n010,2,-1,x\na-3,-3,0,y\nb 4,90,-180,y\n",
        "id,cat,dog\n007,0.7,0.9\n010,0.1,-8\na-3,0,1\nb 4,9,0.3\n",
        ("cat", "dog"),
    ),
    "sets": Sort(
        "set_f1_micro",
        "id,label\n007,late red\n010,\na-3,NA\nb 4,door\n",
        "id,label\n007,red  late\n010,door\na-3,\nb 4,red\n",
    ),
}


def text(rows: Rows, separator: str = ",", end: str = "\n") -> bytes:
    return "".join(separator.join(row) + end for row in rows).encode()


def cell(value: str, row: int = 2, column: int = 1) -> Fault:
    """Put a value into one cell; column 0 is the id."""

    def change(rows: Rows) -> bytes:
        rows[row][column] = value
        return text(rows)

    return change


def raw(data: bytes) -> Fault:
    return lambda rows: data


def without(row: int) -> Fault:
    return lambda rows: text(rows[:row] + rows[row + 1 :])


def extra(*cells: str) -> Fault:
    return lambda rows: text([*rows, [*cells, *rows[1][len(cells) :]]])


def wider(header: str, value: str, first: bool = False) -> Fault:
    def change(rows: Rows) -> bytes:
        more = [header, *[value] * (len(rows) - 1)]
        return text([[m, *r] if first else [*r, m] for m, r in zip(more, rows, strict=True)])

    return change


def drop_column(position: int) -> Fault:
    return lambda rows: text([row[:position] + row[position + 1 :] for row in rows])


def rename(position: int, name: str) -> Fault:
    return cell(name, row=0, column=position)


def lossy_ids(rows: Rows) -> bytes:
    """What a default read_csv and to_csv make of ids that look like numbers."""
    return text([rows[0], *([row[0].lstrip("0") or "0", *row[1:]] for row in rows[1:])])


def data_swapped(rows: Rows) -> bytes:
    """The header in its order, the data columns reversed."""
    return text([rows[0], *(row[::-1] for row in rows[1:])])


FILES: dict[str, Fault] = {
    "empty": raw(b""),
    "blank": raw(b"\n \n\n"),
    "header_only": lambda rows: text(rows[:1]),
    "no_header": lambda rows: text(rows[1:]),
    "half_the_rows": lambda rows: text(rows[:3]),
    "semicolon": lambda rows: text(rows, ";"),
    "tab": lambda rows: text(rows, "\t"),
    "pipe": lambda rows: text(rows, "|"),
    "utf16": lambda rows: text(rows).decode().encode("utf-16"),
    "utf16_no_bom": lambda rows: text(rows).decode().encode("utf-16-le"),
    "latin1": lambda rows: text(rows).replace(b"a-3", b"\xe9-3"),
    "nul": lambda rows: text(rows).replace(b"a-3", b"a\x003"),
    "gzip": lambda rows: b"\x1f\x8b\x08\x00" + text(rows),
    "zip": lambda rows: b"PK\x03\x04" + text(rows),
    "parquet": lambda rows: b"PAR1\x15\x04" + text(rows),
    "pickle": lambda rows: b"\x80\x04\x95" + text(rows),
    "random_bytes": raw(bytes(range(255, 0, -1)) * 8),
    "json": raw(b'{"id": ["007"], "label": ["cat"]}'),
    "html": raw(b"<!doctype html><html><body>login, please</body></html>"),
    "unclosed_quote": lambda rows: text(rows) + b'"c-5,cat\n',
    "text_after_quote": lambda rows: text(rows).replace(b"010", b'"010"x'),
    "cr_and_lf_mixed": lambda rows: text(rows).replace(b"a-3", b"a\r-3"),
    "far_too_many_rows": lambda rows: text([*rows, *[rows[1]] * 3000]),
    "only_a_byte_order_mark": raw(b"\xef\xbb\xbf"),
    "blank_first_line": lambda rows: b"\n" + text(rows),
    "double_byte_order_mark": lambda rows: b"\xef\xbb\xbf" * 2 + text(rows),
    "long_line": lambda rows: text(rows) + b"x" * 1_000_000 + b"\n",
    "over_the_size_limit": lambda rows: text(rows) + b"x" * MAX_BYTES,
    "trailing_comma": lambda rows: text([rows[0], *([*row, ""] for row in rows[1:])]),
    "trailing_comma_everywhere": lambda rows: text([[*row, ""] for row in rows]),
    "short_row": lambda rows: text([*rows[:2], rows[2][:-1], *rows[3:]]),
    "blank_line_within": lambda rows: text(rows).replace(b"a-3", b"\na-3"),
    "data_columns_swapped": data_swapped,
    "index_column": wider("", "0", first=True),
    "named_index_column": wider("Unnamed: 0", "0", first=True),
    "extra_column": wider("confidence", "0.5"),
    "repeated_column": lambda rows: wider(rows[0][-1], "0")(rows),
    "no_id_column": drop_column(0),
    "no_target_column": drop_column(1),
    "id_renamed": rename(0, "Id"),
    "target_renamed": rename(1, "prediction"),
    "target_with_blank": lambda rows: rename(1, f" {rows[0][1]}")(rows),
}

IDS: dict[str, Fault] = {
    "id_missing": without(2),
    "last_row_missing": without(4),
    "id_twice": lambda rows: text([*rows, rows[1]]),
    "id_replaced_by_another": cell("007", row=2, column=0),
    "unknown_id_added": extra("zzz"),
    "unknown_id_instead": cell("zzz", row=2, column=0),
    "empty_id": cell("", row=2, column=0),
    "empty_id_added": extra(""),
    "leading_zeros_lost": lossy_ids,
    "id_as_float": cell("7.0", row=1, column=0),
    "id_with_blank": cell(" 007", row=1, column=0),
    "id_other_case": cell("A-3", row=3, column=0),
    "train_ids": lambda rows: text([rows[0], *([f"t{i}", *r[1:]] for i, r in enumerate(rows[1:]))]),
}

NUMBERS: dict[str, Fault] = {
    f"value_{name}": cell(value)
    for name, value in {
        "empty": "", "nan": "nan", "NaN": "NaN", "NA": "NA", "None": "None", "null": "null",
        "inf": "inf", "minus_inf": "-inf", "Infinity": "Infinity", "overflow": "1e999",
        "huge": "1e300", "word": "high", "percent": "50%", "underscore": "1_0", "hex": "0x1A",
        "decimal_comma": '"0,5"', "blank": " ", "padded": " 0.5 ", "two": "0.5 0.5",
        "wide_digits": "０.５", "bool": "True", "plus_plus": "++1", "list": '"[0.5]"',
        "formula": "=1+1", "date": "2026-01-01", "fraction": "1/2",
        "digits_then_letter": "1" * 100_000 + "x",
    }.items()
}  # fmt: skip

LABELS: dict[str, Fault] = {
    f"label_{name}": cell(value)
    for name, value in {
        "empty": "", "unknown": "horse", "case": "Cat", "padded": " cat", "nan": "nan",
        "index": "0", "probability": "0.93", "list": '"[\'cat\']"', "bytes": "b'cat'",
        "two": "cat;dog", "huge": "x" * 5000, "bool": "True", "ansi": "\x1b[31mcat",
    }.items()
}  # fmt: skip

LISTS: dict[str, Fault] = {
    f"list_{name}": cell(value)
    for name, value in {
        "empty": "", "blank": "  ", "unknown": "cat horse", "repeated": "cat cat",
        "too_many": "cat dog owl ant bee fly", "commas": '"cat,dog"', "tab": "cat\tdog",
        "hard_space": "cat\xa0dog", "newline": '"cat\ndog"',
    }.items()
}  # fmt: skip

MASKS: dict[str, Fault] = {
    f"mask_{name}": cell(value)
    for name, value in {
        "odd": "1", "three": "1 2 5", "from_zero": "0 2", "no_length": "4 0", "minus_one": "-1",
        "negative": "3 -1", "outside": "12 2", "far_outside": "999999999 999999999",
        "overlap": "1 3 3 2", "unsorted": "5 1 1 1", "twice": "2 1 2 1", "word": "none",
        "nan": "nan", "overflow": "1e999 1", "fraction": "1.0 2", "plus": "+1 2", "hex": "0x1 2",
        "underscore": "1_0 2", "wide_digits": "１ ２", "superscript": "² 1", "commas": '"1,2"',
        "tab": "1\t2", "newline": '"1\n2"', "hard_space": "1\xa02", "list": '"[1, 2]"',
        "nested": "[" * 100_000, "digits": "1" * 100_000, "digits_of_ten": "0000000001 1",
        "many": "1 1 " * 25_000, "blanks": " " * 100_000, "megabyte": "1" * 1_000_000,
    }.items()
}  # fmt: skip

BOXES: dict[str, Fault] = {
    f"box_{name}": cell(value)
    for name, value in {
        "four": "1 2 3 4", "nine": "1 2 3 4 5 1 2 3 4", "three_boxes": "1 2 3 4 5 " * 3,
        "unsure": "1.1 2 3 4 5", "percent_scale": "90 2 3 4 5", "negative_chance": "-0.1 2 3 4 5",
        "no_width": "1 2 3 0 5", "no_height": "1 2 3 4 0", "negative_width": "1 2 3 -4 5",
        "nan": "1 nan 3 4 5", "inf": "1 2 inf 4 5", "overflow": "1 1e999 3 4 5",
        "overflow_below": "1 2 3 4 -1e999", "far_away": "1 1e7 3 4 5", "word": "none",
        "nan_chance": "nan 2 3 4 5", "label_first": "cat 1 2 3 4 5", "commas": '"1,2,3,4,5"',
        "tab": "1\t2\t3\t4\t5", "list": '"[1, 2, 3, 4, 5]"', "percent": "90% 2 3 4 5",
        "underscore": "1 1_0 3 4 5", "wide_digits": "１ 2 3 4 5", "nested": "[" * 100_000,
        "digits": "1" * 100_000, "many": "1 1 1 1 1 " * 10_000, "megabyte": "1" * 1_000_000,
    }.items()
}  # fmt: skip

TEXTS: dict[str, Fault] = {
    f"text_{name}": cell(value)
    for name, value in {
        "long": "x" * 2001, "long_blank": " " * 2001, "long_lines": '"' + "a\n" * 1001 + '"',
        "nested": "[" * 100_000, "megabyte": "word " * 200_000,
    }.items()
}  # fmt: skip

SPECIAL: dict[str, dict[str, Fault]] = {
    "nonnegative": {"negative": cell("-0.5")},
    "probability": {
        "negative": cell("-0.1"),
        "above_one": cell("1.1"),
        "one_1e9": cell("1e9"),
        "percent_scale": cell("90"),
    },
    "probabilities": {
        "negative": cell("-0.2"),
        "above_one": cell("1.2"),
        "row_sums_to_half": lambda rows: text([*rows[:3], ["a-3", "0", "0", "0.5"], rows[4]]),
        "row_sums_to_two": lambda rows: text([*rows[:3], ["a-3", "1", "0", "1"], rows[4]]),
        "all_zero": lambda rows: text([*rows[:3], ["a-3", "0", "0", "0"], rows[4]]),
        "one_label_column": lambda rows: text(
            [["id", "label"], *([r[0], "cat"] for r in rows[1:])]
        ),
    },
}

SPECIAL["places"] = {"beyond_the_pole": cell("90.1"), "below_the_pole": cell("-91")}
SPECIAL["shares"] = SPECIAL["probabilities"]
SPECIAL["columns"] = {
    name: SPECIAL["probabilities"][name] for name in ("negative", "above_one", "one_label_column")
}

VALUES = {
    "label": LABELS,
    "lists": LISTS,
    "masks": MASKS,
    "boxes": BOXES,
    "texts": TEXTS,
    "sets": TEXTS,
    **dict.fromkeys(("number", "nonnegative", "probability", "probabilities"), NUMBERS),
    **dict.fromkeys(("columns", "shares", "table", "places"), NUMBERS),
}


def malformed() -> Iterator[tuple[str, str, bytes]]:
    """Yield (kind of submission, fault, bytes)."""
    for sort, spec in SORTS.items():
        for name, fault in {**FILES, **IDS, **VALUES[sort], **SPECIAL.get(sort, {})}.items():
            rows = [line.split(",") for line in spec.good.splitlines()]
            yield sort, name, fault(rows)


# odd in form, and still exactly what was asked for
HARMLESS: dict[str, Fault] = {
    "bom": lambda rows: b"\xef\xbb\xbf" + text(rows),
    "crlf": lambda rows: text(rows, end="\r\n"),
    "cr": lambda rows: text(rows, end="\r"),
    "many_blank_lines_at_end": lambda rows: text(rows) + b"\n" * 1_000_000,
    "no_newline_at_end": lambda rows: text(rows)[:-1],
    "blank_lines_at_end": lambda rows: text(rows) + b"\n\n",
    "rows_reversed": lambda rows: text([rows[0], *rows[:0:-1]]),
    "columns_reversed": lambda rows: text([row[::-1] for row in rows]),
    "all_quoted": lambda rows: text([[f'"{c}"' for c in row] for row in rows]),
}
