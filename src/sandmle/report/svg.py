"""Small inline SVG figures. Colours are classes of `page.css`, so both themes have them."""

import io
import math
import wave
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from sandmle.types import MILESTONES, Milestones, Rung

Scale = Callable[[float], float]
_REACH = 1.5  # how far a number line goes beyond median and gold, in distances between these two


class Point(NamedTuple):
    """A value at a place, with its bounds where it has any."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Series(NamedTuple):
    """One line of a chart; `look` is its class."""

    name: str
    look: str
    points: Sequence[Point]


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """Return an element; text in it and its attributes are escaped.

    >>> tag("text", "a<b", x=1.50, text_anchor="end", class_="x")
    Markup('<text x="1.5" text-anchor="end" class="x">a&lt;b</text>')
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{''.join(map(escape, inside))}</{name}>")


def _plain(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def figure(value: float | None) -> str:
    """Return a number with three digits, a dash where there is none."""
    return "–" if value is None else f"{value:.3g}"


def interval(mean: float | None, low: float | None, high: float | None) -> Markup:
    """Draw a share or a reward between 0 and 1 with its interval."""
    width = 150
    marks = [tag("line", x1=0, x2=width, y1=8, y2=8, class_="axis")]
    if low is not None and high is not None:
        left, right = (width * min(max(v, 0.0), 1.0) for v in (low, high))
        marks.append(tag("line", x1=left, x2=right, y1=8, y2=8, class_="whisker"))
    if mean is not None:
        marks.append(tag("circle", cx=width * min(max(mean, 0.0), 1.0), cy=8, r=4, class_="dot"))
    return tag(
        "svg", *marks, viewBox=f"-5 0 {width + 10} 16", class_="interval", aria_hidden="true"
    )


class NumberLine:
    """Places on a line on which better is always to the right; far values stop at its end."""

    def __init__(self, milestones: Milestones, scores: Iterable[float], width: float) -> None:
        self.sign = 1 if milestones.direction == "max" else -1
        median, gold = self.sign * milestones.median, self.sign * milestones.gold
        span = abs(gold - median) or abs(gold) or 1.0
        known = [self.sign * score for score in scores] + [median, gold]
        low = max(min(known), min(median, gold) - _REACH * span)
        high = min(max(known), max(median, gold) + _REACH * span)
        self.low, self.span, self.width = low, (high - low) or 1.0, width

    def __call__(self, score: float) -> float:
        """Return the place of a score."""
        share = (self.sign * score - self.low) / self.span
        return self.width * min(max(share, 0.0), 1.0)


def ladder_strip(milestones: Milestones, rungs: Sequence[Rung]) -> Markup:
    """Draw milestones and scores of the ladder on one line."""
    width = 260.0
    place = NumberLine(milestones, [rung.test for rung in rungs], width)
    marks = [tag("line", x1=0, x2=width, y1=11, y2=11, class_="axis")]
    for name in MILESTONES:
        x, level = place(getattr(milestones, name)), getattr(milestones, name)
        title = tag("title", f"{name} {figure(level)}")
        marks.append(tag("line", title, x1=x, x2=x, y1=3, y2=19, class_=f"level {name}"))
    for rung in rungs:
        title = tag("title", f"{rung.name} {figure(rung.test)}")
        marks.append(
            tag("circle", title, cx=place(rung.test), cy=11, r=4, class_=f"rung {rung.kind}")
        )
    label = "the ladder's scores among the milestones; better is to the right"
    return tag(
        "svg", *marks, viewBox=f"-6 0 {width + 12} 22", class_="strip", role="img", aria_label=label
    )


def ladder_lines(milestones: Milestones, rungs: Sequence[Rung]) -> Markup:
    """Draw a line for each script of the ladder, and the milestones across all of them."""
    left, width, row, top = 88, 330.0, 21, 34
    place = NumberLine(milestones, [rung.test for rung in rungs], width)
    bottom = top + row * len(rungs)
    marks = []
    for number, name in enumerate(MILESTONES):
        x, y = left + place(getattr(milestones, name)), 12 + 13 * (number % 2)
        marks.append(tag("line", x1=x, x2=x, y1=y + 3, y2=bottom, class_=f"level {name}"))
        marks.append(tag("text", name, x=x, y=y, class_="small", text_anchor="middle"))
    for number, rung in enumerate(rungs):
        middle = top + row * (number + 0.5)
        title = tag(
            "title",
            f"{rung.name}: {figure(rung.test)} on the test, {figure(rung.pool)} on the pool",
        )
        marks += [
            tag("text", rung.name, x=left - 14, y=middle + 4, text_anchor="end"),
            tag("line", x1=left, x2=left + width, y1=middle, y2=middle, class_="axis"),
            tag(
                "circle",
                title,
                cx=left + place(rung.test),
                cy=middle,
                r=5,
                class_=f"rung {rung.kind}",
            ),
            tag("text", figure(rung.test), x=left + width + 14, y=middle + 4, class_="number"),
        ]
    box = f"0 0 {left + width + 70:.0f} {bottom + 4}"
    return tag(
        "svg", *marks, viewBox=box, class_="ladder", role="img", aria_label="scores of the ladder"
    )


def waveform(sound: bytes, columns: int = 130, height: float = 56) -> Markup | None:
    """Draw the loudness of a 16-bit WAV file over time; None for another file."""
    import numpy as np

    try:
        with wave.open(io.BytesIO(sound)) as opened:
            if opened.getsampwidth() != 2 or opened.getnframes() < columns:
                return None
            samples = np.frombuffer(opened.readframes(opened.getnframes()), dtype="<i2")
    except (wave.Error, EOFError):
        return None
    loud = [float(np.abs(part.astype(float)).max()) for part in np.array_split(samples, columns)]
    most = max(loud) or 1.0
    strokes = " ".join(
        f"M{2 * x + 1} {height / 2 - h:.1f}V{height / 2 + h:.1f}"
        for x, value in enumerate(loud)
        for h in [0.5 + (height / 2 - 1) * value / most]
    )
    path = tag("path", d=strokes, class_="wave")
    return tag(
        "svg",
        path,
        viewBox=f"0 0 {2 * columns} {height:.0f}",
        preserveAspectRatio="none",
        class_="sound",
        aria_hidden="true",
    )


def chart(
    title: str, series: Sequence[Series], size: tuple[int, int] = (640, 240)
) -> Markup | None:
    """Draw lines with their intervals as bands; None where there is no value at all."""
    every = [point for one in series for point in one.points]
    if not every:
        return None
    width, height, left, bottom, top = *size, 44, 22, 8
    xs = [point.x for point in every]
    ys = [v for point in every for v in (point.y, point.low, point.high) if v is not None]
    x_ticks, y_ticks = ticks(min(xs), max(xs), whole=True), ticks(min(ys), max(ys))
    x_low, x_span = min(xs), (max(xs) - min(xs)) or 1.0
    y_low = min(y_ticks[0], *ys)
    y_span = (max(y_ticks[-1], *ys) - y_low) or 1.0

    def x_of(value: float) -> float:
        return left + (width - left - 10) * (value - x_low) / x_span

    def y_of(value: float) -> float:
        return height - bottom - (height - bottom - top) * (value - y_low) / y_span

    marks = []
    for value in y_ticks:
        y = y_of(value)
        marks.append(tag("line", x1=left, x2=width - 10, y1=y, y2=y, class_="grid"))
        marks.append(
            tag("text", f"{value:.4g}", x=left - 6, y=y + 4, text_anchor="end", class_="small")
        )
    for value in x_ticks:
        marks.append(
            tag(
                "text",
                f"{value:.4g}",
                x=x_of(value),
                y=height - 6,
                text_anchor="middle",
                class_="small",
            )
        )
    for one in series:
        marks += _drawn(one, x_of, y_of)
    return tag(
        "svg", *marks, viewBox=f"0 0 {width} {height}", class_="chart", role="img", aria_label=title
    )


def _drawn(one: Series, x_of: Scale, y_of: Scale) -> list[Markup]:
    points = sorted(one.points)
    bounded = [(p.x, p.low, p.high) for p in points if p.low is not None and p.high is not None]
    marks = []
    if len(bounded) > 1:
        edge = [(x, high) for x, _, high in bounded] + [(x, low) for x, low, _ in bounded[::-1]]
        corners = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in edge)
        marks.append(tag("polygon", points=corners, class_=f"band {one.look}"))
    line = " ".join(f"{x_of(p.x):.1f},{y_of(p.y):.1f}" for p in points)
    marks.append(tag("polyline", points=line, class_=f"line {one.look}"))
    if len(points) <= 40:
        for p in points:
            bounds = "" if p.low is None else f" ({figure(p.low)} to {figure(p.high)})"
            title = tag("title", f"{one.name}, {p.x:g}: {figure(p.y)}{bounds}")
            marks.append(
                tag("circle", title, cx=x_of(p.x), cy=y_of(p.y), r=3, class_=f"spot {one.look}")
            )
    return marks


def ticks(low: float, high: float, whole: bool = False) -> list[float]:
    """Return three to six round numbers that span a range.

    >>> ticks(0, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> ticks(1, 4, whole=True)
    [1.0, 2.0, 3.0, 4.0]
    """
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if span / (power * m) <= 5)
    step = max(step, 1.0) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    found = [round(step * n, 12) for n in range(first, max(last, first + 1) + 1)]
    return [value for value in found if low <= value <= high] if whole else found
