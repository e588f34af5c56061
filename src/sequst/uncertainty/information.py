"""Confidence and information gain from sums over MC dropout passes (Eq. 1 to 6)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def posterior(passes: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """(the mean probabilities (N, C) (Eq. 1); the entropy of the mean less the mean of the entropies (N,) (Eq. 4)).

    From log probabilities (P, N, C), some passes at a time: memory does not grow with their number.
    """
    count, probabilities, entropies = 0, torch.zeros(()), torch.zeros(())
    for log_probs in passes:
        log_probs = log_probs.double()
        each = log_probs.exp()
        probabilities, entropies = probabilities + each.sum(0), entropies + _entropy(each, log_probs).sum(0)
        count += len(log_probs)
    mean = probabilities / count
    return mean, (_entropy(mean, mean.log()) - entropies / count).clamp(min=0.0)  # never negative, rounding aside


def _entropy(probabilities: Tensor, logs: Tensor) -> Tensor:
    """-sum p log p over the last dimension, with 0 log 0 = 0."""
    return -torch.where(probabilities > 0, probabilities * logs, 0.0).sum(-1)
