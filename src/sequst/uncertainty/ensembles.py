"""What several teachers believe together: those of several seeds, or of the rounds so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sequst.uncertainty.beliefs import Beliefs

if TYPE_CHECKING:
    from numpy.typing import NDArray


def mixture(members: Sequence[Beliefs], shares: Sequence[float]) -> Beliefs:
    """The mixture of some beliefs of the same words, each with its share; they must hold probabilities.

    It is as if the passes of all were those of one: the probabilities are their mean, and the information gain is the entropy
    of that less the mean of the entropies, so that members that disagree add to it. Labels are the argmax of the mean.
    """
    parts = np.asarray(shares, dtype=np.float64) / np.sum(shares)
    mean: NDArray[np.float64] = np.zeros(())
    entropies: NDArray[np.float64] = np.zeros(())
    for part, member in zip(parts, members, strict=True):
        assert member.probabilities is not None
        probabilities = member.probabilities.astype(np.float64)
        mean = mean + part * probabilities
        entropies = entropies + part * (_entropy(probabilities) - member.information_gain)
    labels = mean.argmax(-1)
    confidence = np.take_along_axis(mean, labels[:, None], -1)[:, 0].astype(np.float32)
    gain = np.clip(_entropy(mean) - entropies, 0.0, None).astype(np.float32)
    return dataclasses.replace(
        members[0],
        labels=labels,
        plain_confidence=confidence,
        confidence=confidence,
        information_gain=gain,
        probabilities=mean.astype(np.float32),
        drawn_from=None,
        seconds=sum(member.seconds for member in members),
    )


def _entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """-sum p log p over the last dimension, with 0 log 0 = 0."""
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    entropy: NDArray[np.float64] = -(probabilities * logs).sum(-1)
    return entropy
