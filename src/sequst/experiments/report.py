"""An experiment as a page: its tables and figures in one file that needs no other and no network."""

from __future__ import annotations

import base64
from collections import defaultdict
from pathlib import Path

from sequst.errors import SequstError
from sequst.experiments.figures import figures_of
from sequst.experiments.results import Lines, Results
from sequst.experiments.tables import MISSING, tables_of
from sequst.files import atomic_text
from sequst.training.report.page import template
from sequst.version import __version__

_ORIGIN = ("experiment", "method", "recipe", "encoder", "head", "commit", "device")


def write_experiment_report(results: Results, path: Path, baseline: str = "sst") -> None:
    """The page, whole or not at all."""
    lines = results.lines
    if not lines and not results.failures:
        raise SequstError("nothing to report yet: no finished cell is scored on test")
    tables, figures = tables_of(results, baseline), figures_of(results)
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
        groups=list(dict.fromkeys(table.group for table in tables)),
        tables=tables,
        figures=figures,
        as_url=_as_url,
        missing=MISSING,
        failures=results.failures,
        origins=_origins(lines),
        origin=_ORIGIN,
    )
    with atomic_text(path) as file:
        file.write(page)


def _as_url(kind: str, data: bytes) -> str:
    """The data as an address that needs no other file."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _origins(lines: Lines) -> dict[tuple[str, ...], list[float]]:
    """Experiment, method, recipe, ... -> the seconds of its runs."""
    seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for line in lines:
        seconds[tuple(str(line[name]) for name in _ORIGIN)].append(line["seconds"])
    return dict(sorted(seconds.items()))
