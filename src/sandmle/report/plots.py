"""Figures that stand alone: one SVG file each, drawn here, and the same as PDF with matplotlib."""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from sandmle.files import write_atomic
from sandmle.report.svg import Series, chart, figure, tag

_LOOKS = ("#1f6f8b", "#b1502f", "#6b54a3", "#4b7d2a", "#96600a")
_STYLE = """\
svg { font: 12px sans-serif; background: #fff }
text { fill: #22262b } text.small { font-size: 11px }
.grid { stroke: #ddd9d0 } .bar { fill: #1f6f8b } .line { fill: none; stroke-width: 2 }
.band { opacity: .15 } .cell { stroke: #fff }
""" + "".join(
    f".line.look{n} {{ stroke: {c} }} .spot.look{n}, .band.look{n}, .key.look{n} {{ fill: {c} }}\n"
    for n, c in enumerate(_LOOKS)
)


class Bars(NamedTuple):
    """Named lengths."""

    title: str
    unit: str
    values: dict[str, float]


class Lines(NamedTuple):
    """Lines over a number, with their intervals as bands."""

    title: str
    unit: str
    series: Sequence[Series]


class Cells(NamedTuple):
    """A square of numbers, rows against columns; None on the diagonal."""

    title: str
    names: Sequence[str]
    values: Sequence[Sequence[float | None]]


Plot = Bars | Lines | Cells


def to_svg(plot: Plot) -> str:
    """Draw a figure as the text of an SVG file."""
    drawn = (
        _bars(plot) if isinstance(plot, Bars) else
        _lines(plot) if isinstance(plot, Lines) else _cells(plot)
    )  # fmt: skip
    width, height, marks = drawn
    title = tag("text", plot.title, x=0, y=14, font_weight="bold")
    inside = Markup('<style>{}</style>{}<g transform="translate(0 24)">{}</g>').format(
        Markup(_STYLE), title, Markup("").join(marks)
    )
    box = f"0 0 {width} {height + 24}"
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="{}" width="{}" height="{}">{}</svg>\n'
    return str(Markup(head).format(box, width, height + 24, inside))


def _bars(plot: Bars) -> tuple[int, int, list[Markup]]:
    left, width, row = 150, 320, 22
    most = max([*plot.values.values(), 0.0]) or 1.0
    marks = []
    for n, (name, value) in enumerate(plot.values.items()):
        y = row * n
        long = width * value / most
        marks += [
            tag("text", name, x=left - 8, y=y + 15, text_anchor="end"),
            tag("rect", x=left, y=y + 3, width=float(long), height=row - 6, class_="bar"),
            tag("text", f"{figure(value)} {plot.unit}", x=float(left + long + 6), y=y + 15),
        ]
    return left + width + 90, row * len(plot.values) + 4, marks


def _lines(plot: Lines) -> tuple[int, int, list[Markup]]:
    width, height, row = 640, 240, 18
    marks: list[Markup] = []
    drawn = chart(plot.title, plot.series, (width, height))
    if drawn is not None:
        marks.append(
            Markup(str(drawn).replace("<svg ", f'<svg width="{width}" height="{height}" '))
        )
    for n, one in enumerate(plot.series):
        y = height + row * (n + 1)
        marks.append(tag("rect", x=44, y=y - 9, width=10, height=10, class_=f"key {one.look}"))
        marks.append(tag("text", one.name, x=60, y=y))
    marks.append(tag("text", plot.unit, x=width - 10, y=height + row, text_anchor="end"))
    return width, height + row * (len(plot.series) + 1), marks


def _cells(plot: Cells) -> tuple[int, int, list[Markup]]:
    left, top, side = 150, 22, 70
    marks = []
    for n, name in enumerate(plot.names):
        middle = side * n + side / 2
        marks.append(tag("text", name, x=left - 8, y=top + middle + 4, text_anchor="end"))
        marks.append(tag("text", name[:10], x=left + middle, y=top - 6, text_anchor="middle"))
        for k, value in enumerate(plot.values[n]):
            x, y = left + side * k, top + side * n
            shade = (
                "#f1efea"
                if value is None
                else f"rgb({255 - 224 * value:.0f},{255 - 144 * value:.0f},{255 - 116 * value:.0f})"
            )
            marks.append(tag("rect", x=x, y=y, width=side, height=side, fill=shade, class_="cell"))
            if value is not None:
                text = f"{100 * value:.1f}"
                marks.append(
                    tag("text", text, x=x + side / 2, y=y + side / 2 + 4, text_anchor="middle")
                )
    size = side * len(plot.names)
    return left + size + 4, top + size + 4, marks


# --- PDF ------------------------------------------------------------------------------------------


def can_draw_pdf() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def write_pdf(plot: Plot, path: Path) -> None:
    """Draw a figure with matplotlib as PDF, without dates: the same figure, the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, axis = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    axis.set_title(plot.title, loc="left", fontsize=10)
    if isinstance(plot, Bars):
        axis.barh(list(plot.values)[::-1], list(plot.values.values())[::-1], color=_LOOKS[0])
        axis.set_xlabel(plot.unit)
    elif isinstance(plot, Lines):
        for n, one in enumerate(plot.series):
            points = sorted(one.points)
            xs, ys = [p.x for p in points], [p.y for p in points]
            axis.plot(xs, ys, marker="o", color=_LOOKS[n % len(_LOOKS)], label=one.name)
        axis.set_xlabel(plot.unit)
        axis.legend(frameon=False, fontsize=8)
    else:
        shown = [[math.nan if v is None else v for v in row] for row in plot.values]
        axis.imshow(shown, vmin=0, vmax=1, cmap="Blues")
        axis.set_xticks(range(len(plot.names)), plot.names)
        axis.set_yticks(range(len(plot.names)), plot.names)
    drawn.savefig(path, metadata={"CreationDate": None})
    pyplot.close(drawn)


def write_plot(plot: Plot, folder: Path, name: str) -> list[Path]:
    """Write a figure as SVG, and as PDF where that can be; return the paths."""
    paths = [folder / f"{name}.svg"]
    write_atomic(paths[0], to_svg(plot))
    if can_draw_pdf():
        paths.append(folder / f"{name}.pdf")
        write_pdf(plot, paths[1])
    return paths
