"""Results as tables: ours beside the paper's, with what is missing shown as missing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sequst.evaluation.paired import paired_test
from sequst.experiments import paper
from sequst.experiments.grouping import (
    Group,
    Section,
    datasets_of,
    fine_tuned,
    gather,
    means,
    method_of,
    over_rounds,
    sections_of,
)
from sequst.experiments.rendering import Table
from sequst.experiments.results import STRATEGIES, Results
from sequst.tagger.encoders.shape import BILSTM

MISSING = "-"


def tables_of(results: Results, baseline: str = "sst") -> list[Table]:
    """Of every group a table of scores, and one of differences to the baseline with their p values; then what was found in the
    cells, where they kept it: rounds, errors of selected words, calibration, what tells errors."""
    made = []
    for section in sections_of(results):
        made.append(_scores_table(section))
        made += [_differences(section, row) for row in section.scores if method_of(row) == baseline and len(section.scores) > 1]
        made += [_finding(section, kind) for kind in _KINDS if section.findings.get(kind)]
    return made


def _scores_table(section: Section) -> Table:
    """Of every row ours, the paper's, the difference and, but for fine-tuning, how much of the gap to full data is closed."""
    group, scores = section.group, section.scores
    columns = [*paper.datasets(), *(d for d in datasets_of(scores.values()) if d not in paper.datasets())]
    body = []
    if group.shots is not None:
        printed = _printed(group._replace(shots=None), "finetune", columns)
        body.append(["full data", "ours", *_numbers(section.full, columns), _average(section.full)])
        body.append(["", "paper", *_numbers(printed, columns), _average(printed)])
    for row, runs in scores.items():
        ours, printed = means(runs), _printed(group, row, columns)
        apart = {dataset: ours[dataset] - printed[dataset] for dataset in ours.keys() & printed.keys()}
        body.append([row, "ours", *(_spread(runs.get(dataset)) for dataset in columns), _average(ours)])
        body.append(["", "paper", *_numbers(printed, columns), _average(printed)])
        body.append(["", "difference", *_numbers(apart, columns, "+.2f"), _average(apart, "+.2f")])
        if method_of(row) != "finetune":
            closed = _gap_closed(ours, fine_tuned(scores), section.full)
            body.append(["", "gap closed, %", *_numbers(closed, columns, ".0f"), ""])
    body = [cells for cells in body if cells[1] == "ours" or any(cell not in (MISSING, "") for cell in cells[2:])]
    return Table(group, "scores", ["method", "", *columns, "average"], body, _notes(section), labels=2)


def _printed(group: Group, row: str, columns: Sequence[str]) -> dict[str, float]:
    found = {dataset: paper_figure(group, dataset, row) for dataset in columns}
    return {dataset: figure.f1 for dataset, figure in found.items() if figure is not None}


def _gap_closed(ours: Mapping[str, float], base: Mapping[str, float], full: Mapping[str, float]) -> dict[str, float]:
    """How much of the way from `base` to `full` is gone, in percent."""
    gaps = {d: full[d] - base[d] for d in ours.keys() & base.keys() & full.keys()}
    return {d: 100 * (ours[d] - base[d]) / gap for d, gap in gaps.items() if gap > 0}


def _notes(section: Section) -> list[str]:
    notes = [
        "ours: mean ± standard deviation (runs) of the test F1",
        "gap closed: (method - fine-tuning) / (full data - fine-tuning), where fine-tuning has one row",
        "averages are over the six sets of the paper, recomputed, and only where all six are there",
        f"the paper's encoder is {paper.ENCODER}-base-uncased; it does not describe its BiLSTM",
    ]
    pools = sorted({line["pool"] for line in section.lines if line["pool"] is not None})
    if pools:
        told = ", ".join(f"{pool:,}" for pool in pools)
        notes.append(f"unlabelled sentences at most, where a row's name says nothing else: {told}")
    datasets, methods = datasets_of(section.scores.values()), {method_of(row) for row in section.scores}
    notes += [f"{dataset}: {told}" for dataset, told in paper.caveats().items() if dataset in datasets]
    return notes + [f"the paper, {method}, {told}" for method, told in paper.errata(section.group.shots) if method in methods]


def paper_figure(group: Group, dataset: str, row: str) -> paper.Figure | None:
    encoder = group.encoder if group.encoder == BILSTM else paper.ENCODER
    return paper.figure(dataset, method_of(row), group.shots, encoder, group.head)


def _differences(section: Section, baseline: str) -> Table:
    """Every row less the baseline, by pairs of runs that share dataset and seed."""
    scores = section.scores
    columns = datasets_of([scores[baseline]])
    body = []
    for row, runs in scores.items():
        pairs = {
            dataset: [(f1, theirs[seed]) for seed, f1 in runs.get(dataset, {}).items() if seed in theirs]
            for dataset, theirs in scores[baseline].items()
        }
        everything = [pair for dataset in columns for pair in pairs[dataset]]
        if row != baseline:
            body.append([row, *(_tested(pairs[dataset]) for dataset in columns), _tested(everything)])
    notes = [
        "mean difference in F1 (p of a paired t-test over seeds); `all` pairs runs over all datasets",
        "with many comparisons some p below 0.05 come by chance",
    ]
    return Table(section.group, f"less {baseline}", ["method", *columns, "all"], body, notes)


class Kind(NamedTuple):
    """A kind of finding as a table."""

    title: str
    note: str
    measures: Mapping[str, str]
    """What of its lines is shown -> its name in words."""
    labels: tuple[str, ...] = ()
    """What of its lines tells rows of one method apart."""
    digits: int = 2


_KINDS = {
    "rounds": Kind(
        "over the rounds",
        "test F1 of the teacher of every round, looked at when the run had ended; round 0 is the first teacher; runs that "
        "stopped earlier keep their last F1",
        {}, ("round",),
    ),
    "selection": Kind(
        "errors of selected words",
        "percent of wrong labels among the words that the first round selects, as much as each counts: of all of them, and of "
        "those that are labelled as an entity; and the percent of entity words that is selected. All strategies look at the "
        "same teacher; the paper does not say of which words its errors are",
        {"error": "all words", "entity_error": "entity words", "selected_of_entity_words": "entity words taken"}, ("strategy",),
    ),
    "reliability": Kind(
        "calibration", "expected calibration error of predicted entities on test, 15 bins of equally many: lower is better",
        {"ece": "ECE, %"},
    ),
    "detection": Kind(
        "what tells errors",
        "how well a score tells wrong tags and entities from right ones, on unlabelled sentences whose tags are known; AURC: "
        "area under the risk-coverage curve, lower is better",
        {"auroc": "AUROC", "risk_coverage": "AURC, %"}, ("of", "score"), digits=3,
    ),
}  # fmt: skip


def _finding(section: Section, name: str) -> Table:
    kind, lines = _KINDS[name], section.findings[name]
    if name == "rounds":
        found = {"F1": over_rounds(lines)}
    else:
        found = {told: gather(lines, measure, *kind.labels) for measure, told in kind.measures.items()}
    columns = datasets_of(runs for values in found.values() for runs in values.values())
    body = []
    for place in dict.fromkeys(place for values in found.values() for place in values):
        for told, values in found.items():
            if place in values:
                cells = [_spread(values[place].get(dataset), kind.digits) for dataset in columns]
                body.append([*map(str, place), told, *cells])
    if name == "selection":
        printed = {by: {d: paper.selection_error(d, by) for d in columns} for by in STRATEGIES}
        body += [["paper", by, "", *_numbers(errors, columns)] for by, errors in printed.items()]
    heading = ["method", *kind.labels, "", *columns]
    return Table(section.group, kind.title, heading, body, [kind.note], labels=len(kind.labels) + 2)


def _tested(pairs: Sequence[tuple[float, float]]) -> str:
    if not pairs:
        return MISSING
    found = paired_test(*zip(*pairs, strict=True))
    return f"{found.difference:+.2f} ({MISSING if found.p is None else f'{found.p:.3f}'})"


def _spread(seeds: Mapping[int, float] | None, digits: int = 2) -> str:
    if not seeds:
        return MISSING
    spread = f" ± {statistics.stdev(seeds.values()):.{digits}f}" if len(seeds) > 1 else ""
    return f"{statistics.mean(seeds.values()):.{digits}f}{spread} ({len(seeds)})"


def _numbers(values: Mapping[str, float | None], columns: Sequence[str], format: str = ".2f") -> list[str]:
    found = [values.get(dataset) for dataset in columns]
    return [MISSING if value is None else f"{value:{format}}" for value in found]


def _average(values: Mapping[str, float], format: str = ".2f") -> str:
    """Over the six sets of the paper, where all are there."""
    six = [values[dataset] for dataset in paper.datasets() if dataset in values]
    return f"{statistics.mean(six):{format}}" if len(six) == len(paper.datasets()) else MISSING
