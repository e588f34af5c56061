"""Which results belong together: the groups, rows and columns that tables and figures share."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.results import Lines, Results
from sequst.methods.registry import METHODS

Line = Mapping[str, Any]
Runs = dict[str, dict[int, Any]]
"""dataset -> seed -> a figure of that run."""
Values = dict[tuple[Any, ...], Runs]
"""The labels of a row, of which the first is its name, -> what stands in it. Rows are sorted by `rank`, then as they came."""


class Group(NamedTuple):
    """Cells that stand in one table: they differ in dataset, method, settings, pool and seed alone."""

    encoder: str
    head: str
    shots: int | None

    @property
    def title(self) -> str:
        shots = "full data" if self.shots is None else f"{self.shots}-shot"
        return f"{shots}, {self.encoder}, {self.head}"

    @property
    def file_name(self) -> str:
        return re.sub(r"[^\w.-]+", "-", f"{self.shots}shot-{self.encoder}-{self.head}")


def group_of(line: Line) -> Group:
    return Group(line["encoder"], line["head"], line["shots"])


@dataclass(frozen=True)
class Section:
    """What there is of a group."""

    group: Group
    lines: Lines
    """Each with its `row`."""
    scores: Mapping[str, Runs]
    """Row -> F1."""
    full: Mapping[str, float]
    """dataset -> mean F1 of fine-tuning on all of its training set."""
    findings: Mapping[str, Lines]
    """By kind; each line with its `row`."""


def sections_of(results: Results) -> list[Section]:
    """By group, that with the most datasets first and full data last."""
    groups: dict[Group, Lines] = defaultdict(list)
    for line in results.lines:
        groups[group_of(line)].append(line)
    rows = {group: _rows(lines) for group, lines in groups.items()}

    def named(lines: Lines, group: Group) -> Lines:
        return [{**line, "row": rows[group][variant_of(line)]} for line in lines if group_of(line) == group]

    found = {group: named(lines, group) for group, lines in groups.items()}
    scores = {group: _scores(group, lines) for group, lines in found.items()}
    full = {(group.encoder, group.head): fine_tuned(runs) for group, runs in scores.items() if group.shots is None}
    sections = [
        Section(group, found[group], scores[group], full.get((group.encoder, group.head), {}),
                {kind: named(lines, group) for kind, lines in results.findings.items()})
        for group in found
    ]  # fmt: skip

    def order(section: Section) -> tuple[Any, ...]:
        encoder, head, shots = section.group
        return shots is None, -len(datasets_of(section.scores.values())), encoder, head, shots

    return sorted(sections, key=order)


Variant = tuple[str, str, int | None]
"""What has a row of its own: a method, the hash of its settings, and the limit on unlabelled sentences if it uses any."""


def variant_of(line: Line) -> Variant:
    method = line["method"]
    learns = method not in METHODS or METHODS[method].unlabeled
    return method, line["settings_hash"], line["pool"] if learns else None


def _rows(lines: Lines) -> dict[Variant, str]:
    """The name of the row of every variant of a group: its method, and what not all rows share: settings and, between variants
    of one method, pools, or the settings' hash where the defaults have changed meanwhile."""
    recipes: dict[Variant, str] = {}
    for line in lines:  # several recipes may come to the same settings
        recipe = line["recipe"].removeprefix("default").strip()
        recipes[variant_of(line)] = min(recipes.get(variant_of(line), recipe), recipe, key=len)
    common = set.intersection(*(set(recipe.split()) for recipe in recipes.values()))
    rows = {}
    for (method, settings_hash, pool), recipe in recipes.items():
        rivals = {each: other for each, other in recipes.items() if each[0] == method}
        own = [setting for setting in recipe.split() if setting not in common]
        told = [" ".join(own)] if own else []
        if len({each[2] for each in rivals}) > 1:
            told.append("all unlabelled" if pool is None else f"{pool:,} unlabelled")
        if sum((each[2], other) == (pool, recipe) for each, other in rivals.items()) > 1:
            told.append(f"settings {settings_hash}")
        rows[method, settings_hash, pool] = f"{method} ({', '.join(told)})" if told else method
    return rows


def method_of(row: str) -> str:
    """The method that a row is of."""
    return row.partition(" ")[0]


def rank(row: str) -> tuple[int, str]:
    """Rows stand in the order of the registry, what it does not know last."""
    known = list(METHODS)
    return known.index(method_of(row)) if method_of(row) in known else len(known), row


def gather(lines: Lines, figure: str, *labels: str) -> Values:
    """That figure of the lines, by their row and these labels. Of a cell that several experiments hold, the first counts."""
    values: Values = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if line.get(figure) is not None:
            place = values[line["row"], *(line[label] for label in labels)]
            place[line["dataset"]].setdefault(line["seed"], line[figure])
    return {labels_: values[labels_] for labels_ in sorted(values, key=lambda labels_: rank(labels_[0]))}


def datasets_of(rows: Iterable[Runs]) -> list[str]:
    """Those of the paper first, in its order."""
    known = paper.datasets()
    names = {dataset for runs in rows for dataset in runs}
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def _scores(group: Group, lines: Lines) -> dict[str, Runs]:
    scores = {row: runs for (row,), runs in gather(lines, "f1").items()}
    for line in lines:
        first = scores[line["row"]][line["dataset"]][line["seed"]]
        if first != line["f1"]:
            both = f"{first:.2f} and, of experiment {line['experiment']} with {line['recipe']}, {line['f1']:.2f}"
            what = f"{line['row']} on {line['dataset']}, {group.title}, seed {line['seed']}"
            raise UsageError(f"two results for {what}: {both}; give the folders of one experiment at a time")
    return scores


def fine_tuned(scores: Mapping[str, Runs]) -> dict[str, float]:
    """dataset -> mean F1 of fine-tuning; empty where it stands there with several settings, or not at all."""
    found = [runs for row, runs in scores.items() if method_of(row) == "finetune"]
    return means(found[0]) if len(found) == 1 else {}


def means(runs: Runs) -> dict[str, float]:
    return {dataset: statistics.mean(seeds.values()) for dataset, seeds in runs.items()}


def over_rounds(lines: Lines) -> Values:
    """(row, round) -> F1. Runs that stopped before the longest one keep their last F1."""
    rounds = gather(lines, "f1", "round")
    for row, number in sorted(rounds, key=lambda place: int(place[1])):
        for dataset, seeds in rounds.get((row, number - 1), {}).items():
            for seed, f1 in seeds.items():
                rounds[row, number][dataset].setdefault(seed, f1)
    return rounds
