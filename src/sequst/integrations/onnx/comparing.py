"""Measure an export: speed, changed tags, F1."""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sequst.corpus.sentence import Sentence
from sequst.evaluation.evaluate import evaluation_of
from sequst.tagger.prediction import Prediction

Annotate = Callable[[Iterable[Sentence]], Iterable[Prediction]]

_TIMED = 500
"""Sentences that are timed."""
_TURNS = 3


@dataclass(frozen=True)
class Measured:
    """One way to tag, beside the first."""

    words_a_second: float
    changed: float
    """Percent of the tags that are not those of the first."""
    f1: float | None
    """None where the sentences have no tags."""


def compare(ways: Mapping[str, Annotate], sentences: Sequence[Sentence], types: Sequence[str]) -> dict[str, Measured]:
    """Each way on the same sentences. They take turns at being timed, after one that does not count."""
    predictions = {name: list(annotate(sentences)) for name, annotate in ways.items()}
    timed = sentences[:_TIMED]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_TURNS):
        for name, annotate in ways.items():
            begun = time.perf_counter()
            for _ in annotate(timed):
                pass
            seconds[name].append(time.perf_counter() - begun)
    words = sum(map(len, timed))
    tags = {name: [tag for prediction in found for tag in prediction.tags] for name, found in predictions.items()}
    reference = next(iter(tags.values()))
    known = all(sentence.tags is not None for sentence in sentences)
    return {
        name: Measured(
            words_a_second=words / statistics.median(seconds[name]),
            changed=100.0 * sum(map(operator.ne, tags[name], reference)) / max(1, len(reference)),
            f1=evaluation_of(found, types).total.f1 if known else None,
        )
        for name, found in predictions.items()
    }
