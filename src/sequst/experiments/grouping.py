"""Which results belong together: the groups, rows and columns that tables and figures share."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.cells import Cell
from sequst.experiments.results import Lines, Results
from sequst.methods.registry import METHODS, find_method
from sequst.tagger.shape import BILSTM


class Group(NamedTuple):
    """Cells that stand in one table: they differ in dataset, method and seed alone."""

    encoder: str
    head: str
    shots: int
    sampler: str

    @property
    def title(self) -> str:
        return f"{self.shots}-shot, {self.encoder}, {self.head}"


def group_of(line: Mapping[str, Any]) -> Group:
    return Group(line["encoder"], line["head"], line["shots"], line["sampler"])


def of_group(lines: Lines, group: Group) -> Lines:
    """Those that belong to it."""
    return [line for line in lines if group_of(line) == group]


Scores = Mapping[tuple[str, str], Mapping[int, float]]
"""(dataset, row) -> seed -> F1."""
Rows = Mapping[tuple[Any, ...], str]
"""The name of the row of every variant of a method."""


def rows_of(results: Results) -> dict[tuple[Any, ...], str]:
    """The name of the row of every variant of a method: the method's, and where a group holds it with several recipes, theirs
    as well. Recipes that come to the same settings are one."""
    shortest: dict[tuple[Any, ...], str] = {}
    for line in results.lines:
        known = shortest.get(variant_of(line), line["recipe"])
        shortest[variant_of(line)] = min(known, line["recipe"], key=lambda recipe: (recipe != "default", len(recipe)))
    recipes: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for (group, method, _), recipe in shortest.items():
        recipes[group, method].add(recipe)
    return {
        (group, method, settings): f"{method} ({recipe})" if len(recipes[group, method]) > 1 else method
        for (group, method, settings), recipe in shortest.items()
    }


def variant_of(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """What has a row of its own: a method with its settings."""
    return group_of(line), line["method"], line["settings_hash"]


class Scored(NamedTuple):
    """The scores of a group."""

    scores: Scores
    ceiling: Mapping[str, float]
    """dataset -> F1 of fine-tuning on all of its training set."""
    caps: set[int]
    """Unlabelled sentences at most."""
    teachers: set[str]
    """Datasets on which some of fine-tuning's scores are those of a self-training's first teacher."""


def first_teachers(results: Results) -> Lines:
    """Self-training begins with fine-tuning: where it kept the score of its first teacher, that is a line of fine-tuning too.
    Not of a BiLSTM, which there knows the words of the unlabelled sentences as well."""
    finetune = find_method("finetune")
    lines = []
    for line in results.found("rounds"):
        if line["round"] == 0 and line.get("f1") is not None and line["encoder"] != BILSTM:
            cell = Cell("", line["dataset"], line["seed"], finetune.name, line["recipe"], line["encoder"], line["head"])
            settings = cell.settings().hash(finetune.unused)
            lines.append({**line, "method": finetune.name, "settings_hash": settings})
    return lines


def scores_of(results: Results, rows: Rows) -> dict[Group, Scored]:
    """By group, that with the most datasets first. A score of fine-tuning that is missing is that of a first teacher, where
    there is one."""
    ceilings: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    groups: dict[Group, dict[tuple[str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    caps: dict[Group, set[int]] = defaultdict(set)
    for line in results.lines:
        if line["shots"] is None:
            if line["method"] == "finetune":
                ceilings[line["dataset"], line["encoder"], line["head"]][line["seed"]] = line["f1"]
            continue
        group, row = group_of(line), rows[variant_of(line)]
        seeds = groups[group][line["dataset"], row]
        if seeds.get(line["seed"], line["f1"]) != line["f1"]:  # the same cell of two experiments is one
            what = f"{row} on {line['dataset']}, {group.title}, seed {line['seed']}"
            raise UsageError(f"two results for {what}; give the folders of one experiment at a time")
        seeds[line["seed"]] = line["f1"]
        caps[group] |= {line["pool"]} if line["pool"] is not None else set()
    teachers: dict[Group, set[str]] = defaultdict(set)
    for line in first_teachers(results):
        group, row = group_of(line), rows.get(variant_of(line), line["method"])
        seeds = groups[group][line["dataset"], row]
        if line["seed"] not in seeds:
            seeds[line["seed"]] = line["f1"]
            teachers[group].add(line["dataset"])
    found = {}
    for group in sorted(groups, key=lambda group: (-len({dataset for dataset, _ in groups[group]}), group)):
        scores = groups[group]
        ceiling = {
            dataset: statistics.mean(seeds.values())
            for (dataset, encoder, head), seeds in ceilings.items()
            if (encoder, head) == (group.encoder, group.head)
        }
        found[group] = Scored(scores, ceiling, caps[group], teachers[group])
    return found


def by_row(lines: Lines, rows: Rows, name: str) -> dict[tuple[str, str], list[float]]:
    """The figures of that name, by row and dataset; of a cell that several experiments hold, one."""
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for line in lines:
        if line.get(name) is not None:
            found[rows[variant_of(line)], line["dataset"]].setdefault(line["seed"], line[name])
    return {place: list(seeds.values()) for place, seeds in found.items()}


def over_rounds(lines: Lines, rows: Rows) -> dict[str, dict[tuple[int, str], list[float]]]:
    """dataset -> (round, its row) -> the F1 of every run. Runs that stopped before the longest one keep their last F1."""
    runs: dict[tuple[str, str], dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        if line.get("f1") is not None:
            runs[line["dataset"], rows[variant_of(line)]][line["seed"]].setdefault(line["round"], line["f1"])
    found: dict[str, dict[tuple[int, str], list[float]]] = defaultdict(dict)
    for (dataset, row), seeds in runs.items():
        last = max(max(rounds) for rounds in seeds.values())
        for number in range(last + 1):
            found[dataset][number, row] = [rounds[min(number, max(rounds))] for rounds in seeds.values()]
    return found


def in_order(datasets: Iterable[str]) -> list[str]:
    """Those of the paper first, in its order."""
    known = paper.datasets()
    return sorted(set(datasets), key=lambda name: (known.index(name) if name in known else len(known), name))


def rank(row: str) -> tuple[int, str]:
    """Rows stand in the order of the registry."""
    return list(METHODS).index(row.split(" ")[0]), row
