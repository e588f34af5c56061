"""Results as tables: ours beside the paper's, with what is missing shown as missing."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from sequst.evaluation.paired import paired_test
from sequst.experiments import paper
from sequst.experiments.grouping import (
    Group,
    Rows,
    Scored,
    Scores,
    by_row,
    ceilings_of,
    in_order,
    method_of,
    of_group,
    over_rounds,
    rank,
    rows_of,
    scores_of,
    variant_of,
)
from sequst.experiments.rendering import Table
from sequst.experiments.results import STRATEGIES, Lines, Results
from sequst.tagger.encoders.shape import BILSTM

MISSING = "-"


def tables_of(results: Results, baseline: str = "sst") -> list[Table]:
    """Of every group a table of scores, and one of differences to the baseline with their p values; then what was found in the
    cells, where they kept it: rounds, errors of selected words, calibration, what tells errors, how far the classes lie
    apart."""
    rows, made = rows_of(results), []
    grouped = scores_of(results, rows)
    for group, scored in grouped.items():
        scores = scored.scores
        made.append(_scores_table(group, scored, _own_settings(of_group(results.lines, group), rows)))
        made += _differences(group, scores, baseline)
        made += _rounds(group, of_group(results.found("rounds"), group), rows)
        made += _selection(group, of_group(results.found("selection"), group), rows)
        made += _calibration(group, of_group(results.found("reliability"), group), rows)
        made += _detection(group, of_group(results.found("detection"), group), rows)
        made += _classes(group, of_group(results.found("words"), group), rows)
    alone = {pair: found for pair, found in ceilings_of(results).items() if pair not in {group[:2] for group in grouped}}
    return [*made, *(_ceiling_table(pair, found) for pair, found in alone.items())]


def _ceiling_table(pair: tuple[str, str], ceiling: Mapping[str, float]) -> Table:
    """Full data where there is nothing else to set beside it."""
    columns = [*paper.datasets(), *sorted(set(ceiling) - set(paper.datasets()))]
    notes = ["test F1 of fine-tuning on all of the training set; the paper's encoder is bert-base-uncased"]
    return Table(f"full data, {', '.join(pair)}", ["", *columns, "average"], _ceiling_rows(columns, ceiling), notes)


def _ceiling_rows(columns: Sequence[str], ceiling: Mapping[str, float]) -> list[list[str]]:
    theirs = {d: figure.f1 for d in columns if (figure := paper.figure(d, "finetune", None)) is not None}
    return [
        [whose, *(_number(found.get(dataset)) for dataset in columns), _average(found)]
        for whose, found in (("ours", ceiling), ("paper", theirs))
    ]


def _columns(scores: Scores) -> list[str]:
    """The paper's datasets, of which what we lack is to be seen, and then our own."""
    return [*paper.datasets(), *sorted({dataset for dataset, _ in scores} - set(paper.datasets()))]


def _methods(scores: Scores) -> list[str]:
    """The rows, in the order of the registry."""
    return sorted({method for _, method in scores}, key=rank)


def _own_settings(lines: Lines, rows: Rows) -> dict[str, str]:
    """{row: the settings that not all rows have, and its name does not tell}."""
    recipes: dict[str, set[str]] = {}
    for line in lines:
        last = {setting.partition("=")[0]: setting for setting in line["recipe"].split()}  # of several of a name, the last
        recipes.setdefault(rows[variant_of(line)], set(last.values())).intersection_update(last.values())
    common = set.intersection(*recipes.values()) | {"default"}
    own = {row: [each for each in sorted(recipes[row] - common) if each not in row] for row in sorted(recipes, key=rank)}
    return {row: " ".join(settings) for row, settings in own.items() if settings}


def _scores_table(group: Group, scored: Scored, own_settings: Mapping[str, str]) -> Table:
    scores, ceiling = scored.scores, scored.ceiling
    columns, methods = _columns(scores), _methods(scores)
    rows = [[name, *row] for name, row in zip(("full data", ""), _ceiling_rows(columns, ceiling), strict=True)]
    bases = [method for method in methods if method_of(method) == "finetune"]
    base = {dataset: statistics.mean(found.values()) for (dataset, method), found in scores.items() if [method] == bases}
    for method in methods:
        rows += _method_rows(group, scored, columns, method, base)
    told = [row for row in rows if row[1] == "ours" or any(cell not in (MISSING, "") for cell in row[2:])]
    notes = _notes(group, scored, own_settings, several_bases=len(bases) > 1)
    return Table(group.title, ["method", "", *columns, "average"], told, notes, labels=2)


def _method_rows(
    group: Group, scored: Scored, columns: Sequence[str], method: str, base: Mapping[str, float]
) -> list[list[str]]:
    """Ours, the paper's, the difference and, but for fine-tuning, how much of the gap from `base` to full data is closed."""
    ceiling = scored.ceiling
    ours = {dataset: found for dataset in columns if (found := scored.scores.get((dataset, method)))}
    means = {dataset: statistics.mean(found.values()) for dataset, found in ours.items()}
    printed = {d: figure.f1 for d in columns if (figure := paper_figure(group, d, method)) is not None}
    apart = {dataset: means[dataset] - printed[dataset] for dataset in means if dataset in printed}
    rows = [
        [method, "ours", *(_spread(ours.get(dataset)) for dataset in columns), _average(means)],
        ["", "paper", *(_number(printed.get(dataset)) for dataset in columns), _average(printed)],
        ["", "difference", *(_signed(apart.get(dataset)) for dataset in columns), _signed_average(apart)],
    ]
    if method_of(method) != "finetune":
        closed = {d: _gap_closed(means[d], base[d], ceiling[d]) for d in means if d in base and d in ceiling}
        rows.append(["", "gap closed, %", *(_whole(closed.get(dataset)) for dataset in columns), ""])
    return rows


def _notes(group: Group, scored: Scored, own_settings: Mapping[str, str], several_bases: bool) -> list[str]:
    methods, datasets = _methods(scored.scores), {dataset for dataset, _ in scored.scores}
    notes = [
        "ours: mean ± standard deviation (runs) of the test F1; gap closed: (method - fine-tuning) / (full data - fine-tuning)",
        "averages are over the six sets of the paper, recomputed, and only where all six are there",
        "the paper does not describe its BiLSTM" if group.encoder == BILSTM else "the paper's encoder is bert-base-uncased",
    ]
    if scored.caps:
        named = ", where a row's name says nothing else" if any("unlabelled" in method for method in methods) else ""
        notes.append(f"unlabelled sentences at most{named}: {', '.join(f'{cap:,}' for cap in sorted(scored.caps))}")
    if own_settings:
        notes.append(f"settings that not all methods have: {'; '.join(f'{row}: {told}' for row, told in own_settings.items())}")
    if several_bases:
        notes.append("fine-tuning stands here with several settings, so there is no one gap to close")
    if scored.teachers:
        where = ", ".join(in_order(scored.teachers))
        notes.append(f"self-training begins with fine-tuning: some runs of finetune are first teachers of other runs ({where})")
    notes += [f"{dataset}: {told}" for dataset, told in paper.caveats().items() if dataset in datasets]
    if paper_figure(group, paper.datasets()[0], "finetune") is not None:
        places = tuple(f"{group.shots}-shot, {method}," for method in methods)
        notes += [f"the paper, {erratum}" for erratum in paper.errata() if erratum.place.startswith(places)]
    return notes


def paper_figure(group: Group, dataset: str, method: str) -> paper.Figure | None:
    encoder = BILSTM if group.encoder == BILSTM else paper.ENCODER
    return paper.figure(dataset, method_of(method), group.shots, encoder, group.head)


def _gap_closed(f1: float, base: float, ceiling: float) -> float | None:
    return 100.0 * (f1 - base) / (ceiling - base) if ceiling > base else None


def _differences(group: Group, scores: Scores, baseline: str) -> list[Table]:
    """Every method less the baseline, or each of its variants, by pairs of runs that share dataset and seed."""
    variants = [method for method in _methods(scores) if method_of(method) == baseline]
    return [table for variant in variants for table in _differences_to(group, scores, variant)]


def _differences_to(group: Group, scores: Scores, baseline: str) -> list[Table]:
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
    return [Table(f"{group.title}: less {baseline}", ["method", *columns, "all"], rows, notes)]


Values = Mapping[tuple[str, str], Sequence[float]]
"""(row, dataset) -> a figure of every run."""


def _rounds(group: Group, lines: Lines, rows: Rows) -> list[Table]:
    found = over_rounds(lines, rows)
    columns = in_order(found)
    places = sorted({place for by_round in found.values() for place in by_round}, key=lambda place: (rank(place[1]), place))
    if not places:
        return []
    body = [[row, str(number), *(_spread(found[d].get((number, row))) for d in columns)] for number, row in places]
    notes = [
        "test F1 of the teacher of every round, mean ± standard deviation (runs), looked at when the run had ended; round 0 is "
        "the first teacher: fine-tuning, or, with `adapt` or several teachers, the best of them by the dev set",
        "runs that stopped earlier keep their last F1",
    ]
    if group.encoder == BILSTM:
        notes.append("a BiLSTM of round 0 knows the words of the unlabelled sentences, which that of fine-tuning does not")
    return [Table(f"{group.title}: over the rounds", ["method", "round", *columns], body, notes, labels=2)]


def _selection(group: Group, lines: Lines, rows: Rows) -> list[Table]:
    """A table for every variant of a method that selects words."""
    names = sorted({rows[variant_of(line)] for line in lines}, key=rank)
    title = f"{group.title}: errors of selected words"
    return [
        _selection_table(title if len(names) == 1 else f"{title}, {name}", [x for x in lines if rows[variant_of(x)] == name])
        for name in names
    ]


def _selection_table(title: str, lines: Lines) -> Table:
    columns = in_order({line["dataset"] for line in lines})
    found: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for line in lines:
        for name in ("error", "entity_error", "selected_of_entity_words"):
            if line[name] is not None:
                found[line["strategy"], name, line["dataset"]].setdefault(line["seed"], line[name])
    body = []
    for strategy in STRATEGIES:
        for name, told in (
            ("error", "all words"), ("entity_error", "entity words"), ("selected_of_entity_words", "entity words taken"),
        ):  # fmt: skip
            cells = [_spread(found.get((strategy, name, dataset))) for dataset in columns]
            body.append([strategy if name == "error" else "", told, *cells])
        body.append(["", "paper", *(_number(paper.selection_error(dataset, strategy)) for dataset in columns)])
    notes = [
        "percent of wrong labels among the words that the first round selects, as much as each counts, mean ± standard "
        "deviation (runs): of all of them, and of those that are labelled as an entity; and the percent of entity words that "
        "is selected",
        "all strategies look at the same teacher; the paper does not say of which words its errors are",
    ]
    return Table(title, ["selected by", "", *columns], body, notes, labels=2)


def _calibration(group: Group, lines: Lines, rows: Rows) -> list[Table]:
    notes = ["expected calibration error of predicted entities on test, in percent, 15 bins of equally many: lower is better"]
    return _plain(f"{group.title}: calibration", by_row(lines, rows, "ece"), notes)


def _detection(group: Group, lines: Lines, rows: Rows) -> list[Table]:
    """A table for every variant: which score tells what is wrong."""
    names = sorted({rows[variant_of(line)] for line in lines}, key=rank)
    made = []
    for name in names:
        mine = [line for line in lines if rows[variant_of(line)] == name]
        columns = in_order({line["dataset"] for line in mine})
        found: dict[tuple[str, str, str, str], dict[int, float]] = defaultdict(dict)
        for line in mine:
            for figure in ("auroc", "risk_coverage"):
                if line[figure] is not None:
                    found[line["of"], line["score"], figure, line["dataset"]].setdefault(line["seed"], line[figure])
        body: list[list[str]] = []
        for of, score in dict.fromkeys((line["of"], line["score"]) for line in mine):
            for figure, told, digits in (("auroc", "AUROC", 3), ("risk_coverage", "AURC, %", 2)):
                cells = [_spread(found.get((of, score, figure, dataset)), digits) for dataset in columns]
                body.append([*((of, score) if figure == "auroc" else ("", "")), told, *cells])
        notes = [
            "how well a score tells wrong tags and entities from right ones, on unlabelled sentences whose tags are known, "
            "mean ± standard deviation (runs); AURC: area under the risk-coverage curve, lower is better",
        ]
        title = f"{group.title}: what tells errors" + ("" if len(names) == 1 else f", {name}")
        made.append(Table(title, ["of", "score", "", *columns], body, notes, labels=3))
    return made


def _classes(group: Group, lines: Lines, rows: Rows) -> list[Table]:
    notes = ["mean silhouette of the hidden states of test words by their true class, from -1 to 1: higher is further apart"]
    return _plain(f"{group.title}: how far the classes lie apart", by_row(lines, rows, "silhouette"), notes, digits=3)


def _plain(title: str, values: Values, notes: list[str], digits: int = 2) -> list[Table]:
    columns = in_order({dataset for _, dataset in values})
    names = sorted({row for row, _ in values}, key=rank)
    body = [[row, *(_spread(values.get((row, dataset)), digits) for dataset in columns)] for row in names]
    return [Table(title, ["method", *columns], body, notes)] if body else []


def _tested(first: list[float], second: list[float]) -> str:
    if not first:
        return MISSING
    found = paired_test(first, second)
    return f"{found.difference:+.2f} ({MISSING if found.p is None else f'{found.p:.3f}'})"


def _spread(found: Mapping[int, float] | Sequence[float] | None, digits: int = 2) -> str:
    if not found:
        return MISSING
    values = list(found.values() if isinstance(found, Mapping) else found)
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread} ({len(values)})"


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
