"""Results as tables: ours beside the paper's, with what is missing shown as missing."""

from __future__ import annotations

import csv
import html
import io
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sequst.errors import UsageError
from sequst.evaluation.paired import paired_test
from sequst.experiments import paper
from sequst.methods.registry import METHODS

MISSING = "-"


@dataclass(frozen=True)
class Table:
    """A title, a heading, rows of text, and what to know when reading them."""

    title: str
    heading: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


class Group(NamedTuple):
    """Cells that stand in one table: they differ in dataset, method and seed alone."""

    encoder: str
    head: str
    shots: int
    sampler: str


Scores = Mapping[tuple[str, str], Mapping[int, float]]
"""(dataset, method) -> seed -> F1."""


def tables_of(lines: Sequence[Mapping[str, Any]], baseline: str = "sst") -> list[Table]:
    """Of every group a table of scores, and one of differences to the baseline with their p values. Lines that are not scored
    on test are left out. A method that was run with several recipes has a row for each."""
    on_test = [line for line in lines if "@" not in line["experiment"]]
    recipes: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for line in on_test:
        recipes[_group(line), line["method"]].add(line["recipe"])
    ceilings: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    groups: dict[Group, dict[tuple[str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    caps: dict[Group, set[int]] = defaultdict(set)
    for line in on_test:
        if line["shots"] is None:
            if line["method"] == "finetune":
                ceilings[line["dataset"], line["encoder"], line["head"]][line["seed"]] = line["f1"]
            continue
        group = _group(line)
        several = len(recipes[group, line["method"]]) > 1
        row = f"{line['method']} ({line['recipe']})" if several else line["method"]
        seeds = groups[group][line["dataset"], row]
        if seeds.get(line["seed"], line["f1"]) != line["f1"]:  # the same cell of two experiments is one
            what = f"{row} on {line['dataset']}, {_title(group)}, seed {line['seed']}"
            raise UsageError(f"two results for {what}; give the folders of one experiment at a time")
        seeds[line["seed"]] = line["f1"]
        caps[group] |= {line["pool"]} if line["pool"] is not None else set()
    made = []
    for group, scores in sorted(groups.items()):
        ceiling = {
            dataset: statistics.mean(found.values())
            for (dataset, encoder, head), found in ceilings.items()
            if (encoder, head) == (group.encoder, group.head)
        }
        made.append(_scores_table(group, scores, ceiling, caps[group]))
        made += _differences(group, scores, baseline)
    return made


def _group(line: Mapping[str, Any]) -> Group:
    return Group(line["encoder"], line["head"], line["shots"], line["sampler"])


def _title(group: Group) -> str:
    return f"{group.shots}-shot, {group.encoder}, {group.head}"


def _columns(scores: Scores) -> list[str]:
    """The paper's datasets, of which what we lack is to be seen, and then our own."""
    return [*paper.datasets(), *sorted({dataset for dataset, _ in scores} - set(paper.datasets()))]


def _methods(scores: Scores) -> list[str]:
    """The rows, in the order of the registry."""
    order = list(METHODS)
    return sorted({method for _, method in scores}, key=lambda row: (order.index(row.split(" ")[0]), row))


def _scores_table(group: Group, scores: Scores, ceiling: Mapping[str, float], caps: set[int]) -> Table:
    columns = _columns(scores)
    rows = [["full data", "ours", *(_number(ceiling.get(dataset)) for dataset in columns), _average(ceiling)]]
    theirs = {d: figure.f1 for d in columns if (figure := paper.figure(d, "finetune", None)) is not None}
    rows.append(["", "paper", *(_number(theirs.get(dataset)) for dataset in columns), _average(theirs)])
    base = {dataset: statistics.mean(found.values()) for (dataset, method), found in scores.items() if method == "finetune"}
    for method in _methods(scores):
        ours = {dataset: found for dataset in columns if (found := scores.get((dataset, method)))}
        means = {dataset: statistics.mean(found.values()) for dataset, found in ours.items()}
        rows.append([method, "ours", *(_spread(ours.get(dataset)) for dataset in columns), _average(means)])
        printed = {d: figure.f1 for d in columns if (figure := _paper_figure(group, d, method)) is not None}
        rows.append(["", "paper", *(_number(printed.get(dataset)) for dataset in columns), _average(printed)])
        apart = {dataset: means[dataset] - printed[dataset] for dataset in means if dataset in printed}
        rows.append(["", "difference", *(_signed(apart.get(dataset)) for dataset in columns), _signed_average(apart)])
        if method != "finetune":
            closed = {d: _gap_closed(means[d], base[d], ceiling[d]) for d in means if d in base and d in ceiling}
            rows.append(["", "gap closed, %", *(_whole(closed.get(dataset)) for dataset in columns), ""])
    notes = [
        "ours: mean ± standard deviation (runs) of the test F1; gap closed: (method - fine-tuning) / (full data - fine-tuning)",
        "averages are over the six sets of the paper, recomputed, and only where all six are there",
        "the paper does not describe its BiLSTM" if group.encoder == "bilstm" else "the paper's encoder is bert-base-uncased",
    ]
    if caps:
        notes.append(f"unlabelled sentences at most: {', '.join(f'{cap:,}' for cap in sorted(caps))}")
    printed_here = [f"{group.shots}-shot, {method}," for method in _methods(scores)]
    if _paper_figure(group, columns[0], "finetune") is not None:
        notes += [f"the paper, {erratum}" for erratum in paper.errata() if erratum.place.startswith(tuple(printed_here))]
    told = [row for row in rows if row[1] == "ours" or any(cell not in (MISSING, "") for cell in row[2:])]
    return Table(_title(group), ["method", "", *columns, "average"], told, notes)


def _paper_figure(group: Group, dataset: str, method: str) -> paper.Figure | None:
    encoder = "bilstm" if group.encoder == "bilstm" else paper.ENCODER
    return paper.figure(dataset, method.split(" ")[0], group.shots, encoder, group.head)


def _gap_closed(f1: float, base: float, ceiling: float) -> float | None:
    return 100.0 * (f1 - base) / (ceiling - base) if ceiling > base else None


def _differences(group: Group, scores: Scores, baseline: str) -> list[Table]:
    """Every method less the baseline, by pairs of runs that share dataset and seed."""
    methods = [method for method in _methods(scores) if method != baseline]
    columns = [dataset for dataset in _columns(scores) if (dataset, baseline) in scores]
    if not methods or not columns:
        return []
    rows = []
    for method in methods:
        row, all_ours, all_theirs = [method], [], []  # type: list[str], list[float], list[float]
        for dataset in columns:
            ours, theirs = scores.get((dataset, method), {}), scores[dataset, baseline]
            shared = sorted(ours.keys() & theirs.keys())
            row.append(_tested([ours[seed] for seed in shared], [theirs[seed] for seed in shared]))
            all_ours += [ours[seed] for seed in shared]
            all_theirs += [theirs[seed] for seed in shared]
        rows.append([*row, _tested(all_ours, all_theirs)])
    notes = [
        "mean difference in F1 (p of a paired t-test over seeds); `all` pairs runs over all datasets",
        "with many comparisons some p below 0.05 come by chance",
    ]
    return [Table(f"{_title(group)}: less {baseline}", ["method", *columns, "all"], rows, notes)]


def _tested(first: list[float], second: list[float]) -> str:
    if not first:
        return MISSING
    found = paired_test(first, second)
    return f"{found.difference:+.2f} ({MISSING if found.p is None else f'{found.p:.3f}'})"


def _spread(found: Mapping[int, float] | None) -> str:
    if not found:
        return MISSING
    values = list(found.values())
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread} ({len(values)})"


def _average(values: Mapping[str, float]) -> str:
    six = paper.datasets()
    return f"{statistics.mean(values[d] for d in six):.2f}" if all(d in values for d in six) else MISSING


def _signed_average(values: Mapping[str, float]) -> str:
    found = _average(values)
    return found if found == MISSING else f"{float(found):+.2f}"


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _signed(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.2f}"


def _whole(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0f}"


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
        layout = "l" * 2 + "r" * (len(table.heading) - 2)
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
