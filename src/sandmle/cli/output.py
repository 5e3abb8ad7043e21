"""What commands print: results on stdout, everything else on stderr; rich on a terminal only."""

import sys
from collections.abc import Sequence
from typing import Any

from sandmle.files import to_json


def say(message: str) -> None:
    """Print a line for a person, on stderr."""
    print(message, file=sys.stderr, flush=True)


def emit(value: Any) -> None:
    """Print one JSON object on stdout: strict JSON, never a bare NaN."""
    print(to_json(value))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on stdout: drawn on a terminal, aligned plain text elsewhere."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        drawn = Table(header_style="bold")
        for name in header:
            drawn.add_column(name, overflow="fold")
        for row in cells:
            drawn.add_row(*map(Text, row))
        Console().print(drawn)
        return
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for row in [list(header), *cells]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def number(value: float | None) -> str:
    """Format a figure for a table; a dash where there is none."""
    return "-" if value is None else f"{value:.4g}"
