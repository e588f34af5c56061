"""Entity-level precision, recall and F1: an entity counts where type, start and end are all right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sequst.corpus.tags import spans


class Counts(NamedTuple):
    """True positives, false positives, false negatives, and what follows from them."""

    tp: int
    fp: int
    fn: int

    @property
    def precision(self) -> float:
        return _percent(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        return _percent(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        return _percent(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    def to_dict(self) -> dict[str, float | int]:
        return {name: getattr(self, name) for name in ("precision", "recall", "f1", "tp", "fp", "fn")}


def _percent(part: int, whole: int) -> float:
    """0 if the whole is 0."""
    return 100.0 * part / whole if whole else 0.0


class SpanScores(NamedTuple):
    """Micro-averaged over all entities, of every type that occurs in gold or prediction, and of every sentence."""

    total: Counts
    types: dict[str, Counts]
    sentences: list[Counts]


def score_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> SpanScores:
    """Compare tags sentence by sentence; both sides are read leniently, as seqeval does by default."""
    tp: Counter[str] = Counter()
    fp: Counter[str] = Counter()
    fn: Counter[str] = Counter()
    sentences = []
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        truth, found = set(spans(gold_tags)), set(spans(predicted_tags))
        outcomes = (truth & found, found - truth, truth - found)
        for counter, outcome in zip((tp, fp, fn), outcomes, strict=True):
            counter.update(span.type for span in outcome)
        sentences.append(Counts(*map(len, outcomes)))
    types = {type_: Counts(tp[type_], fp[type_], fn[type_]) for type_ in sorted({*tp, *fp, *fn})}
    return SpanScores(Counts(tp.total(), fp.total(), fn.total()), types, sentences)


def f1_interval(sentences: Sequence[Counts], draws: int = 1000) -> tuple[float, float]:
    """(low, high): where 95 % of the F1 of as many sentences lie, drawn from these with replacement, by a fixed seed."""
    if not sentences:
        return 0.0, 0.0
    counts, rng = np.array(sentences), np.random.default_rng(12)
    scores = [Counts(*map(int, counts[rng.integers(0, len(counts), len(counts))].sum(0))).f1 for _ in range(draws)]
    low, high = np.percentile(scores, (2.5, 97.5))
    return float(low), float(high)
