"""`sandmle view`."""

from pathlib import Path
from typing import Annotated

import typer


def view(
    paths: Annotated[
        list[Path], typer.Argument(help="A run, several runs to compare, a corpus, or a task.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Default: page.html in the folder; compare.html for several."
        ),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            help="A training run, or its metrics.jsonl, whose curve is drawn; repeatable."
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="A run whose rates a run's page tables beside others'; repeatable."),
    ] = None,
) -> None:
    """Write one HTML page that shows runs or tasks; it opens without a network."""
    from sandmle.cli.tasks import describe_families
    from sandmle.report.view import write_view

    print(write_view(paths, out, describe_families, beside or (), compare or ()))
