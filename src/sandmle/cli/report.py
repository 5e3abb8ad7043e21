"""`sandmle report`."""

from pathlib import Path
from typing import Annotated

import typer

from sandmle.cli.options import AsJson
from sandmle.cli.output import emit, say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write.")] = Path("report"),
    usd_per_cpu_hour: Annotated[float | None, typer.Option(min=0, help="Of one core.")] = None,
    usd_per_gpu_hour: Annotated[float | None, typer.Option(min=0, help="Of one GPU.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the paper's tables (Markdown, LaTeX) and figures (SVG, PDF) from run folders alone.

    With the prices of hours the table of costs has dollars.
    """
    from sandmle.report.costs import Prices
    from sandmle.report.paper import write_report

    written = write_report(runs, out, Prices(usd_per_cpu_hour, usd_per_gpu_hour))
    if as_json:
        emit({"written": [str(path) for path in written.paths], "left_out": written.left_out})
        return
    for path in written.paths:
        print(path)
    for name, why in written.left_out.items():
        say(f"no {name}: {why}")
