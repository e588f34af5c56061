"""Temperature: one number by which scores are divided before the softmax, so that probabilities fit the dev set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOWEST, HIGHEST = 0.1, 20.0


def fit_temperature(probabilities: NDArray[np.float32], tags: Sequence[str], names: Sequence[str]) -> float:
    """The temperature at which the tags of words are most likely, from the probabilities (N, C) of the tags called `names`.

    Words of a type that is not among these do not count. Golden section: there is one optimum.
    """
    ids = {name: number for number, name in enumerate(names)}
    known = [place for place, tag in enumerate(tags) if tag in ids]
    labels = torch.tensor([ids[tags[place]] for place in known])
    log_probs = torch.from_numpy(probabilities[known]).double().clamp(min=1e-30).log()

    def loss(log_temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(log_probs / float(np.exp(log_temperature)), labels))

    low, high = float(np.log(LOWEST)), float(np.log(HIGHEST))
    ratio = (5.0**0.5 - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return float(np.exp((low + high) / 2.0))
