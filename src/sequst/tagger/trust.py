"""From the probabilities of an entity's words to how likely the entity is right as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

EDGE = 1e-6
"""Nothing is more certain than by this: a logit must be finite."""


class Trust(NamedTuple):
    """The mean probability of the words, its logit stretched and shifted as a dev set asks for; as made, that mean itself."""

    slope: float = 1.0
    intercept: float = 0.0

    def confidence(self, words: Sequence[float]) -> float:
        """Of an entity, from the probabilities of the tags of its words."""
        mean = math.fsum(words) / len(words)
        if self == AS_IT_IS:
            return mean
        return 1.0 / (1.0 + math.exp(-(self.slope * logit(mean) + self.intercept)))


AS_IT_IS = Trust()


def logit(probability: float) -> float:
    """log p / (1 - p), a little short of the edges."""
    bounded = min(max(probability, EDGE), 1.0 - EDGE)
    return math.log(bounded / (1.0 - bounded))
