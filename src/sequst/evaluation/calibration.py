"""Whether a confidence means what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sequst.tagger.trust import Trust, logit

BINS = 15
PRIOR = 1.0
"""How firmly slope and intercept are held at 1 and 0, in entities: a few of them say little."""


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


def least_worth(confidences: Sequence[float], there: int) -> float:
    """The confidence below which an entity is expected to cost more F1 than it brings, of those found where `there` are to be
    found: half of the highest F1 that leaving out the least sure can be expected to reach, and never above a half."""
    sure = np.sort(np.asarray(confidences, dtype=np.float64))[::-1]
    if not len(sure):
        return 0.0
    expected = 2.0 * np.cumsum(sure) / (np.arange(1, len(sure) + 1) + there)
    return min(float(expected.max()), 1.0) / 2.0  # more is expected of confidences that are too high


def fit_trust(types: Sequence[str], confidences: Sequence[float], correct: Sequence[bool]) -> Trust:
    """The logistic function of the confidences' logits, with a shift for every type, that the entities which are right are most
    likely under. Where little is known of a type its shift is near 0, and of two entities of a type it never turns the order
    around."""
    names = sorted(set(types))
    features = np.zeros((len(confidences), 2 + len(names)))
    features[:, 0], features[:, 1] = [logit(confidence) for confidence in confidences], 1.0
    for row, type_ in enumerate(types):
        features[row, 2 + names.index(type_)] = 1.0
    right = np.asarray(correct, dtype=np.float64)
    start = np.zeros(2 + len(names))
    start[0] = 1.0
    found = start.copy()
    for _ in range(50):  # Newton's method: the loss is convex
        expected = 1.0 / (1.0 + np.exp(-np.clip(features @ found, -50.0, 50.0)))
        slope = features.T @ (expected - right) + PRIOR * (found - start)
        curvature = (features * (expected * (1.0 - expected))[:, None]).T @ features + PRIOR * np.eye(len(start))
        step = np.linalg.solve(curvature, slope)
        found = found - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-9:
            break
    shifts = tuple(zip(names, map(float, found[2:]), strict=True))
    return Trust(max(float(found[0]), 0.0), float(found[1]), shifts)
