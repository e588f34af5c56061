"""What the paper prints, to stand beside our figures; and where it disagrees with itself."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple, cast

import yaml

ENCODER = "bert"
"""bert-base-uncased: what the paper's figures are of, where it does not say otherwise."""


ROUNDED = 0.0101
"""How far figures may be apart that were rounded, or made of such, and still agree."""


class Figure(NamedTuple):
    """A mean F1 and its standard deviation over five seeds; the full data have no deviation."""

    f1: float
    deviation: float | None = None


class Erratum(NamedTuple):
    """A figure of the paper that its own figures contradict."""

    place: str
    printed: float
    elsewhere: float
    """What the rest of the paper gives for it."""

    def __str__(self) -> str:
        return f"{self.place}: printed {self.printed:.2f}, by the paper's own figures {self.elsewhere:.2f}"


@functools.cache
def _tables() -> dict[str, Any]:
    text = resources.files("sequst.experiments").joinpath("data/paper.yaml").read_text(encoding="utf-8")
    return cast("dict[str, Any]", yaml.safe_load(text))


def datasets() -> list[str]:
    return list(_tables()["columns"])


def figure(dataset: str, method: str, shots: int | None = 10, encoder: str = ENCODER, head: str = "softmax") -> Figure | None:
    """The paper's F1, of its largest table that has it; None where it prints none. Without shots, of the full data."""
    tables = _tables()
    if shots is None:
        plain = (method, encoder, head) == ("finetune", ENCODER, "softmax")
        return _pick(tables["full_data"]["finetune"], tables["columns"], dataset) if plain else None
    if (encoder, head) != (ENCODER, "softmax"):
        row = tables["base_encoders"].get(f"{encoder}-{head}") if (method, shots) == ("sequst", 10) else None
        return _pick(row, tables["columns"], dataset)
    found = _pick(tables["few_shot"].get(shots, {}).get(method), tables["columns"], dataset)
    if found is None and shots == 10:
        found = _pick(tables["ablation"].get(method), tables["ablation"]["columns"], dataset)
    return found


def selection_error(dataset: str, strategy: str) -> float | None:
    """Percent of wrong pseudo-labels with a strategy: none, confidence, certainty or both."""
    table = _tables()["selection_error"]
    found = _pick(table.get(strategy), table["columns"], dataset)
    return None if found is None else found.f1


def caveats() -> dict[str, str]:
    """What keeps our figures on a dataset from being set beside the paper's."""
    return dict(_tables()["caveats"])


def average(method: str, shots: int | None = 10) -> float:
    """The mean over the six sets, recomputed."""
    figures = [figure(dataset, method, shots) for dataset in datasets()]
    return statistics.mean(found.f1 for found in figures if found is not None)


def _pick(row: Sequence[Any] | None, columns: Sequence[str], dataset: str) -> Figure | None:
    if row is None or dataset not in columns:
        return None
    value = row[list(columns).index(dataset)]
    return Figure(*value) if isinstance(value, list) else Figure(value)


def errata() -> list[Erratum]:
    """Every printed figure that another one of the paper contradicts."""
    tables = _tables()
    found = []
    for shots, table in tables["few_shot"].items():
        for method, printed in table["printed_averages"].items():
            found.append(Erratum(f"{shots}-shot, {method}, average", printed, average(method, shots)))
        for method, printed in table["printed_deltas"].items():
            gain = round(average(method, shots), 2) - round(average("finetune", shots), 2)
            found.append(Erratum(f"{shots}-shot, {method}, gain over fine-tuning", printed, gain))
    found.append(Erratum("full data, average", tables["full_data"]["printed_average"], average("finetune", None)))
    for pair, printed in tables["base_encoders"]["printed_averages"].items():
        mean = statistics.mean(f1 for f1, _ in tables["base_encoders"][pair])
        found.append(Erratum(f"base encoders, {pair}, average", printed, mean))
    for (method, rows), dataset in itertools.product(tables["data_efficiency"].items(), tables["columns"]):
        for shots, row in rows.items():
            large, small = figure(dataset, method, shots), _pick(row, tables["columns"], dataset)
            assert large is not None
            assert small is not None
            found.append(Erratum(f"summary of 20, 50 and 100 shots, {method}, {dataset}, {shots}-shot", small.f1, large.f1))
    for method, dataset in itertools.product(("sst", "sequst"), tables["ablation"]["columns"]):
        large, small = figure(dataset, method), _pick(tables["ablation"][method], tables["ablation"]["columns"], dataset)
        assert large is not None
        assert small is not None
        found.append(Erratum(f"ablation, {method}, {dataset}", small.f1, large.f1))
    return [each for each in found if abs(each.printed - each.elsewhere) > ROUNDED]
