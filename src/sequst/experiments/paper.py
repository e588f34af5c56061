"""What the paper prints, to stand beside our figures; and where it disagrees with itself."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple, cast

import yaml

ENCODER = "bert"
"""bert-base-uncased: what the paper's figures are of, where it does not say otherwise."""


class Figure(NamedTuple):
    """A mean F1 and its standard deviation over five seeds; the full data have no deviation."""

    f1: float
    deviation: float | None = None


@functools.cache
def _tables() -> dict[str, Any]:
    text = resources.files("sequst.experiments").joinpath("data/paper.yaml").read_text(encoding="utf-8")
    return cast("dict[str, Any]", yaml.safe_load(text))


def datasets() -> list[str]:
    return list(_tables()["columns"])


def figure(dataset: str, method: str, shots: int | None = 10, encoder: str = ENCODER, head: str = "softmax") -> Figure | None:
    """The paper's F1, of its largest table that has it; None where it prints none. Without shots, of the full data."""
    tables = _tables()
    if (encoder, head) != (ENCODER, "softmax"):
        row = tables["base_encoders"].get(f"{encoder}-{head}") if (method, shots) == ("sequst", 10) else None
    elif shots is None:
        row = tables["full_data"].get(method)
    else:
        row = tables["few_shot"].get(shots, {}).get(method)
    found = _pick(row, tables["columns"], dataset)
    if found is None and (encoder, head, shots) == (ENCODER, "softmax", 10):
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


def errata(shots: int | None) -> list[tuple[str, str]]:
    """(method, what is wrong with it) of every printed figure that the paper's other figures contradict."""
    return [(method, told) for method, told in _tables()["errata"].get(shots, [])]


def average(method: str, shots: int | None = 10) -> float:
    """The mean over the six sets, recomputed."""
    figures = [figure(dataset, method, shots) for dataset in datasets()]
    return statistics.mean(found.f1 for found in figures if found is not None)


def _pick(row: Sequence[Any] | None, columns: Sequence[str], dataset: str) -> Figure | None:
    if row is None or dataset not in columns:
        return None
    value = row[list(columns).index(dataset)]
    return Figure(*value) if isinstance(value, list) else Figure(value)
