"""What an agent is shown of its data before it has run anything: bounded, and never a guess."""

from pathlib import Path

from sandmle.env.protocol import cut
from sandmle.tasks.submission import Invalid, read_table

_ROWS = 3
_FILES = 20
_HEAD_BYTES = 1 << 20


def preview(public: Path, limit: int = 3000) -> str:
    """Describe the files of `public` in at most `limit` characters, with tables' first rows."""
    found = public.rglob("*")
    paths = sorted(path for path in found if path.is_file() and not path.is_symlink())
    paths = [path for path in paths if path.name != "description.md"]
    lines = []
    for path in paths[:_FILES]:
        name = path.relative_to(public).as_posix()
        lines.append(f"- `{name}` ({path.stat().st_size:,} bytes)")
        if path.suffix == ".csv":
            lines += _head(path)
    if len(paths) > _FILES:
        lines.append(f"- and {len(paths) - _FILES:,} more files")
    return cut("\n".join(lines), limit)


def _head(path: Path) -> list[str]:
    with path.open("rb") as stream:
        data = stream.read(_HEAD_BYTES)
    whole = len(data) < _HEAD_BYTES
    try:
        table = read_table(data if whole else data[: data.rfind(b"\n") + 1])
    except Invalid as error:
        return [f"  (not a plain table: {error})"]
    rows = [",".join(row) for row in (table.header, *table.rows[:_ROWS])]
    count = f"{len(table.rows):,}" if whole else f"more than {len(table.rows):,}"
    return [f"  {count} rows, {len(table.header)} columns:", *(f"  {row}" for row in rows)]
