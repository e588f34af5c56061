"""Which results belong together: the groups, rows and columns that tables and figures share."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sequst.errors import UsageError
from sequst.experiments import paper
from sequst.experiments.results import Lines
from sequst.methods.registry import METHODS

Line = Mapping[str, Any]


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


def of_group(findings: Mapping[str, Lines], group: Group) -> dict[str, Lines]:
    """Kind -> the lines that belong to it."""
    return {kind: [line for line in lines if group_of(line) == group] for kind, lines in findings.items()}


class Variant(NamedTuple):
    """What has a row of its own: a method with its settings and, if it learns from any, a limit on the unlabelled sentences."""

    group: Group
    method: str
    settings_hash: str
    pool: int | None


def variant_of(line: Line) -> Variant:
    method = line["method"]
    learns = method not in METHODS or METHODS[method].unlabeled
    return Variant(group_of(line), method, line["settings_hash"], line["pool"] if learns else None)


Rows = Mapping[Variant, str]
"""The name of the row of every variant."""


def rows_of(lines: Lines) -> dict[Variant, str]:
    """A row is named by its method and what not all rows of its group share: settings and, between variants of one method,
    pools, or the settings' hash where the defaults have changed meanwhile."""
    recipes: dict[Variant, str] = {}
    for line in lines:  # several recipes may come to the same settings
        recipe = line["recipe"].removeprefix("default").strip()
        recipes[variant_of(line)] = min(recipes.get(variant_of(line), recipe), recipe, key=len)
    return {variant: _row_name(variant, recipes) for variant in recipes}


def _row_name(variant: Variant, recipes: Mapping[Variant, str]) -> str:
    peers = [each for each in recipes if each.group == variant.group]
    rivals = [each for each in peers if each.method == variant.method]
    common = set.intersection(*(set(recipes[each].split()) for each in peers))
    own = [setting for setting in recipes[variant].split() if setting not in common]
    told = [" ".join(own)] if own else []
    if len({each.pool for each in rivals}) > 1:
        told.append("all unlabelled" if variant.pool is None else f"{variant.pool:,} unlabelled")
    if sum((recipes[each], each.pool) == (recipes[variant], variant.pool) for each in rivals) > 1:
        told.append(f"settings {variant.settings_hash}")
    return f"{variant.method} ({', '.join(told)})" if told else variant.method


def method_of(row: str) -> str:
    """The method that a row is of."""
    return row.partition(" ")[0]


def rank(row: str) -> tuple[int, str]:
    """Rows stand in the order of the registry, what it does not know last."""
    known = list(METHODS)
    return known.index(method_of(row)) if method_of(row) in known else len(known), row


Runs = dict[str, dict[int, Any]]
"""dataset -> seed -> a figure of that run."""
Values = dict[tuple[Any, ...], Runs]
"""The labels of a row, of which the first is its name, -> what stands in it. Rows are sorted by `rank`, then as they came."""


def gather(found: Iterable[tuple[tuple[Any, ...], Line, Any]]) -> Values:
    """Values from the labels of their row, the line they are of, and themselves; None is left out. Of a cell that several
    experiments hold, the first counts."""
    values: Values = defaultdict(lambda: defaultdict(dict))
    for labels, line, value in found:
        if value is not None:
            values[labels][line["dataset"]].setdefault(line["seed"], value)
    return {labels: values[labels] for labels in sorted(values, key=lambda labels: rank(labels[0]))}


def datasets_of(rows: Iterable[Runs]) -> list[str]:
    """Those of the paper first, in its order."""
    known = paper.datasets()
    names = {dataset for runs in rows for dataset in runs}
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def scores_of(lines: Lines, rows: Rows) -> dict[Group, dict[str, Runs]]:
    """Row -> F1 of its runs, by group: that with the most datasets first."""
    groups: dict[Group, Lines] = defaultdict(list)
    for line in lines:
        groups[group_of(line)].append(line)
    found = {}
    for group, members in groups.items():
        values = gather(((rows[variant_of(line)],), line, line["f1"]) for line in members)
        found[group] = {row: runs for (row,), runs in values.items()}
        for line in members:
            _require_one_score(line, rows[variant_of(line)], found[group])

    def order(group: Group) -> tuple[Any, ...]:
        return group.shots is None, -len(datasets_of(found[group].values())), group.encoder, group.head, group.shots

    return {group: found[group] for group in sorted(found, key=order)}


def _require_one_score(line: Line, row: str, scores: Mapping[str, Runs]) -> None:
    first = scores[row][line["dataset"]][line["seed"]]
    if first != line["f1"]:
        both = f"{first:.2f} and, of experiment {line['experiment']} with {line['recipe']}, {line['f1']:.2f}"
        what = f"{row} on {line['dataset']}, {group_of(line).title}, seed {line['seed']}"
        raise UsageError(f"two results for {what}: {both}; give the folders of one experiment at a time")


def fine_tuned(scores: Mapping[str, Runs]) -> dict[str, float]:
    """dataset -> mean F1 of fine-tuning; empty where it stands there with several settings, or not at all."""
    found = [runs for row, runs in scores.items() if method_of(row) == "finetune"]
    return means(found[0]) if len(found) == 1 else {}


def means(runs: Runs) -> dict[str, float]:
    return {dataset: statistics.mean(seeds.values()) for dataset, seeds in runs.items()}


def keep_last(rounds: Values) -> None:
    """Give runs that stopped before the longest one their last F1 for the rounds that they lack. Labels begin with the row and
    the round."""
    for row, number, *more in sorted(rounds, key=lambda labels: labels[1]):
        for dataset, seeds in rounds.get((row, number - 1, *more), {}).items():
            for seed, f1 in seeds.items():
                rounds[row, number, *more][dataset].setdefault(seed, f1)
