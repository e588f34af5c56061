"""Tables as text: Markdown, LaTeX, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sequst.experiments.grouping import Group


@dataclass(frozen=True)
class Table:
    """The group of cells that it is of, a title, a heading, rows of text, and what to know when reading them."""

    group: Group
    title: str
    heading: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    labels: int = 1
    """Columns, the first ones, that name the rows."""


def to_markdown(tables: Sequence[Table]) -> str:
    parts = []
    for table in tables:
        lines = [_bar(table.heading), _bar(["---"] * len(table.heading)), *map(_bar, table.rows)]
        parts.append(
            "\n".join([f"## {table.group.title}: {table.title}", "", *lines, "", *(f"- {note}" for note in table.notes)])
        )
    return "\n\n".join(parts) + "\n"


def _bar(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def to_csv(tables: Sequence[Table]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    for table in tables:
        writer.writerow(["group", "table", *table.heading])
        writer.writerows([table.group.title, table.title, *row] for row in table.rows)
    return file.getvalue()


_LATEX = str.maketrans({**{character: f"\\{character}" for character in "&%_#${}"}, "±": r"$\pm$", "\\": r"\textbackslash{}"})


def to_latex(tables: Sequence[Table]) -> str:
    parts = []
    for table in tables:
        heading, *rows = (
            " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\" for cells in (table.heading, *table.rows)
        )
        layout = "l" * table.labels + "r" * (len(table.heading) - table.labels)
        begin = [f"% {table.group.title}: {table.title}", rf"\begin{{tabular}}{{{layout}}}"]
        lines = [*begin, r"\toprule", heading, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
        parts.append("\n".join([*lines, *(f"% {note}" for note in table.notes)]))
    return "\n\n".join(parts) + "\n"


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}
