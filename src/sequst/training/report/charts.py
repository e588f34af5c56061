"""Charts as SVG that stands inside a page: no library, no script; colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from sequst.calibration.reliability import Bin

WIDTH, HEIGHT = 460.0, 250.0
COLOURS = 6
"""How many the style sheet has."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 14.0, 28.0, 38.0


@dataclass(frozen=True)
class Series:
    """A line of a chart: points (x, y) in order of x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Axes:
    """From values to places on the page."""

    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - _LEFT - _RIGHT),
            HEIGHT - _BOTTOM - (y - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - _TOP - _BOTTOM),
        )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, some `about` of them, in steps of 1, 2 or 5 times a power of ten."""
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-12):  # one value, but for rounding: give it room
        low, high = low - max(0.5, 1e-3 * abs(low)), high + max(0.5, 1e-3 * abs(high))
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def line_chart(series: Sequence[Series], x_name: str, y_name: str) -> Markup:
    """Lines over one pair of axes, each point with its figures to hover over, and a legend; nothing where there is no point.

    x counts something (rounds, steps): it has whole numbers alone. Values that are not finite are left out.
    """
    series = [Series(line.name, [p for p in line.points if math.isfinite(p[1])]) for line in series]
    series = [line for line in series if line.points]
    if not series:
        return Markup("")
    xs, ys = zip(*(point for line in series for point in line.points), strict=True)
    low, high = min(xs), max(xs)
    y_ticks = ticks(min(ys), max(ys))
    margin = 0.05 * (high - low) or 0.5
    axes = _Axes((low - margin, high + margin), (y_ticks[0], y_ticks[-1]))
    x_ticks = [x for x in ticks(low, high) if x == int(x) and low <= x <= high]
    marks = [_frame(axes, x_ticks, y_ticks, x_name, y_name)]
    for number, line in enumerate(series):
        marks += _marks_of(number, line, axes, x_name)
    keys = (
        Markup('<span class="key"><i class="s{}"></i>{}</span>').format(n % COLOURS, line.name) for n, line in enumerate(series)
    )
    legend = Markup('<figcaption class="legend">{}</figcaption>').format(Markup(" ").join(keys))
    return Markup("<figure>{}{}</figure>").format(_svg(marks, f"{y_name} over {x_name}"), legend)


def _marks_of(number: int, line: Series, axes: _Axes, x_name: str) -> list[Markup]:
    """A line and its points."""
    places = [axes.at(*point) for point in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = [Markup('<polyline class="line s{}" points="{}"/>').format(number % COLOURS, path)]
    for (x, y), (left, top) in zip(line.points, places, strict=True):
        marks.append(_dot(number, left, top, 3.5, f"{line.name}: {_number(y)} ({x_name} {_number(x)})"))
    return marks


def reliability_diagram(bins: Sequence[Bin]) -> Markup:
    """Accuracy over confidence, a dot for each bin, the larger the more entities; below the diagonal confidence is too high."""
    if not bins:
        return Markup("")
    axes = _Axes((0.0, 100.0), (0.0, 100.0))
    scale = [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    marks = [_frame(axes, scale, scale, "confidence %", "correct %")]
    (left, bottom), (right, top) = axes.at(0, 0), axes.at(100, 100)
    marks.append(_line("diagonal", left, bottom, right, top))
    most = max(each.count for each in bins)
    for each in bins:
        x, y = axes.at(100 * each.confidence, 100 * each.accuracy)
        marks.append(_line("gap", x, y, x, axes.at(0, 100 * each.confidence)[1]))
        told = f"{each.count} entities: confidence {100 * each.confidence:.0f} %, correct {100 * each.accuracy:.0f} %"
        marks.append(_dot(0, x, y, 2 + 4 * math.sqrt(each.count / most), told))
    return Markup("<figure>{}</figure>").format(_svg(marks, "share of correct entities over confidence"))


def _svg(marks: Sequence[Markup], label: str) -> Markup:
    opening = Markup('<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">').format(WIDTH, HEIGHT, label)
    return opening + Markup("").join(marks) + Markup("</svg>")


def _frame(axes: _Axes, x_ticks: Sequence[float], y_ticks: Sequence[float], x_name: str, y_name: str) -> Markup:
    """Grid lines with their figures, and what the axes show."""
    marks = []
    for value in y_ticks:
        _, y = axes.at(axes.x[0], value)
        marks.append(_line("grid", _LEFT, y, WIDTH - _RIGHT, y))
        marks.append(_text("end", _LEFT - 6, y + 4, _number(value)))
    for value in x_ticks:
        x, _ = axes.at(value, axes.y[0])
        marks.append(_text("middle", x, HEIGHT - _BOTTOM + 16, _number(value)))
    marks.append(_text("middle", (_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 4, x_name))
    marks.append(_text("start", 2, 13, y_name))
    return Markup("").join(marks)


def _dot(series: int, x: float, y: float, radius: float, told: str) -> Markup:
    mark = '<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>'
    return Markup(mark).format(series % COLOURS, x, y, radius, told)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)


def _text(anchor: str, x: float, y: float, text: str) -> Markup:
    return Markup('<text text-anchor="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(anchor, x, y, escape(text))


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
