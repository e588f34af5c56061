"""Results as tables: ours beside the paper's, with what is missing shown as missing."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sequst.errors import UsageError
from sequst.evaluation.paired import paired_test
from sequst.experiments import paper
from sequst.experiments.rendering import Table
from sequst.experiments.results import STRATEGIES, Lines, Results
from sequst.methods.registry import METHODS

MISSING = "-"


class Group(NamedTuple):
    """Cells that stand in one table: they differ in dataset, method and seed alone."""

    encoder: str
    head: str
    shots: int
    sampler: str

    @property
    def title(self) -> str:
        return f"{self.shots}-shot, {self.encoder}, {self.head}"


Scores = Mapping[tuple[str, str], Mapping[int, float]]
"""(dataset, method) -> seed -> F1."""


def tables_of(results: Results, baseline: str = "sst") -> list[Table]:
    """Of every group a table of scores, and one of differences to the baseline with their p values; then what was found in the
    cells, where they kept it: rounds, calibration, errors of selected words, how far the classes lie apart."""
    rows = rows_of(results)
    ceilings: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    groups: dict[Group, dict[tuple[str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    caps: dict[Group, set[int]] = defaultdict(set)
    for line in results.lines:
        if line["shots"] is None:
            if line["method"] == "finetune":
                ceilings[line["dataset"], line["encoder"], line["head"]][line["seed"]] = line["f1"]
            continue
        group, row = group_of(line), rows[_variant(line)]
        seeds = groups[group][line["dataset"], row]
        if seeds.get(line["seed"], line["f1"]) != line["f1"]:  # the same cell of two experiments is one
            what = f"{row} on {line['dataset']}, {group.title}, seed {line['seed']}"
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
        made += _rounds(group, _of_group(results.found("rounds"), group), rows)
        made += _selection(group, _of_group(results.found("selection"), group))
        made += _calibration(group, _of_group(results.found("reliability"), group), rows)
        made += _classes(group, _of_group(results.found("words"), group), rows)
    return made


def rows_of(results: Results) -> dict[tuple[Any, ...], str]:
    """The name of the row of every variant of a method: the method's, and where a group holds it with several recipes, theirs
    as well. Recipes that come to the same settings are one."""
    shortest: dict[tuple[Any, ...], str] = {}
    for line in results.lines:
        known = shortest.get(_variant(line), line["recipe"])
        shortest[_variant(line)] = min(known, line["recipe"], key=lambda recipe: (recipe != "default", len(recipe)))
    recipes: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for (group, method, _), recipe in shortest.items():
        recipes[group, method].add(recipe)
    return {
        (group, method, settings): f"{method} ({recipe})" if len(recipes[group, method]) > 1 else method
        for (group, method, settings), recipe in shortest.items()
    }


def _variant(line: Mapping[str, Any]) -> tuple[Any, ...]:
    return group_of(line), line["method"], line["settings_hash"]


def _of_group(lines: Lines, group: Group) -> Lines:
    return [line for line in lines if group_of(line) == group]


def group_of(line: Mapping[str, Any]) -> Group:
    return Group(line["encoder"], line["head"], line["shots"], line["sampler"])


def _columns(scores: Scores) -> list[str]:
    """The paper's datasets, of which what we lack is to be seen, and then our own."""
    return [*paper.datasets(), *sorted({dataset for dataset, _ in scores} - set(paper.datasets()))]


def _methods(scores: Scores) -> list[str]:
    """The rows, in the order of the registry."""
    return sorted({method for _, method in scores}, key=_order)


def _order(row: str) -> tuple[int, str]:
    return list(METHODS).index(row.split(" ")[0]), row


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
    return Table(group.title, ["method", "", *columns, "average"], told, notes, labels=2)


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
    return [Table(f"{group.title}: less {baseline}", ["method", *columns, "all"], rows, notes)]


Values = Mapping[tuple[str, str], Sequence[float]]
"""(row, dataset) -> a figure of every run."""


def by_row(lines: Lines, rows: Mapping[tuple[Any, ...], str], name: str) -> dict[tuple[str, str], list[float]]:
    """The figures of that name, by row and dataset; of a cell that several experiments hold, one."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for line in lines:
        if line.get(name) is not None:
            found[rows[_variant(line)], line["dataset"]].setdefault(line["seed"], line[name])
    return {place: list(seeds.values()) for place, seeds in found.items()}


def over_rounds(lines: Lines) -> dict[str, dict[tuple[int, str], list[float]]]:
    """dataset -> (round, its row) -> the F1 of every run. Runs that stopped before the longest one keep their last F1."""
    runs: dict[tuple[str, str], dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if line.get("f1") is not None:
            runs[line["dataset"], line["row"]][line["seed"]].setdefault(line["round"], line["f1"])
    found: dict[str, dict[tuple[int, str], list[float]]] = defaultdict(dict)
    for (dataset, row), seeds in runs.items():
        last = max(max(rounds) for rounds in seeds.values())
        for number in range(last + 1):
            found[dataset][number, row] = [rounds[min(number, max(rounds))] for rounds in seeds.values()]
    return found


def with_rows(lines: Lines, rows: Mapping[tuple[Any, ...], str]) -> Lines:
    """The lines, each with the name of its row."""
    return [{**line, "row": rows[_variant(line)]} for line in lines]


def _rounds(group: Group, lines: Lines, rows: Mapping[tuple[Any, ...], str]) -> list[Table]:
    found = over_rounds(with_rows(lines, rows))
    columns = ordered(found)
    places = sorted({place for by_round in found.values() for place in by_round}, key=lambda place: (_order(place[1]), place))
    if not places:
        return []
    body = [[row, str(number), *(_spread(found[d].get((number, row))) for d in columns)] for number, row in places]
    notes = [
        "test F1 of the teacher of every round, mean ± standard deviation (runs), looked at when the run had ended; round 0 is "
        "fine-tuning",
        "runs that stopped earlier keep their last F1",
    ]
    return [Table(f"{group.title}: over the rounds", ["method", "round", *columns], body, notes, labels=2)]


def _selection(group: Group, lines: Lines) -> list[Table]:
    columns = ordered({line["dataset"] for line in lines})
    if not columns:
        return []
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
        "percent of wrong labels among the words that the first round selects, mean ± standard deviation (runs): of all of "
        "them, and of those that are labelled as an entity; and the percent of entity words that is selected",
        "all strategies look at the same teacher; the paper does not say of which words its errors are",
    ]
    return [Table(f"{group.title}: errors of selected words", ["selected by", "", *columns], body, notes, labels=2)]


def _calibration(group: Group, lines: Lines, rows: Mapping[tuple[Any, ...], str]) -> list[Table]:
    notes = ["expected calibration error of predicted entities on test, in percent, 15 bins of equally many: lower is better"]
    return _plain(f"{group.title}: calibration", by_row(lines, rows, "ece"), notes)


def _classes(group: Group, lines: Lines, rows: Mapping[tuple[Any, ...], str]) -> list[Table]:
    notes = ["mean silhouette of the hidden states of test words by their true class, from -1 to 1: higher is further apart"]
    return _plain(f"{group.title}: how far the classes lie apart", by_row(lines, rows, "silhouette"), notes, digits=3)


def _plain(title: str, values: Values, notes: list[str], digits: int = 2) -> list[Table]:
    columns = ordered({dataset for _, dataset in values})
    names = sorted({row for row, _ in values}, key=_order)
    body = [[row, *(_spread(values.get((row, dataset)), digits) for dataset in columns)] for row in names]
    return [Table(title, ["method", *columns], body, notes)] if body else []


def ordered(datasets: Iterable[str]) -> list[str]:
    """Those of the paper first, in its order."""
    known = paper.datasets()
    return sorted(set(datasets), key=lambda name: (known.index(name) if name in known else len(known), name))


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
