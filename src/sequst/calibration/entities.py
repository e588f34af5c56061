"""Fit the confidence of entities, and the threshold below which they are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sequst.corpus.tags import spans
from sequst.tagger.entity_calibration import EntityCalibration, logit
from sequst.tagger.prediction import Prediction

PRIOR = 1.0
"""Weight of the prior on slope 1, intercept 0 and no shifts, in entities."""


class EntityOutcomes(NamedTuple):
    """Type, confidence and correctness of each predicted entity."""

    types: list[str]
    confidences: list[float]
    correct: list[bool]


def entity_outcomes(predictions: Iterable[Prediction]) -> EntityOutcomes:
    """Compare predicted entities with the tags of their sentences."""
    found = EntityOutcomes([], [], [])
    for prediction in predictions:
        right = set(spans(prediction.sentence.tags or ()))
        for entity in prediction.entities:
            found.types.append(entity.type)
            found.confidences.append(entity.confidence)
            found.correct.append(entity[:3] in right)
    return found


def fit_entity_calibration(types: Sequence[str], confidences: Sequence[float], correct: Sequence[bool]) -> EntityCalibration:
    """The logistic function of the confidences' logits, with a shift for each type, of maximum posterior probability.

    Types with few entities keep a shift near 0. The slope is never negative, so the order within a type stays.
    """
    names = sorted(set(types))
    logits, of_type = [logit(confidence) for confidence in confidences], np.array(types)[:, None] == np.array(names)
    features = np.column_stack([logits, np.ones(len(logits)), of_type])
    right = np.asarray(correct, dtype=np.float64)
    start = np.eye(2 + len(names))[0]
    found = start
    for _ in range(50):  # Newton's method: the loss is convex
        expected = 1.0 / (1.0 + np.exp(-np.clip(features @ found, -50.0, 50.0)))
        slope = features.T @ (expected - right) + PRIOR * (found - start)
        curvature = (features * (expected * (1.0 - expected))[:, None]).T @ features + PRIOR * np.eye(len(start))
        step = np.linalg.solve(curvature, slope)
        found = found - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-9:
            break
    shifts = tuple(zip(names, map(float, found[2:]), strict=True))
    return EntityCalibration(max(float(found[0]), 0.0), float(found[1]), shifts)


def abstention_threshold(confidences: Sequence[float], present: int) -> float:
    """The confidence below which an entity lowers the expected F1, where `present` entities are to be found.

    It is half of the highest F1 that dropping the least confident entities can be expected to reach, and at most 0.5.
    """
    ranked = np.sort(np.asarray(confidences, dtype=np.float64))[::-1]
    if not len(ranked):
        return 0.0
    expected = 2.0 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + present)
    return min(float(expected.max()), 1.0) / 2.0  # confidences that are too high promise an F1 above 1


def describe_abstention(types: Sequence[str], confidences: Sequence[float], threshold: float) -> str | None:
    """A note on the entities of the dev set that are left out; None if there are none."""
    found = Counter(types)
    left_out = Counter(type_ for type_, confidence in zip(types, confidences, strict=True) if confidence < threshold)
    if not left_out:
        return None
    whole = [type_ for type_, count in left_out.items() if count == found[type_]]
    every = f", among them every {', '.join(whole)}" if whole else ""
    return (
        f"entities below {threshold:.2f} are left out ({left_out.total()} of {found.total()} on the dev set{every}): "
        "keeping such entities is expected to lower F1; predict --min-confidence 0 shows them"
    )
