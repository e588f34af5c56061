"""Tables as text: Markdown, HTML, LaTeX, CSV."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """A title, a heading, rows of text, and what to know when reading them."""

    title: str
    heading: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    labels: int = 1
    """Columns, the first ones, that name the rows."""


def to_markdown(tables: Sequence[Table]) -> str:
    parts = []
    for table in tables:
        lines = [f"## {table.title}", "", _bar(table.heading), _bar(["---"] * len(table.heading)), *map(_bar, table.rows)]
        parts.append("\n".join([*lines, "", *(f"- {note}" for note in table.notes)]))
    return "\n\n".join(parts) + "\n"


def _bar(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def to_csv(tables: Sequence[Table]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    for table in tables:
        writer.writerow(["table", *table.heading])
        writer.writerows([table.title, *row] for row in table.rows)
    return file.getvalue()


def to_html(tables: Sequence[Table]) -> str:
    parts = []
    for table in tables:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.heading)
        body = "\n".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
        whole = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
        parts.append(f"<h2>{html.escape(table.title)}</h2>\n{whole}\n<ul>{notes}</ul>")
    return "\n".join(parts) + "\n"


_LATEX = {character: f"\\{character}" for character in "&%_#${}"} | {"±": r"$\pm$", "\\": r"\textbackslash{}"}


def to_latex(tables: Sequence[Table]) -> str:
    def escaped(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(character, character) for character in cell) for cell in cells) + r" \\"

    parts = []
    for table in tables:
        layout = "l" * table.labels + "r" * (len(table.heading) - table.labels)
        parts.append(
            "\n".join(
                [
                    f"% {table.title}",
                    rf"\begin{{tabular}}{{{layout}}}",
                    r"\toprule",
                    escaped(table.heading),
                    r"\midrule",
                    *map(escaped, table.rows),
                    r"\bottomrule",
                    r"\end{tabular}",
                    *(f"% {note}" for note in table.notes),
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "markdown": to_markdown,
    "html": to_html,
    "latex": to_latex,
    "csv": to_csv,
}
