"""A table of somebody's own, read as text, with the files that its cells name."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sandmle.errors import MissingExtraError, UsageError
from sandmle.registry import nearest
from sandmle.tasks.cells import Invalid
from sandmle.tasks.submission import read_table

SUFFIXES = {
    "image": (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
    "audio": (".wav",),
    "document": (".txt", ".md"),
}
_TABLES = (".csv", ".parquet")
_MOST_FILES = 200_000


class OwnTable(NamedTuple):
    """Columns by name, cells as text, an empty one missing; `files` by name, stem and path."""

    columns: dict[str, list[str]]
    files: dict[str, Path]

    def column(self, name: str, option: str) -> list[str]:
        """Return the cells of a column that `option` names; `UsageError` if there is none."""
        if name not in self.columns:
            raise UsageError(f"{option} {name}: no such column; {nearest(name, [*self.columns])}")
        return self.columns[name]


def read_own(path: Path) -> OwnTable:
    """Read a CSV or Parquet file, or a folder with one of them and the files that it names."""
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix in _TABLES and p.is_file())
        if len(found) != 1:
            names = ", ".join(p.name for p in found[:5]) or "none"
            raise UsageError(f"{path}: holds not one table but {names}; name the file itself")
        return OwnTable(_columns(found[0]), _files(path))
    columns = _columns(path)
    named = any(_suffixed(cells) for cells in columns.values())
    return OwnTable(columns, _files(path.parent) if named else {})


def sort_of_file(path: Path) -> str | None:
    """Return whether a file is an image, audio or a document, by its name."""
    return next((sort for sort, ends in SUFFIXES.items() if path.suffix.lower() in ends), None)


def _columns(path: Path) -> dict[str, list[str]]:
    if path.suffix not in _TABLES:
        raise UsageError(f"{path}: a table is a .csv or a .parquet file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    if path.suffix == ".parquet":
        return _parquet(path)
    try:
        table = read_table(data)
    except Invalid as error:
        raise UsageError(f"{path}: {error}") from None
    if not table.rows:
        raise UsageError(f"{path}: there is a header but no rows")
    cells = zip(*table.rows, strict=True)
    return {name: list(column) for name, column in zip(table.header, cells, strict=True)}


def _parquet(path: Path) -> dict[str, list[str]]:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise MissingExtraError(
            f"{path}: Parquet needs another package: pip install pyarrow"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: is no Parquet file that can be read ({error})") from None
    return {str(name): _spelled(frame[name]) for name in frame.columns}


def _spelled(column: Any) -> list[str]:
    cells = zip(column.tolist(), column.isna().tolist(), strict=True)
    return ["" if gap else str(value) for value, gap in cells]


def _suffixed(cells: Sequence[str]) -> bool:
    first = next((cell for cell in cells if cell), "")
    return sort_of_file(Path(first)) is not None


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder that a cell may name: by path, by name, and without ending."""
    found: dict[str, Path] = {}
    for path in _some(folder.rglob("*"), folder):
        if sort_of_file(path) is not None and path.is_file():
            for name in (path.relative_to(folder).as_posix(), path.name, path.stem):
                found.setdefault(name, path)
    return found


def _some(paths: Iterable[Path], folder: Path) -> Iterable[Path]:
    for i, path in enumerate(paths):
        if i == _MOST_FILES:
            raise UsageError(f"{folder}: holds more than {_MOST_FILES:,} files")
        yield path
