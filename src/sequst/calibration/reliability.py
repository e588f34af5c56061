"""Reliability: confidence against accuracy, in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BINS = 15


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions of like confidence: their mean confidence, the share of them that is right (0 to 1), and how many."""

    confidence: float
    accuracy: float
    count: int


def reliability(confidences: Sequence[float], correct: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """Bins of equally many predictions, as near as may be, from the least confident up; none is empty."""
    order = np.argsort(np.asarray(confidences), kind="stable")
    sure = np.asarray(confidences, dtype=np.float64)[order]
    right = np.asarray(correct, dtype=np.float64)[order]
    parts = [part for part in np.array_split(np.arange(len(sure)), bins) if len(part)]
    return [Bin(float(sure[part].mean()), float(right[part].mean()), len(part)) for part in parts]


def expected_calibration_error(bins: Sequence[Bin]) -> float | None:
    """The gap between confidence and accuracy, averaged over predictions, from 0 to 100; None where there are none."""
    total = sum(each.count for each in bins)
    if not total:
        return None
    return 100.0 * sum(each.count * abs(each.confidence - each.accuracy) for each in bins) / total
