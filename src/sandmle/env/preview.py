"""What an agent is shown of its data before it has run anything: bounded, and never a guess."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from sandmle.env.protocol import cut
from sandmle.tasks.submission import Invalid, read_table

_ROWS = 3
_FILES = 20
_ALIKE = 5  # more files of one sort in a folder are told in one line
_LINE = 400  # characters of a row that are shown: it may hold a text, or a long series
_HEAD_BYTES = 1 << 20


def preview(public: Path, limit: int = 3000) -> str:
    """Describe the files of `public` in at most `limit` characters, with tables' first rows."""
    found = public.rglob("*")
    paths = sorted(path for path in found if path.is_file() and not path.is_symlink())
    sorts: dict[tuple[Path, str], list[Path]] = defaultdict(list)
    for path in paths:
        if path.name != "description.md":
            sorts[path.parent, path.suffix].append(path)
    single = sorted(path for alike in sorts.values() if len(alike) <= _ALIKE for path in alike)
    lines = []
    for path in single[:_FILES]:
        name = path.relative_to(public).as_posix()
        lines.append(f"- `{name}` ({path.stat().st_size:,} bytes)")
        if path.suffix == ".csv":
            lines += _head(path)
    if len(single) > _FILES:
        lines.append(f"- and {len(single) - _FILES:,} more files")
    lines += [_together(public, alike) for alike in sorts.values() if len(alike) > _ALIKE]
    return cut("\n".join(lines), limit)


def _together(public: Path, paths: Sequence[Path]) -> str:
    """Tell of many files of one sort: how many, where, and how large."""
    sizes = sorted(path.stat().st_size for path in paths)
    size = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    name = paths[0].relative_to(public).as_posix()
    return f"- {len(paths):,} files such as `{name}` ({size} bytes each)"


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
