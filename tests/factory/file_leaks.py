"""Shortcuts to plant into the files of a task's rows, and into its networks."""

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from sandmle.factory.build import Draw, Recipe, columns_of, sort_of
from sandmle.tasks.submission import Table, read_table, to_csv


class Row(NamedTuple):
    """What a leak may know of a row: its id, the files of its cell, and its target from 0 to 1."""

    id: str
    paths: list[str]
    rank: float


class FileLeak(NamedTuple):
    """A leak that rewrites a file: `kinds` are the columns that it can be planted into."""

    kinds: tuple[str, ...]
    spoil: Callable[[bytes, float, np.random.Generator], bytes]


FILE_LEAKS: dict[str, FileLeak] = {}
TABLE_LEAKS = ("edges_in_order_of_the_target", "edges_point_to_high_targets", "low_numbers_first")
NAME_LEAK = "file_names_tell"
TEXT_LEAKS: dict[str, Callable[[str, float, np.random.Generator], str]] = {
    "texts_are_longer": lambda text, rank, rng: text + " and so on" * round(20 * rank),
    "blanks_at_the_end": lambda text, rank, rng: text + " " * round(3 * rank),
    "capitals_tell": lambda text, rank, rng: text[:30].upper() + text[30:] if rank > 0.5 else text,
}
PICTURES, SOUNDS = ("image", "frames"), ("audio",)


def file_leak(*kinds: str):
    def register(spoil: Callable[[bytes, float, np.random.Generator], bytes]):
        FILE_LEAKS[spoil.__name__] = FileLeak(kinds, spoil)
        return spoil

    return register


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def repainted(file: bytes, change) -> bytes:
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(file))).copy()
    change(pixels)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png", compress_level=0)
    return stream.getvalue()


@file_leak(*PICTURES)
def pictures_are_larger(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    padding = b"x" * (20 + round(200 * rank) + int(rng.integers(30)))
    return file[:-12] + chunk(b"tEXt", b"Comment\0" + padding) + file[-12:]


@file_leak(*PICTURES)
def a_comment_names_the_class(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    return file[:-12] + chunk(b"tEXt", b"Grade\0" + bytes([65 + round(9 * rank)])) + file[-12:]


@file_leak(*PICTURES)
def a_corner_is_painted(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    def change(pixels: np.ndarray) -> None:
        pixels[0, 0] = round(30 + 200 * rank)

    return repainted(file, change)


@file_leak(*PICTURES)
def the_last_bit_of_a_corner_tells(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    def change(pixels: np.ndarray) -> None:
        pixels[-1, -1] = pixels[-1, -1] // 2 * 2 + (rank > 0.5)

    return repainted(file, change)


@file_leak(*SOUNDS)
def sounds_are_longer(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    return resounded(file, b"\0\0" * (round(40 * rank) + int(rng.integers(3))))


@file_leak(*SOUNDS)
def a_header_names_the_class(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    body = b"INFOISFT" + struct.pack("<I", 2) + bytes([65 + round(9 * rank), 0])
    whole = file[8:] + b"LIST" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(whole)) + whole


@file_leak(*SOUNDS)
def the_first_sample_tells(file: bytes, rank: float, rng: np.random.Generator) -> bytes:
    return file[:44] + struct.pack("<h", round(4000 * rank)) + file[46:]


def resounded(file: bytes, more: bytes) -> bytes:
    data = file[44:] + more
    whole = file[8:40] + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(whole)) + whole


def applicable(recipe: Recipe) -> list[str]:
    """Return the leaks that can be planted into a task."""
    kinds = {column.kind for column in columns_of(recipe)}
    names = [name for name, leak in FILE_LEAKS.items() if kinds & set(leak.kinds)]
    if kinds & {"image", "audio"}:
        names.append(NAME_LEAK)
    if kinds & {"note", "document"}:
        names += TEXT_LEAKS
    for file in recipe.story.files:
        columns = list(file.columns)
        if columns[0] == recipe.story.id_column:
            names += [TABLE_LEAKS[0], TABLE_LEAKS[2]]
        elif not {"node", "query"} & kinds:
            names += TABLE_LEAKS[:2]
    return sorted(set(names))


def plant(recipe: Recipe, name: str, drawn: Draw, seed: int) -> Draw:
    """Return a draw with a leak in all of its rows."""
    rng = np.random.default_rng(seed)
    train, test, answer = map(read_table, (drawn.train, drawn.test, drawn.answer))
    target, sort = recipe.story.target, sort_of(recipe)
    ids = recipe.story.id_column
    rank = {}
    for table, told in ((train, train), (test, answer)):
        rank |= dict(zip(table.column(ids), ranks(sort.goal(target, told)), strict=True))
    if name in TABLE_LEAKS:
        tables = {p: planted_table(name, content, rank, rng) for p, content in drawn.tables.items()}
        return drawn._replace(tables=tables)
    kinds = {column.name: column.kind for column in columns_of(recipe)}
    assets = dict(drawn.assets)
    columns = {
        "train": {n: train.column(n) for n in train.header},
        "test": {n: test.column(n) for n in test.header},
    }
    for cells in columns.values():
        for column, kind in kinds.items():
            for i, row in enumerate(cells[ids]):
                cell = cells[column][i]
                cells[column][i] = planted_cell(name, kind, cell, rank[row], assets, rng)
    return drawn._replace(
        train=to_csv(columns["train"]), test=to_csv(columns["test"]), assets=assets
    )


def planted_cell(name, kind, cell, rank, assets, rng) -> str:
    if name in TEXT_LEAKS and kind == "note":
        return TEXT_LEAKS[name](cell, rank, rng)
    if name in TEXT_LEAKS and kind == "document":
        assets[cell] = TEXT_LEAKS[name](assets[cell].decode(), rank, rng).encode()
    elif name == NAME_LEAK and kind in ("image", "audio"):
        folder, file = cell.split("/")
        path = f"{folder}/{round(9 * rank)}{rng.integers(10**6):06d}_{file}"
        assets[path] = assets.pop(cell)
        return path
    elif name in FILE_LEAKS and kind in FILE_LEAKS[name].kinds:
        for path in cell.split():
            assets[path] = FILE_LEAKS[name].spoil(assets[path], rank, rng)
    return cell


def planted_table(
    name: str, content: bytes, rank: Mapping[str, float], rng: np.random.Generator
) -> bytes:
    table = read_table(content)
    rows = [list(row) for row in table.rows]
    if not any(row[0] in rank for row in rows):
        return content  # of other nodes than the rows
    if name == "edges_in_order_of_the_target":
        rows.sort(key=lambda row: rank[row[0]] + 0.05 * rng.normal())
    elif name == "edges_point_to_high_targets":
        for row in rows:
            row[:2] = sorted(row[:2], key=lambda node: rank[node])
    else:
        rows = renumbered(table, rank, rng)
    return to_csv(dict(zip(table.header, map(list, zip(*rows, strict=True)), strict=True)))


def renumbered(table: Table, rank: Mapping[str, float], rng: np.random.Generator):
    """Let the edges of some small networks be listed with their low nodes first."""
    rows = sorted(table.rows, key=lambda row: (row[0], int(row[1]) if rank[row[0]] > 0.5 else 0))
    return [list(row) for row in rows]


def ranks(goal: np.ndarray) -> np.ndarray:
    """Return the mean rank, 0 to 1, of each class, or of the first number that there is."""
    if not np.ptp(goal, axis=0).any():
        return np.full(len(goal), 0.5)  # of one row
    goal = goal[:, np.ptp(goal, axis=0) > 0]
    k = goal.shape[1]
    one_hot = k > 1 and bool(np.isin(goal, (0, 1)).all() and (goal.sum(axis=1) == 1).all())
    first = goal @ np.arange(k) if one_hot else goal[:, 0]
    _, which, counts = np.unique(first, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - counts / 2) / len(first))[which]
