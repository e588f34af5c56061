"""F1 with an interval, from a few sentences that were drawn at random and judged by a person.

A bootstrap of ten sentences is too narrow: it cannot draw an error that they do not have. Here the variance of the ratio
F1 = 2 tp / (2 tp + fp + fn) is linearised over sentences (delta method) on the logit scale, with Student's t, and half a
sentence of `USUAL` F1 is added. How often the true F1 is inside was simulated (tests/annotation/test_judged.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequst.corpus.tags import spans
from sequst.evaluation.paired import t_quantile
from sequst.evaluation.spans import Counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIOR = 0.5
"""Sentences that are added, of the mean number of entities."""
USUAL = 0.6
"""F1 of what is added, from 0 to 1."""

Judged = Sequence[tuple[int, int, int]]
"""True positives, false positives and false negatives of every sentence, as `SpanScores.sentences` has them."""


class F1Interval(NamedTuple):
    """An F1 and where that of the whole text lies, with the probability `level`; all from 0 to 100."""

    value: float
    low: float
    high: float
    level: float
    sentences: int
    entities: int
    """Entities that the person found."""


class F1Difference(NamedTuple):
    """How much higher the first F1 is than the second, and where the difference on the whole text lies, in points."""

    value: float
    low: float
    high: float
    level: float
    sentences: int


def judged_f1(counts: Judged, level: float = 0.9) -> F1Interval:
    """The F1 of these sentences, and its interval for the text that they were drawn from: 0 to 100 if they have no entity."""
    sums = _Sums(counts)
    entities = sum(tp + fn for tp, _, fn in counts)
    if not sums.used:
        return F1Interval(0.0, 0.0, 100.0, level, len(counts), 0)
    error = _error(np.append(sums.influence, sums.prior * (USUAL - sums.shrunk)), sums.used)
    logit, scale = np.log(sums.shrunk / (1.0 - sums.shrunk)), sums.shrunk * (1.0 - sums.shrunk)
    reach = t_quantile(level, sums.used + 1) * error / scale
    low, high = (float(100.0 / (1.0 + np.exp(-np.clip(logit + side * reach, -500.0, 500.0)))) for side in (-1, 1))
    return F1Interval(sums.f1, min(low, sums.f1), max(high, sums.f1), level, len(counts), entities)


def judged_types(counts: Mapping[str, Judged], level: float = 0.9) -> dict[str, F1Interval]:
    """The same of every type, from what `counts_by_type` gives."""
    return {type_: judged_f1(each, level) for type_, each in counts.items()}


def counts_by_type(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, list[Counts]]:
    """By type, the counts of every sentence, from the tags that a person gave and those that were predicted."""
    outcomes = []
    for right, guess in zip(gold, predicted, strict=True):
        truth, found = set(spans(right)), set(spans(guess))
        outcomes.append((truth & found, found - truth, truth - found))
    types = sorted({span.type for outcome in outcomes for part in outcome for span in part})
    return {
        type_: [Counts(*(sum(span.type == type_ for span in part) for part in outcome)) for outcome in outcomes]
        for type_ in types
    }


def compare(first: Judged, second: Judged, level: float = 0.9) -> F1Difference:
    """The difference of two taggers on the same sentences. Half a sentence that only one of them gets right is added, so that
    two that agree on all of a few sentences are not called equal."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} sentences: both must have judged the same")
    used = int((_sizes(first) + _sizes(second) > 0).sum())
    if not used:
        return F1Difference(0.0, -100.0, 100.0, level, len(first))
    one, other = _Sums(first, used), _Sums(second, used)
    error = _error(np.append(one.influence - other.influence, max(one.prior, other.prior)), used)
    reach, middle = t_quantile(level, used + 1) * error, one.shrunk - other.shrunk
    value, low, high = one.f1 - other.f1, 100.0 * float(middle - reach), 100.0 * float(middle + reach)
    return F1Difference(value, max(min(value, low), -100.0), min(max(value, high), 100.0), level, len(first))


class _Sums:
    """F1 as a ratio, plain and with the prior, and the influence of every sentence on it."""

    def __init__(self, counts: Judged, used: int = 0) -> None:
        sizes = _sizes(counts)
        right = 2.0 * np.array([tp for tp, _, _ in counts], dtype=np.float64)
        self.used = used or int((sizes > 0).sum())
        """Sentences with an entity, right or predicted."""
        self.f1 = Counts(*map(sum, zip(*counts, strict=True))).f1 if counts else 0.0
        added = PRIOR * max(float(sizes.sum()), 1.0) / max(self.used, 1)
        whole = float(sizes.sum()) + added
        self.shrunk = (float(right.sum()) + added * USUAL) / whole
        self.influence: NDArray[np.float64] = (right - self.shrunk * sizes) / whole
        self.prior = added / whole
        """Share of what is added."""


def _sizes(counts: Judged) -> NDArray[np.float64]:
    """2 tp + fp + fn of every sentence."""
    return np.array([2 * tp + fp + fn for tp, fp, fn in counts], dtype=np.float64)


def _error(influences: NDArray[np.float64], used: int) -> float:
    """The standard error of a sum of independent influences, of `used` sentences and the prior."""
    size = used + PRIOR
    return float(np.sqrt((influences**2).sum() * size / (size - 1.0)))
