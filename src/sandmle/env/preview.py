"""What an agent is shown of its data before it has run anything: bounded, and never a guess."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from sandmle.env.protocol import cut
from sandmle.files import Entry, walk
from sandmle.tasks.cells import Invalid
from sandmle.tasks.submission import read_table

_ROWS = 3
_FILES = 20
_ALIKE = 5  # more files of one sort in a folder are told in one line
_LINE = 400  # characters of a row that are shown: it may hold a text, or a long series
_HEAD_BYTES = 1 << 20


def preview(public: Path, limit: int = 3000) -> str:
    """Describe the files of `public` in at most `limit` characters, with tables' first rows."""
    sorts: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in walk(public):
        path = Path(entry.name)
        if entry.is_file and path.name != "description.md":
            sorts[str(path.parent), path.suffix].append(entry)
    single = sorted(entry for alike in sorts.values() if len(alike) <= _ALIKE for entry in alike)
    lines = []
    for entry in single[:_FILES]:
        lines.append(f"- `{entry.name}` ({entry.status.st_size:,} bytes)")
        if entry.name.endswith(".csv"):
            lines += _head(public / entry.name)
    if len(single) > _FILES:
        lines.append(f"- and {len(single) - _FILES:,} more files")
    lines += [_together(alike) for alike in sorts.values() if len(alike) > _ALIKE]
    return cut("\n".join(lines), limit)


def _together(alike: Sequence[Entry]) -> str:
    """Tell of many files of one sort: how many, where, and how large."""
    sizes = sorted(entry.status.st_size for entry in alike)
    size = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    return f"- {len(alike):,} files such as `{alike[0].name}` ({size} bytes each)"


def _head(path: Path) -> list[str]:
    with path.open("rb") as stream:
        data = stream.read(_HEAD_BYTES)
    whole = len(data) < _HEAD_BYTES
    try:
        table = read_table(data if whole else data[: data.rfind(b"\n") + 1])
    except Invalid as error:
        return [f"  (not a plain table: {error})"]
    rows = [cut(",".join(row), _LINE) for row in (table.header, *table.rows[:_ROWS])]
    count = f"{len(table.rows):,}" if whole else f"more than {len(table.rows):,}"
    return [f"  {count} rows, {len(table.header)} columns:", *(f"  {row}" for row in rows)]
