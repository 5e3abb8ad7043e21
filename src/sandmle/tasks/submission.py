"""The check of a submission's bytes against its schema: the only parser of submissions there is.

Text stays text: ids and labels are never read as numbers, "NA" is a label like any other, and
only an empty cell is missing. Columns are matched by name, rows by id. What does not fit raises
`Invalid` with a reason a person can act on.

The source of this module is copied into the `evaluator.py` of every task, so it uses the standard
library and numpy only, and takes the schema as the plain mapping that
`SubmissionSchema.model_dump()` gives.
"""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.tasks.cells import (
    RANGE_SLACK,
    Invalid,
    counted,
    parse_cell,
    parse_number,
    quoted,
    sound_boxes,
    split_labels,
)

MAX_BYTES = 64 << 20
ROW_SUM_TOLERANCE = 1e-3 + 1e-9  # three digits, and the noise of adding them
MAX_MAGNITUDE = 1e100  # squares of larger numbers overflow, and the score would be infinite
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_BINARY = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"PAR1\x15": "parquet",
    b"\x80": "pickle",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


class Table(NamedTuple):
    """A CSV file as text: `lines[i]` is the line of the file on which row i ends."""

    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        """Return the cells of a column; its name must be in the header."""
        position = self.header.index(name)
        return [row[position] for row in self.rows]


def read_table(data: bytes, most_rows: int | None = None) -> Table:
    """Read CSV bytes (UTF-8, with or without byte-order mark) without guessing any type.

    Raises `Invalid` for anything that is not a rectangle of text with one header line, and as soon
    as there are more than `most_rows` rows.
    """
    if not data.strip():
        raise Invalid("the file is empty")
    _require_text(data)
    stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
    reader = csv.reader(stream, strict=True)
    try:
        header = next(reader, [])
        repeated = [name for name, count in Counter(header).items() if count > 1]
        if repeated:
            raise Invalid(f"the header names {quoted(repeated[0])} twice")
        rows, lines = _read_rows(reader, len(header), most_rows)
    except csv.Error as error:
        raise Invalid(f"line {reader.line_num} is not valid CSV: {error}") from None
    return Table(header, rows, lines)


def _read_rows(reader: Any, width: int, most_rows: int | None) -> tuple[list[list[str]], list[int]]:
    """Read what follows the header, and the line on which each row ends."""
    rows: list[list[str]] = []
    lines: list[int] = []
    blank = 0  # blank lines may stand at the end; a hostile file may hold millions
    for row in reader:
        if not row:
            blank += 1
            continue
        if blank:
            line = reader.line_num - blank
            raise Invalid(f"row {len(rows) + 1} (line {line}) is blank, and rows follow it")
        if len(row) != width:
            raise Invalid(
                f"row {len(rows) + 1} (line {reader.line_num}) has {counted(len(row), 'field')}, "
                f"the header has {width}"
            )
        rows.append(row)
        lines.append(reader.line_num)
        if most_rows is not None and len(rows) > most_rows:
            raise Invalid(f"there are more than {counted(most_rows, 'row')}, far too many")
    return rows, lines


def to_csv(columns: Mapping[str, Sequence[str]]) -> bytes:
    """Write columns of one length as the CSV that `read_table` reads: header first, "\\n" ends."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return stream.getvalue().encode()


def read_json_lines(data: bytes) -> Table:
    """Read one JSON object a line, all with the same keys, into the same text form as a CSV."""
    lines = [line for line in data.decode("utf-8-sig").split("\n") if line.strip()]
    try:
        records = [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise Invalid(f"a line is not JSON: {error}") from None
    if not all(isinstance(record, dict) for record in records):
        raise Invalid("each line must be a JSON object")
    header = list(records[0]) if records else []
    if any(list(record) != header for record in records):
        raise Invalid("the lines do not all have the same keys")
    rows = [[_spell(value) for value in record.values()] for record in records]
    return Table(header, rows, list(range(1, len(rows) + 1)))


def _spell(value: Any) -> str:
    if isinstance(value, list | dict):
        raise Invalid(f"{quoted(str(value))} is not a single value")
    return "" if value is None else value if isinstance(value, str) else repr(value)


def check(
    data: bytes, schema: Mapping[str, Any], ids: Sequence[str] | None
) -> dict[str, NDArray[Any]]:
    """Check a submission and return its columns, one array each, in the order of `ids`.

    `label` columns come as arrays of str (n,), `number` as float64 (n,), others as object arrays
    (n,): `labels` of tuples of str, `text` of str, `mask` and `boxes` of what `parse_mask` and
    `parse_boxes` return. `ids` are the ids of the hidden rows, unique; None if rows have no ids.
    Raises `Invalid`.
    """
    if len(data) > MAX_BYTES:
        raise Invalid(f"the file has {len(data):,} bytes, the limit is {MAX_BYTES:,}")
    table = read_table(data, most_rows=2 * schema["n_rows"] + 1000)
    _check_header(table.header, schema)
    if not table.rows:
        raise Invalid(f"there is a header but no rows; {counted(schema['n_rows'], 'row')} expected")
    if schema["id_column"] is None or ids is None:
        if len(table.rows) != schema["n_rows"]:
            found = counted(len(table.rows), "row")
            raise Invalid(f"there are {found}, {schema['n_rows']} expected")
        names, order = [""] * len(table.rows), list(range(len(table.rows)))
    else:
        names = table.column(schema["id_column"])
        _check_ids(names, ids)
        position = {name: i for i, name in enumerate(names)}
        order = [position[name] for name in ids]
    checked = {}
    for column in schema["columns"]:
        cells = table.column(column["name"])
        checked[column["name"]] = _PARSERS[column["kind"]](cells, column, names, table.lines)
    if schema["row_sum"] is not None:
        _check_row_sum(checked, schema, names, table.lines)
    return {name: values[order] for name, values in checked.items()}


def _require_text(data: bytes) -> None:
    for magic, name in _BINARY.items():
        if data.startswith(magic):
            raise Invalid(f"the file is {name}, not CSV; write plain UTF-8 text")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(
            f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8 text; "
            "write the file with encoding='utf-8'"
        ) from None
    if b"\0" in data:
        raise Invalid(f"there is a NUL byte at position {data.index(0)}; write plain text")


def _check_header(header: Sequence[str], schema: Mapping[str, Any]) -> None:
    expected = [schema["id_column"]] if schema["id_column"] is not None else []
    expected += [column["name"] for column in schema["columns"]]
    missing = [name for name in expected if name not in header]
    extra = [name for name in header if name not in expected]
    if not missing and not extra:
        return
    facts = []
    if missing:
        facts.append(f"missing {_list(missing)}")
    if extra:
        facts.append(f"unexpected {_list(extra)}")
    hint = ""
    separator = next((s for s in ";\t|" if len(header) == 1 and s in header[0]), None)
    if separator is not None:
        hint = f"; the file is separated by {separator!r}, use commas"
    elif not missing and len(extra) == 1 and extra[0] in ("", "index", "Unnamed: 0"):
        hint = "; it looks like a written index, use to_csv(..., index=False)"
    elif {name.strip().lower() for name in extra} >= {name.lower() for name in missing} and missing:
        hint = "; names must match to the letter, blanks and case included"
    raise Invalid(f"the columns must be {_list(expected)}: {', '.join(facts)}{hint}")


def _check_ids(given: Sequence[str], ids: Sequence[str]) -> None:
    if "" in given:
        raise Invalid(f"row {given.index('') + 1} has an empty id")
    expected, counts = set(ids), Counter(given)
    missing = [name for name in ids if name not in counts]
    extra = [name for name in counts if name not in expected]
    repeated = [name for name, count in counts.items() if count > 1]
    facts = []
    if repeated:
        facts.append(f"{counted(len(repeated), 'id')} more than once: {_list(repeated)}")
    if missing:
        facts.append(f"{counted(len(missing), 'id')} missing: {_list(missing)}")
    if extra:
        facts.append(f"{counted(len(extra), 'unknown id')}: {_list(extra)}")
    if not facts:
        return
    hint = ""
    if missing and {_as_number(name) for name in missing} <= {_as_number(name) for name in given}:
        hint = "; as numbers they would match: read the id column as text (dtype=str)"
    raise Invalid(
        f"the ids must be those of the test rows, each once: {'; '.join(facts)}{hint} "
        f"({counted(len(given), 'row')} given, {len(ids)} expected)"
    )


def _parse_labels(
    cells: Sequence[str], column: Mapping[str, Any], ids: Sequence[str], lines: Sequence[int]
) -> NDArray[Any]:
    canonical = label_speller(column["choices"])
    values = [canonical(cell) for cell in cells]
    expected = f"is not one of {_list(column['choices'], 12, plain=True)}"
    _refuse([v is None for v in values], cells, column, ids, lines, expected)
    return np.array(values, dtype=object)


def label_speller(choices: Sequence[str]) -> Callable[[str], str | None]:
    """Return a function from a cell to the choice it spells, or None.

    A choice is spelled to the letter, with two exceptions that cannot be mistaken: True and False
    in any case, and, where all choices are whole numbers, a trailing `.` with zeros.
    """
    known = {choice: choice for choice in choices}
    if len(choices) == 2 and {choice.lower() for choice in choices} == {"true", "false"}:
        folded = {choice.lower(): choice for choice in choices}
        return lambda cell: folded.get(cell.lower())
    if all(_INTEGER.fullmatch(choice) for choice in choices):
        return lambda cell: known.get(cell) or known.get(re.sub(r"\.0*$", "", cell))
    return known.get


def _parse_numbers(
    cells: Sequence[str], column: Mapping[str, Any], ids: Sequence[str], lines: Sequence[int]
) -> NDArray[Any]:
    values = np.array([parse_number(cell) for cell in cells], dtype=float)
    _refuse(np.isnan(values), cells, column, ids, lines, "is not a finite number")
    huge = np.abs(values) > MAX_MAGNITUDE
    _refuse(huge, cells, column, ids, lines, f"is larger than {MAX_MAGNITUDE:g}")
    low = -math.inf if column["minimum"] is None else column["minimum"]
    high = math.inf if column["maximum"] is None else column["maximum"]
    outside = (values < low - RANGE_SLACK) | (values > high + RANGE_SLACK)
    _refuse(outside, cells, column, ids, lines, f"is outside [{low:g}, {high:g}]")
    clipped: NDArray[Any] = np.clip(values, low, high)
    return clipped


def _parse_label_lists(
    cells: Sequence[str], column: Mapping[str, Any], ids: Sequence[str], lines: Sequence[int]
) -> NDArray[Any]:
    lists = [split_labels(cell) for cell in cells]
    limit, choices = column["max_items"], column["choices"]
    _refuse([not v for v in lists], cells, column, ids, lines, "holds no label")
    too_many = [len(v) > limit for v in lists]
    _refuse(too_many, cells, column, ids, lines, f"has more than {counted(limit, 'label')}")
    repeats = [len(set(v)) < len(v) for v in lists]
    _refuse(repeats, cells, column, ids, lines, "names a label twice")
    if choices is not None:
        known = set(choices)
        unknown = [not known.issuperset(v) for v in lists]
        expected = f"holds a label that is not one of {_list(choices, 12, plain=True)}"
        _refuse(unknown, cells, column, ids, lines, expected)
    result = np.empty(len(lists), dtype=object)
    result[:] = lists
    return result


def _parse_cells(
    cells: Sequence[str], column: Mapping[str, Any], ids: Sequence[str], lines: Sequence[int]
) -> NDArray[Any]:
    result = np.empty(len(cells), dtype=object)
    faults: dict[int, str] = {}
    if column["kind"] == "boxes":
        boxes = sound_boxes(cells, column["max_items"])
        if boxes is not None:
            return np.fromiter(boxes, dtype=object, count=len(cells))
    for i, cell in enumerate(cells):
        try:
            result[i] = parse_cell(cell, column)
        except Invalid as error:
            faults[i] = str(error)
    wrong = [i in faults for i in range(len(cells))]
    _refuse(wrong, cells, column, ids, lines, next(iter(faults.values()), ""))
    return result


_PARSERS = {
    "label": _parse_labels,
    "number": _parse_numbers,
    "labels": _parse_label_lists,
    **dict.fromkeys(("mask", "boxes", "text"), _parse_cells),
}


def _check_row_sum(
    columns: Mapping[str, NDArray[Any]],
    schema: Mapping[str, Any],
    ids: Sequence[str],
    lines: Sequence[int],
) -> None:
    names = [column["name"] for column in schema["columns"] if column["kind"] == "number"]
    sums = np.sum([columns[name] for name in names], axis=0)
    wrong = np.flatnonzero(np.abs(sums - schema["row_sum"]) > ROW_SUM_TOLERANCE)
    if len(wrong):
        first = int(wrong[0])
        raise Invalid(
            f"{_where(first, ids, lines)}: the {len(names)} columns add up to {sums[first]:g}, "
            f"not to {schema['row_sum']:g}{_more(len(wrong))}"
        )


def _refuse(
    wrong: Iterable[bool],
    cells: Sequence[str],
    column: Mapping[str, Any],
    ids: Sequence[str],
    lines: Sequence[int],
    fault: str,
) -> None:
    rows = [i for i, bad in enumerate(wrong) if bad]
    if rows:
        first = rows[0]
        what = f"value {quoted(cells[first])}" if cells[first] else "an empty cell"
        raise Invalid(
            f"{_where(first, ids, lines)}, column {quoted(column['name'])}: {what} "
            f"{fault}{_more(len(rows))}"
        )


def _where(row: int, ids: Sequence[str], lines: Sequence[int]) -> str:
    name = f", id {quoted(ids[row])}" if ids[row] else ""
    return f"row {row + 1} (line {lines[row]}{name})"


def _more(count: int) -> str:
    return f" (and in {counted(count - 1, 'more row')})" if count > 1 else ""


def _as_number(text: str) -> float | str:
    value = parse_number(text)
    return text if math.isnan(value) else value


def _list(names: Sequence[str], most: int = 5, plain: bool = False) -> str:
    shown = [name if plain and name.isprintable() else quoted(name) for name in names[:most]]
    return ", ".join(shown) + (", ..." if len(names) > most else "")
