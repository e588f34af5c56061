"""An experiment as a page: its tables and figures in one file that needs no other and no network."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from sequst.errors import SequstError
from sequst.experiments.figures import Figure, figures_of
from sequst.experiments.rendering import Table
from sequst.experiments.results import Results
from sequst.experiments.tables import MISSING, tables_of
from sequst.files import atomic_text
from sequst.training.report.page import template
from sequst.version import __version__


class Drawn(NamedTuple):
    """A figure as it stands in the page."""

    name: str
    title: str
    caption: str
    drawing: Markup
    data: str
    """Its CSV, as a link."""


class Section(NamedTuple):
    """What belongs to one group of cells."""

    title: str
    figures: list[Drawn]
    tables: list[Table]


def write_experiment_report(results: Results, path: Path, baseline: str = "sst") -> None:
    """The page, whole or not at all."""
    if not results.lines and not results.failures:
        raise SequstError("there is no result to report yet: no cell that is scored on test has ended")
    lines = results.lines
    sections: dict[str, Section] = {}
    for table in tables_of(results, baseline):
        _section(sections, table.title).tables.append(_untitled(table))
    for number, figure in enumerate(figures_of(results)):
        _section(sections, figure.title).figures.append(_drawn(figure, f"f{number}-"))
    page = template("sequst.experiments", "data", "report.html").render(
        version=__version__,
        experiments=sorted({line["experiment"] for line in lines}),
        devices=sorted({line["device"] for line in lines}),
        tiles={
            "runs": len(lines),
            "datasets": len({line["dataset"] for line in lines}),
            "methods": len({line["method"] for line in lines}),
            "seeds": len({line["seed"] for line in lines}),
            "hours of training": f"{sum(line['seconds'] for line in lines) / 3600:.1f}",
        },
        sections=list(sections.values()),
        missing=MISSING,
        failures=[{"what": _what(failure), "error": failure["error"]} for failure in results.failures],
        made=_made(results),
    )
    with atomic_text(path) as file:
        file.write(page)


def _section(sections: dict[str, Section], title: str) -> Section:
    group = title.partition(": ")[0]
    return sections.setdefault(group, Section(group, [], []))


def _untitled(table: Table) -> Table:
    """The table without the group in its title, under which it stands."""
    return Table(table.title.partition(": ")[2] or "scores", table.heading, table.rows, table.notes, table.labels)


def _drawn(figure: Figure, prefix: str) -> Drawn:
    svg = figure.svg()
    drawing = Markup(_own_names(svg[svg.index("<svg") :], prefix))  # matplotlib draws texts as outlines, and escapes comments
    data = f"data:text/csv;base64,{base64.b64encode(figure.csv().encode()).decode()}"
    return Drawn(figure.name, figure.title.partition(": ")[2], figure.caption, drawing, data)


def _own_names(svg: str, prefix: str) -> str:
    """Ids are of a whole page, and several drawings stand in one."""
    for before in ('id="', 'href="#', "url(#"):
        svg = svg.replace(before, before + prefix)
    return svg


def _what(line: dict[str, Any]) -> str:
    names = ("experiment", "dataset", "method", "recipe", "encoder", "head")
    return f"{', '.join(str(line[name]) for name in names)}, {line['shots']} shots, seed {line['seed']}"


def _made(results: Results) -> Table:
    """Where the lines come from: a row for every experiment, method, recipe, commit and machine."""
    counts: dict[tuple[str, ...], list[float]] = defaultdict(list)
    names = ("experiment", "method", "recipe", "encoder", "head", "commit", "device")
    for line in results.lines:
        counts[tuple(str(line[name]) for name in names)].append(line["seconds"])
    rows: Sequence[list[str]] = [
        [*place, str(len(seconds)), f"{sum(seconds) / 3600:.2f}"] for place, seconds in sorted(counts.items())
    ]
    return Table("", [*names, "runs", "hours"], list(rows), labels=len(names))
