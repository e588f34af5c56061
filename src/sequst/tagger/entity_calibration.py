"""The confidence of an entity, from the probabilities of its words. `sequst.calibration` fits it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sequst.errors import UsageError

EDGE = 1e-6
"""Distance of probabilities from 0 and 1: a logit must be finite."""


class EntityCalibration(NamedTuple):
    """A logistic function from the mean probability of an entity's words to its confidence; by default that mean itself."""

    slope: float = 1.0
    intercept: float = 0.0
    types: tuple[tuple[str, float], ...] = ()
    """(type, shift in logits): some types are harder than the tagger thinks."""
    threshold: float = 0.0
    """Entities of lower confidence are left out."""

    def confidence(self, words: Sequence[float], type_: str) -> float:
        """The confidence of an entity of this type, from the probabilities of its words' tags."""
        mean = math.fsum(words) / len(words)
        if (self.slope, self.intercept, self.types) == (1.0, 0.0, ()):  # to the last digit
            return mean
        shift = self.intercept + dict(self.types).get(type_, 0.0)
        return 1.0 / (1.0 + math.exp(-(self.slope * logit(mean) + shift)))

    def asked_for(self, raw_tags: bool, min_confidence: float | None) -> EntityCalibration:
        """The calibration with a caller's threshold in place of the one from training."""
        if min_confidence is not None and not 0 <= min_confidence <= 1:
            raise UsageError(f"min_confidence {min_confidence}: must be at least 0 and at most 1")
        return self._replace(threshold=(0.0 if raw_tags else self.threshold) if min_confidence is None else min_confidence)

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "types": dict(self.types)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> EntityCalibration:
        """The inverse of `to_dict`; a ValueError for anything else."""
        if not isinstance(found, Mapping) or not isinstance(found.get("types", {}), Mapping):
            raise ValueError("damaged or not written by sequst")
        slope, intercept = found.get("slope", 1.0), found.get("intercept", 0.0)
        types = dict(found.get("types", {}))
        threshold = found.get("threshold", found.get("least", 0.0))  # its name before 0.2
        numbers = (slope, intercept, threshold, *types.values())
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            raise ValueError("damaged or not written by sequst")
        if slope < 0 or not 0 <= threshold <= 1:
            raise ValueError("damaged or not written by sequst")
        shifts = tuple((str(type_), float(shift)) for type_, shift in types.items())
        return cls(float(slope), float(intercept), shifts, float(threshold))


UNCALIBRATED = EntityCalibration()


def logit(probability: float) -> float:
    """log p / (1 - p), a little short of the edges."""
    bounded = min(max(probability, EDGE), 1.0 - EDGE)
    return math.log(bounded / (1.0 - bounded))
