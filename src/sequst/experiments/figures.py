"""Figures of results, drawn with matplotlib: each as SVG and PNG, readable in grey, with its data beside it as CSV."""

from __future__ import annotations

import csv
import io
import itertools
import math
import statistics
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sequst.experiments.grouping import Group, Section, datasets_of, gather, over_rounds, rank, sections_of
from sequst.experiments.results import Results
from sequst.experiments.tables import paper_figure
from sequst.extras import needed
from sequst.files import write_bytes

_COLOURS = ("#000000", "#0b5fa5", "#d1731a", "#4aa3a2", "#8c4b9e", "#7a7a7a")
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_LINES: Sequence[Any] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_STYLE = {
    "svg.hashsalt": "sequst", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.3, "legend.frameon": False, "axes.axisbelow": True,
}  # fmt: skip
_WIDTH = 9.0
"""Inches."""


@dataclass(frozen=True)
class Figure:
    """What to draw, what to say of it, and the figures it shows."""

    group: Group
    title: str
    caption: str
    heading: Sequence[str]
    rows: Sequence[list[Any]]
    height: float
    draw: Callable[[Any], None]
    """Draws on a `matplotlib.figure.Figure`."""

    @property
    def name(self) -> str:
        return f"{self.title}-{self.group.file_name}"

    def svg(self) -> bytes:
        return self._saved("svg", transparent=True, metadata={"Date": None})

    def png(self) -> bytes:
        return self._saved("png", dpi=160, facecolor="white")

    def _saved(self, format: str, **options: Any) -> bytes:
        matplotlib, canvas = needed("matplotlib", "figures"), needed("matplotlib.figure", "figures")
        buffer = io.BytesIO()
        with matplotlib.rc_context(_STYLE):
            drawing = canvas.Figure(figsize=(_WIDTH, self.height), layout="constrained")
            self.draw(drawing)
            drawing.savefig(buffer, format=format, **options)
        return buffer.getvalue()

    def csv(self) -> bytes:
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([self.heading, *self.rows])
        return file.getvalue().encode()


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """NAME.svg, NAME.png and NAME.csv of every figure."""
    written = []
    for figure in figures:
        for ending, data in (("svg", figure.svg()), ("png", figure.png()), ("csv", figure.csv())):
            written.append(folder / f"{figure.name}.{ending}")
            write_bytes(written[-1], data, "name another folder")
    return written


def figures_of(results: Results) -> list[Figure]:
    """All that the results have something for, few-shot group by group."""
    sections = [section for section in sections_of(results) if section.group.shots is not None]
    made = [draw(section) for section in sections for draw in (_scores, _rounds, _reliability)]
    return [figure for figure in made if figure.rows]


def _panels(drawing: Any, names: Sequence[str], **shared: Any) -> Iterator[tuple[str, Any]]:
    """A panel with its title for every name, three in a row."""
    across = min(3, len(names))
    panels = drawing.subplots(math.ceil(len(names) / across), across, squeeze=False, **shared).flatten()
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    for name, panel in zip(names, panels, strict=False):
        panel.set_title(textwrap.fill(name, int(_WIDTH * 14) // across), fontsize=10)
        yield name, panel


Look = Mapping[str, Any]
"""How a series looks: options of a matplotlib line."""


def _legend(drawing: Any, looks: Mapping[str, Look]) -> None:
    line = needed("matplotlib.lines", "figures").Line2D
    handles = [line([], [], label=name, **look) for name, look in looks.items()]
    across = max(1, min(5, len(handles), int(_WIDTH * 14) // (max(map(len, looks)) + 8)))
    drawing.legend(handles=handles, loc="outside lower center", ncols=across)


def _looks(names: Sequence[str]) -> dict[str, Look]:
    """A colour, a mark and a kind of line for every series. Marks and lines tell seven apart where there is no colour; marks
    with colours, 42."""
    looks = (itertools.cycle(each) for each in (_COLOURS, _MARKS, _LINES))
    return {
        name: {"color": colour, "marker": marker, "linestyle": style}
        for name, colour, marker, style in zip(names, *looks, strict=False)
    }


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _scores(section: Section) -> Figure:
    group, scores, full = section.group, section.scores, section.full
    datasets, methods = datasets_of(scores.values()), list(scores)
    rows: list[list[Any]] = []
    for dataset, method in itertools.product(datasets, methods):
        found, printed = list(scores[method].get(dataset, {}).values()), paper_figure(group, dataset, method)
        ours = [statistics.mean(found), _deviation(found)] if found else [None, None]
        rows.append([dataset, method, *ours, len(found), printed and printed.f1, full.get(dataset)])
    looks: dict[str, Look] = {
        "ours, mean and standard deviation": {"color": "#000000", "marker": "o", "linestyle": ""},
        "the paper": {"color": "#7a7a7a", "marker": "D", "fillstyle": "none", "linestyle": ""},
        "ours on all training data": {"color": "#0b5fa5", "linestyle": "--"},
    }

    def draw(drawing: Any) -> None:
        ours, theirs, ceiling = looks.values()
        for dataset, panel in _panels(drawing, datasets, sharey=True):
            for place, (_, _, mean, deviation, _, printed, _) in enumerate(row for row in rows if row[0] == dataset):
                if mean is not None:
                    panel.errorbar(mean, place, xerr=deviation, capsize=3, **ours)
                if printed is not None:
                    panel.plot(printed, place, **theirs)
            if dataset in full:
                panel.axvline(full[dataset], linewidth=1.2, **ceiling)
            panel.set_yticks(range(len(methods)), [textwrap.fill(method, 26) for method in methods])
            panel.set_ylim(len(methods) - 0.5, -0.5)
            panel.set_xlabel("test F1")
        _legend(drawing, looks)

    caption = "Test F1 of every method, ours and the paper's; the dashed line is fine-tuning on all of the training set."
    heading = ["dataset", "method", "f1", "standard_deviation", "runs", "paper", "full_data"]
    lines = sum(len(textwrap.wrap(method, 26)) for method in methods)
    height = 0.8 + (0.9 + 0.1 * len(methods) + 0.18 * lines) * math.ceil(len(datasets) / 3)
    return Figure(group, "scores", caption, heading, rows, height, draw)


def _curves(
    group: Group, title: str, caption: str, heading: Sequence[str], rows: Sequence[list[Any]], x: str, y: str,
    spread: str | None = None,
) -> Figure:  # fmt: skip
    """A panel for every dataset, a line for every method; x, y and spread are columns. Without a spread x and y are shares, and
    the diagonal is drawn."""
    datasets, shares = list(dict.fromkeys(row[0] for row in rows)), spread is None
    looks = _looks(sorted({row[1] for row in rows}, key=rank))

    def draw(drawing: Any) -> None:
        for dataset, panel in _panels(drawing, datasets, sharex=shares, sharey=shares):
            if shares:
                panel.plot([0, 1], [0, 1], color="#7a7a7a", linewidth=1)
            for method, look in looks.items():
                points = [dict(zip(heading, row, strict=True)) for row in rows if row[:2] == [dataset, method]]
                if points:
                    bars = None if spread is None else [point[spread] for point in points]
                    xs, ys = ([point[name] for point in points] for name in (x, y))
                    panel.errorbar(xs, ys, yerr=bars, capsize=2, markersize=4, alpha=0.9, **look)
            panel.xaxis.get_major_locator().set_params(integer=not shares)
            panel.set(xlabel=x, ylabel=y)
        _legend(drawing, looks)

    return Figure(group, title, caption, heading, rows, 0.6 + 2.4 * math.ceil(len(datasets) / 3), draw)


def _rounds(section: Section) -> Figure:
    found = over_rounds(section.findings.get("rounds", []))
    rows = []
    for dataset in datasets_of(found.values()):
        for (method, number), runs in found.items():
            if values := list(runs.get(dataset, {}).values()):
                rows.append([dataset, method, number, statistics.mean(values), _deviation(values), len(values)])
    caption = (
        "Test F1 of the teacher of every round, mean and standard deviation over seeds; round 0 is the first teacher. Computed "
        "after the runs had ended: the round to keep was chosen on the dev set. Runs that stopped earlier keep their last F1."
    )
    heading = ["dataset", "method", "round", "f1", "standard_deviation", "runs"]
    return _curves(section.group, "rounds", caption, heading, rows, "round", "f1", "standard_deviation")


def _reliability(section: Section) -> Figure:
    found = gather(section.findings.get("reliability", []), "bins")
    rows = []
    for dataset in datasets_of(found.values()):
        for (method,), by_seed in found.items():
            full = max(map(len, by_seed.get(dataset, {}).values()), default=0)
            runs = [bins for bins in by_seed.get(dataset, {}).values() if len(bins) == full]
            for number, bins in enumerate(zip(*runs, strict=True), 1):  # the n-th is the same share of every run's entities
                count = sum(each["count"] for each in bins)
                means = [sum(each["count"] * each[name] for each in bins) / count for name in ("confidence", "accuracy")]
                rows.append([dataset, method, number, *means, count, len(runs)])
    caption = (
        "Of predicted entities on test, how many are right against how sure the tagger is of them, in bins of equally many; "
        "below the diagonal the tagger is too sure. Runs with too few entities for all bins are left out."
    )
    heading = ["dataset", "method", "bin", "confidence", "accuracy", "entities", "runs"]
    return _curves(section.group, "reliability", caption, heading, rows, "confidence", "accuracy")
