"""Which results belong together: the groups, rows and columns that tables and figures share."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.cells import Cell
from sequst.experiments.results import Lines, Results
from sequst.methods.registry import METHODS
from sequst.tagger.encoders.shape import BILSTM


class Group(NamedTuple):
    """Cells that stand in one table: they differ in dataset, method, settings, pool and seed alone."""

    encoder: str
    head: str
    shots: int
    sampler: str

    @property
    def title(self) -> str:
        drawn = "" if self.sampler == "sentences" else f" by {self.sampler}"
        return f"{self.shots}-shot{drawn}, {self.encoder}, {self.head}"

    @property
    def file_name(self) -> str:
        drawn = "" if self.sampler == "sentences" else f"-{self.sampler}"
        return slug(f"{self.shots}shot{drawn}-{self.encoder}-{self.head}")


def slug(name: str) -> str:
    """The name as a part of a file's."""
    return re.sub(r"[^\w.-]+", "-", name)


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
    """The name of the row of every variant of a method: the method's, and where a group holds several variants of it, what
    tells them apart: the recipe, of which several may come to the same settings, the pool, or the settings' hash where the
    defaults have changed meanwhile."""
    recipes: dict[tuple[Any, ...], str] = {}
    for line in [*results.lines, *first_teachers(results)]:
        known = recipes.get(variant_of(line), line["recipe"])
        recipes[variant_of(line)] = min(known, line["recipe"], key=lambda recipe: (recipe != "default", len(recipe)))
    variants: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for variant in recipes:
        variants[variant[:2]].append(variant)
    return {variant: _row_name(variant, variants[variant[:2]], recipes) for variant in recipes}


def _row_name(variant: tuple[Any, ...], rivals: list[tuple[Any, ...]], recipes: Mapping[tuple[Any, ...], str]) -> str:
    _, method, settings, pool = variant
    told = []
    if len({recipes[each] for each in rivals}) > 1:
        common = set.intersection(*(set(recipes[each].split()) for each in rivals))
        own = [setting for setting in recipes[variant].split() if setting not in common]
        told.append(" ".join(own) or "as it is")
    if len({each[3] for each in rivals}) > 1:
        told.append("all unlabelled" if pool is None else f"{pool:,} unlabelled")
    if sum((recipes[each], each[3]) == (recipes[variant], pool) for each in rivals) > 1:
        told.append(f"settings {settings}")
    return f"{method} ({', '.join(told)})" if told else str(method)


def variant_of(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """What has a row of its own: a method with its settings and its pool."""
    learns = line["method"] not in METHODS or METHODS[line["method"]].unlabeled
    return group_of(line), line["method"], line["settings_hash"], line["pool"] if learns else None


def method_of(row: str) -> str:
    """The method that a row is of."""
    return row.partition(" ")[0]


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
    Not of a BiLSTM, which there knows the words of the unlabelled sentences as well, nor of an encoder that has read them, nor
    of the best of several; and not where the settings of the line are no longer what its recipe comes to, so that those of its
    teacher are not known."""
    lines = []
    for line in results.found("rounds"):
        if line["round"] == 0 and line.get("f1") is not None and line["encoder"] != BILSTM:
            cell = Cell("", line["dataset"], line["seed"], line["method"], line["recipe"], line["encoder"], line["head"])
            try:
                settings = cell.settings()
                plain = not settings.adapt and settings.ensemble.teachers == 1
                known = plain and cell.settings_hash == line["settings_hash"]
                teacher = dataclasses.replace(cell, method="finetune").settings_hash
            except UsageError:  # a method or a setting that is no more
                continue
            if known:
                lines.append({**line, "method": "finetune", "settings_hash": teacher})
    return lines


def scores_of(results: Results, rows: Rows) -> dict[Group, Scored]:
    """By group, that with the most datasets first. A score of fine-tuning that is missing is that of a first teacher, where
    there is one."""
    groups: dict[Group, dict[tuple[str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    caps: dict[Group, set[int]] = defaultdict(set)
    for line in results.lines:
        if line["shots"] is not None:
            group, row = group_of(line), rows[variant_of(line)]
            _put(groups[group][line["dataset"], row], line, f"{row} on {line['dataset']}, {group.title}")
            caps[group] |= {line["pool"]} if line["pool"] is not None else set()
    teachers: dict[Group, set[str]] = defaultdict(set)
    for line in first_teachers(results):
        group = group_of(line)
        seeds = groups[group][line["dataset"], rows[variant_of(line)]]
        if line["seed"] not in seeds:
            seeds[line["seed"]] = line["f1"]
            teachers[group].add(line["dataset"])
    ceilings, found = ceilings_of(results), {}
    for group in sorted(groups, key=lambda group: (-len({dataset for dataset, _ in groups[group]}), group)):
        ceiling = ceilings.get((group.encoder, group.head), {})
        found[group] = Scored(groups[group], ceiling, caps[group], teachers[group])
    return found


def ceilings_of(results: Results) -> dict[tuple[str, str], dict[str, float]]:
    """(encoder, head) -> dataset -> F1 of fine-tuning on all of its training set."""
    found: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in results.lines:
        if line["shots"] is None and line["method"] == "finetune":
            what = f"full data on {line['dataset']}, {line['encoder']}, {line['head']}"
            _put(found[line["encoder"], line["head"]][line["dataset"]], line, what)
    return {
        pair: {dataset: statistics.mean(seeds.values()) for dataset, seeds in datasets.items()}
        for pair, datasets in found.items()
    }


def _put(seeds: dict[int, float], line: Mapping[str, Any], what: str) -> None:
    """The same cell of two experiments is one; other than that, a cell has one score."""
    before = seeds.setdefault(line["seed"], line["f1"])
    if before != line["f1"]:
        both = f"{before:.2f} and, of experiment {line['experiment']} with {line['recipe']}, {line['f1']:.2f}"
        raise UsageError(f"two results for {what}, seed {line['seed']}: {both}; give the folders of one experiment at a time")


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
    """Rows stand in the order of the registry, what it does not know last."""
    known = list(METHODS)
    return known.index(method_of(row)) if method_of(row) in known else len(known), row
