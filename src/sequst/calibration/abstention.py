"""Abstention: leave out entities whose confidence says that they lower the expected F1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from sequst.corpus.sentence import Sentence
from sequst.tagger.predict import annotate
from sequst.tagger.tagger import Tagger


def abstention_threshold(confidences: Sequence[float], present: int) -> float:
    """The confidence below which an entity lowers the expected F1, where `present` entities are to be found.

    It is half of the highest F1 that dropping the least confident entities can be expected to reach, and at most 0.5.
    """
    ranked = np.sort(np.asarray(confidences, dtype=np.float64))[::-1]
    if not len(ranked):
        return 0.0
    expected = 2.0 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + present)
    return min(float(expected.max()), 1.0) / 2.0  # confidences that are too high promise an F1 above 1


def describe_abstention(tagger: Tagger, dev: Sequence[Sentence]) -> str | None:
    """A note on the entities that are left out on the dev set; None where none is."""
    threshold = tagger.entity_calibration.threshold
    if threshold <= 0:
        return None
    predictions = list(annotate(tagger, dev))
    left_out = Counter(entity.type for each in predictions for entity in each.left_out)
    if not left_out:
        return None
    kept = Counter(entity.type for each in predictions for entity in each.entities)
    whole = [type_ for type_ in left_out if type_ not in kept]
    every = f", among them every {', '.join(whole)}" if whole else ""
    total = left_out.total() + kept.total()
    return (
        f"entities below {threshold:.2f} are left out ({left_out.total()} of {total} on the dev set{every}): "
        "keeping them would lower F1; predict --min-confidence 0 shows them"
    )
