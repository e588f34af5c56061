"""How much the passes of MC dropout disagree: from sums over passes to confidence and information gain (Eq. 1 to 6)."""

from __future__ import annotations

import torch
from torch import Tensor


class PassSums:
    """Running sums over passes: of the probabilities (N, C) and of the entropies (N,). Memory does not grow with the passes."""

    def __init__(self) -> None:
        self.passes = 0
        self._probabilities: Tensor | None = None
        self._entropies: Tensor | None = None

    def add(self, log_probs: Tensor) -> None:
        """Log probabilities of some passes (P, N, C)."""
        log_probs = log_probs.double()
        every = log_probs.exp()
        probabilities, entropies = every.sum(0), _entropy(every, log_probs).sum(0)
        if self._probabilities is not None and self._entropies is not None:
            probabilities, entropies = self._probabilities + probabilities, self._entropies + entropies
        self._probabilities, self._entropies = probabilities, entropies
        self.passes += len(log_probs)

    @property
    def mean(self) -> Tensor:
        """(N, C): the approximate posterior (Eq. 1)."""
        assert self._probabilities is not None, "no pass was added"
        return self._probabilities / self.passes

    def confidence(self, labels: Tensor) -> Tensor:
        """(N,): the mean probability of each word's label (Eq. 5)."""
        return self.mean.gather(-1, labels.unsqueeze(-1)).squeeze(-1)

    def information_gain(self) -> Tensor:
        """(N,): the entropy of the mean less the mean of the entropies (Eq. 4); never negative, rounding aside, so cut at 0."""
        assert self._entropies is not None, "no pass was added"
        mean = self.mean
        return (_entropy(mean, mean.log()) - self._entropies / self.passes).clamp(min=0.0)


def _entropy(probabilities: Tensor, logs: Tensor) -> Tensor:
    """-sum p log p over the last dimension, with 0 log 0 = 0."""
    return -torch.where(probabilities > 0, probabilities * logs, 0.0).sum(-1)
