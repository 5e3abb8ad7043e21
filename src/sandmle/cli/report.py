"""`sandmle report`."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write.")] = Path("report"),
    as_json: AsJson = False,
) -> None:
    """Write the paper's tables (Markdown, LaTeX) and figures (SVG, PDF) from run folders alone."""
    from sandmle.report.paper import write_report

    written = write_report(runs, out)
    if as_json:
        emit({"written": [str(path) for path in written.paths], "left_out": written.left_out})
        return
    for path in written.paths:
        print(path)
    for name, why in written.left_out.items():
        say(f"no {name}: {why}")
