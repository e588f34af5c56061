"""Abstention: leave out entities whose confidence says that they lower the expected F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np


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
    """A note on the entities of the dev set that are left out; None where none is."""
    found = Counter(types)
    left_out = Counter(type_ for type_, confidence in zip(types, confidences, strict=True) if confidence < threshold)
    if not left_out:
        return None
    whole = [type_ for type_, count in left_out.items() if count == found[type_]]
    every = f", among them every {', '.join(whole)}" if whole else ""
    return (
        f"entities below {threshold:.2f} are left out ({left_out.total()} of {found.total()} on the dev set{every}): "
        "keeping them would lower F1; predict --min-confidence 0 shows them"
    )
