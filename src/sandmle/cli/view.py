"""`sandmle view`."""

from pathlib import Path
from typing import Annotated

import typer


def view(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: RUN/page.html.")] = None,
) -> None:
    """Write one HTML page that shows a run; it opens without a network."""
    from sandmle.report.page import write_page

    print(write_page(run, out))
