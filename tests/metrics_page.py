"""docs/metrics.md: every metric, and the competitions that use it.

python tests/metrics_page.py --write    # write docs/metrics.md
python tests/metrics_page.py            # print it
"""

import math
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from sandmle.metrics.registry import METRICS, Metric

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
TABLE = files("sandmle.metrics") / "competitions.toml"

INTRODUCTION = """\
# Metrics

This page is written by `python tests/metrics_page.py --write`. What a valid file is, and which
statuses a grade has, is in [grading.md](grading.md).

Each metric is a function of hidden answers and of a valid submission. A *degenerate* prediction, a
constant one say, has the finite score that is stated; hidden answers on which a metric is undefined
are the task's fault and never the agent's (`grader_error`). Parameters are part of a task
(`metric.params` in `task.json`).
"""


def competitions() -> list[dict[str, Any]]:
    """Return the metrics of MLE-bench's competitions, one record for each name and form."""
    records: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["metric"]
    return records


def span(metric: Metric) -> str:
    """Return the range of a metric."""
    low, high = (
        f"{'-' if value < 0 else ''}∞" if math.isinf(value) else f"{value:.4g}"
        for value in (metric.low, metric.high)
    )
    return f"{low} to {high}"


def entry(metric: Metric) -> list[str]:
    """Return the lines of one metric."""
    users = [
        (name, record)
        for record in competitions()
        if record.get("ours") == metric.name
        for name in record["competitions"]
    ]
    best = "higher" if metric.direction == "max" else "lower"
    lines = [
        f"### `{metric.name}`",
        "",
        f"{metric.title[0].upper()}{metric.title[1:]}; {best} is better, {span(metric)}.",
        "",
        f"$${metric.formula}$$",
        "",
    ]
    if metric.params:
        given = ", ".join(f"`{name}` = {value}" for name, value in metric.params.items())
        lines.append(f"- parameters: {given}")
    lines.append(f"- degenerate: {metric.degenerate}")
    if metric.source:
        lines.append(f"- source: {metric.source}")
    for record in {id(record): record for _, record in users}.values():
        params = ", ".join(f"{name} = {value}" for name, value in record.get("params", {}).items())
        about = "; ".join(part for part in (params, record.get("note", "")) if part)
        names = ", ".join(f"`{name}`" for name in record["competitions"])
        lines.append(f"- MLE-bench: {names}" + (f" ({about})" if about else ""))
    return [*lines, ""]


def page() -> str:
    """Return the text of docs/metrics.md."""
    kinds: dict[str, list[Metric]] = {}
    for metric in METRICS:
        kinds.setdefault(metric.kind.name, []).append(metric)
    lines = [INTRODUCTION]
    for name in sorted(kinds):
        kind = kinds[name][0].kind
        cells = "A column for each class, tag or quantity" if kind.several else "One column"
        lines += [f"## {name.replace('_', ' ').capitalize()}", "", f"{cells}: {kind.describe}."]
        if kind.extra_truth is not None:
            lines[-1] += f" The hidden answers have one more column, `{kind.extra_truth}`."
        lines.append("")
        for metric in kinds[name]:
            lines += entry(metric)
    lines += ["## Not covered", ""]
    for record in competitions():
        if "ours" not in record:
            names = ", ".join(f"`{name}`" for name in record["competitions"])
            lines.append(f"- {names} (`{record['name']}`): {record['note']}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page(), end="")
