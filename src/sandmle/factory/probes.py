"""What carries no meaning, as numbers: where a shortcut to the answers would hide.

Each probe turns a table with its files into features of its rows, or into None where there is
nothing of its sort. That they explain nothing of the target is for the audit to check.
"""

import hashlib
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sandmle.factory.build import Draw
from sandmle.factory.family import VariableKind
from sandmle.factory.story import ASSETS, TEXTS
from sandmle.files import sha256
from sandmle.tasks.cells import parse_number
from sandmle.tasks.submission import Table, read_table

Floats = NDArray[np.float64]
_DIGITS = re.compile(r"\d+")
_LONG = ("series", "plan", "note")
_EDGE = 3  # pixels from a corner that are looked at one by one
_ENDS = 4  # samples at either end of a sound that are looked at one by one


class View(NamedTuple):
    """A table under audit with the files that belong to it; `names` are its feature columns."""

    table: Table
    id_column: str
    names: list[str]
    kinds: Mapping[str, VariableKind]
    files: Mapping[str, bytes]
    tables: Mapping[str, bytes]

    @classmethod
    def of(
        cls,
        content: bytes,
        drawn: Draw,
        id_column: str,
        targets: Sequence[str],
        kinds: Mapping[str, VariableKind],
    ) -> "View":
        """Look at one table of a draw: at every column of it, also at what is not planned."""
        table = read_table(content)
        names = [name for name in table.header if name not in (id_column, *targets)]
        return cls(table, id_column, names, kinds, drawn.assets, drawn.tables)

    def of_kind(self, kinds: Sequence[VariableKind]) -> list[str]:
        """Return the columns of some kinds."""
        return [name for name in self.names if self.kinds.get(name) in kinds]

    def texts(self, name: str) -> list[str]:
        """Return the texts of a column, from their files if they have any."""
        cells = self.table.column(name)
        if self.kinds[name] != "document":
            return cells
        return [self.files[path].decode() for path in cells]

    def content(self, name: str) -> list[str]:
        """Return the cells of a column, in the place of a path the hash of what is there."""
        cells = self.table.column(name)
        if self.kinds.get(name) not in ASSETS:
            return cells
        return [sha256(b"".join(self.files[p] for p in cell.split())) for cell in cells]


def order_probe(view: View) -> Floats:
    """Return the position of each row, and its remainders."""
    return order_features(len(view.table.rows))


def order_features(n: int) -> Floats:
    """Return the positions of n rows, and their remainders."""
    rows = np.arange(n, dtype=float)
    return np.column_stack([rows, *(rows % k for k in (2, 3, 4, 5, 10))])


def id_probe(view: View) -> Floats:
    """Return what an id can hide."""
    return name_features(view.table.column(view.id_column))


def name_features(names: Sequence[str]) -> Floats:
    """Return what a name can hide: its number, remainders, digits, length and hash."""
    found = [_DIGITS.findall(name) for name in names]
    numbers = np.array([float(parts[-1]) if parts else 0.0 for parts in found])
    digests = np.array([list(hashlib.sha256(name.encode()).digest()[:2]) for name in names])
    bits = np.unpackbits(digests.astype(np.uint8), axis=1).astype(float)
    digits = [np.floor(numbers / 10**k) % 10 for k in range(4)]
    letters = np.array([sum(map(ord, _DIGITS.sub("", name))) for name in names], dtype=float)
    rests = [numbers % k for k in (2, 3, 5, 7)]
    lengths = [len(name) for name in names]
    return np.column_stack([numbers, *rests, *digits, lengths, letters, bits])


def form_probe(view: View) -> Floats:
    """Return how cells are written: empty or not, how many decimals, blanks, capitals.

    Of single values only: how long a series is written depends on its numbers, and texts have a
    probe of their own.
    """
    columns: list[Any] = [np.zeros(len(view.table.rows))]
    for name in view.names:
        if view.kinds.get(name) in _LONG:
            continue
        cells = view.table.column(name)
        columns.append([float(cell == "") for cell in cells])
        columns.append([float(len(cell.partition(".")[2])) for cell in cells])
        columns.append([float(cell != cell.strip()) for cell in cells])
        columns.append([float(cell.isupper()) for cell in cells])
    return np.array(columns).T


def path_probe(view: View) -> Floats | None:
    """Return what the name of a file can hide, where it is not just the id."""
    ids = view.table.column(view.id_column)
    found = []
    for name in view.of_kind(ASSETS):
        cells = view.table.column(name)
        rests = [c.replace(i, "") for c, i in zip(cells, ids, strict=True)]
        if len(set(rests)) > 1 and view.kinds[name] != "frames":
            found.append(name_features(rests))
    return np.column_stack(found) if found else None


def file_probe(view: View) -> Floats | None:
    """Return the sizes of files and all that is in them beside pixels and samples."""
    found = []
    for name in view.of_kind(("image", "audio", "frames")):
        for cell in view.table.column(name):
            file = view.files[cell.split()[0]]
            size = len(file)
            parts = _png_parts(file) if file[:4] == b"\x89PNG" else _riff_parts(file)
            rest = b"".join(parts.other)
            stored = float(len(parts.data))
            found.append([size, stored, len(parts.other), len(rest), sum(rest), *parts.facts])
    return np.array(found, dtype=float).reshape(len(view.table.rows), -1) if found else None


class _Parts(NamedTuple):
    """A file in pieces: its content, numbers from its header, and whatever else is in it."""

    data: bytes
    facts: tuple[float, ...]
    other: list[bytes]


def _png_parts(file: bytes) -> _Parts:
    data, other, at = b"", [], 8
    facts: tuple[float, ...] = (0.0,) * 7
    while at + 8 <= len(file):
        length, name = struct.unpack(">I4s", file[at : at + 8])
        body = file[at + 8 : at + 8 + length]
        if name == b"IDAT":
            data += body
        elif name == b"IHDR":
            facts = tuple(map(float, struct.unpack(">IIBBBBB", body)))
        else:
            other.append(name + body)
        at += 12 + length
        if name == b"IEND":
            break
    return _Parts(data, facts, [*other, file[at:]])


def _riff_parts(file: bytes) -> _Parts:
    data, other, at = b"", [], 12
    facts: tuple[float, ...] = (0.0,) * 6
    while at + 8 <= len(file):
        name, length = struct.unpack("<4sI", file[at : at + 8])
        body = file[at + 8 : at + 8 + length]
        if name == b"data":
            data += body
        elif name == b"fmt ":
            facts = tuple(map(float, struct.unpack("<HHIIHH", body[:16])))
        else:
            other.append(name + body)
        at += 8 + length
    return _Parts(data, facts, [*other, file[at:]])


def corner_probe(view: View) -> Floats | None:
    """Return pixels near the corners of pictures and both ends of sounds, with their parity."""
    found: list[Floats] = []
    for name in view.of_kind(("image", "frames")):
        pixels = np.stack(
            [_corners(view.files[cell.split()[0]]) for cell in view.table.column(name)]
        )
        found += [pixels, pixels % 2]
    for name in view.of_kind(("audio",)):
        samples = np.stack([_ends(view.files[cell]) for cell in view.table.column(name)])
        found += [samples, samples % 2]
    return np.column_stack(found) if found else None


def _corners(file: bytes) -> Floats:
    import io

    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(file)))
    reach = np.r_[:_EDGE, -_EDGE:0]
    ends: Floats = pixels[reach][:, reach].astype(float).ravel()
    return ends


def _ends(file: bytes) -> Floats:
    samples = np.frombuffer(_riff_parts(file).data, "<i2").astype(float)
    ends: Floats = np.r_[samples[:_ENDS], samples[-_ENDS:]]
    return ends


def length_probe(view: View) -> Floats | None:
    """Return how long texts are and how they are set: not which words they have."""
    found = [[_setting(text) for text in view.texts(name)] for name in view.of_kind(TEXTS)]
    return np.column_stack(found).astype(float) if found else None


def _setting(text: str) -> list[int]:
    lines, words = text.splitlines(), text.split()
    return [
        len(text),
        len(words),
        len(lines),
        len(text) - len(text.strip()),
        text.count("  "),
        sum(c.isupper() for c in text),
        sum(c.isdigit() for c in text),
        sum(ord(c) > 126 for c in text),
    ]


def network_probe(view: View) -> Floats | None:
    """Return where the rows are found in other tables, and how what they name is numbered there."""
    found = [_places(view, _listed(content)) for content in view.tables.values()]
    return np.column_stack(found) if found else None


class _Listed(NamedTuple):
    """A table as the probe sees it: columns of numbers (n, k), and where each text stands."""

    numbers: Floats
    where: Mapping[str, Sequence[tuple[int, int]]]


@lru_cache(maxsize=4)  # train and test look at the same tables
def _listed(content: bytes) -> _Listed:
    rows = read_table(content).rows
    width = len(rows[0]) if rows else 0
    numeric = [k for k in range(width) if all(isfinite(parse_number(row[k])) for row in rows)]
    numbers = np.array([[parse_number(row[k]) for k in numeric] for row in rows])
    where: dict[str, list[tuple[int, int]]] = {}
    for side in sorted({*range(width)} - {*numeric}):
        for line, row in enumerate(rows):
            where.setdefault(row[side], []).append((line, side))
    return _Listed(numbers.reshape(len(rows), -1), {k: sorted(v) for k, v in where.items()})


def _places(view: View, table: _Listed) -> Floats:
    """Return, for each row: its first and mean place in a table, and how its lines are numbered."""
    keys = [view.id_column, *view.of_kind(("node", "query", "group"))]
    features = []
    for name in keys:
        cells = view.table.column(name)
        rows = [
            _place(table.where.get(cell, []), table.numbers, len(table.numbers)) for cell in cells
        ]
        features.append(np.array(rows, dtype=float))
    return np.column_stack(features)


def _place(lines: Sequence[tuple[int, int]], numbers: Floats, total: int) -> list[Any]:
    width = numbers.shape[1]
    if not lines:
        return [-1.0] * (3 + 3 * width)
    at = [line for line, _ in lines]
    mine = numbers[at]
    span = np.maximum(np.ptp(mine, axis=0), 1e-9)
    middle = (mine.mean(axis=0) - mine.min(axis=0)) / span
    first, last = ((mine[k] - mine.min(axis=0)) / span for k in (0, -1))
    side = np.mean([side for _, side in lines])
    return [at[0] / total, np.mean(at) / total, side, *middle, *first, *last]


PROBES: dict[str, Callable[[View], Floats | None]] = {
    "order": order_probe,
    "id": id_probe,
    "form": form_probe,
    "path": path_probe,
    "file": file_probe,
    "corner": corner_probe,
    "length": length_probe,
    "network": network_probe,
}
