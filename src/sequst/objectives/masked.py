"""Masked sequence labelling: the loss of the selected words, averaged in each sentence (Eq. 9 and 10).

Labels are hard, (B, W), or soft: probabilities of every class, (B, W, C), of which the loss is the expectation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from sequst.tagger.batches import IGNORED


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over a sentence's selected words, averaged over the sentences that have any; 0 where none has.

    values (B, W), mask (B, W) true where selected.
    """
    selected = mask.sum(-1)  # (B,) L' of Eq. 9
    per_sentence = torch.where(mask, values, 0.0).sum(-1) / selected.clamp(min=1)
    return per_sentence.sum() / (selected > 0).sum().clamp(min=1)


def label_log_probs(log_probs: Tensor, labels: Tensor) -> Tensor:
    """log p(label) of every word (B, W), from (B, W, C); 0 where the label is IGNORED."""
    known = labels != IGNORED
    chosen = log_probs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return torch.where(known, chosen, 0.0)


def _masked(loss: Callable[[Tensor], Tensor], log_probs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The masked mean of a loss of log p(label)."""
    if labels.ndim == log_probs.ndim:
        return masked_mean((labels * loss(log_probs)).sum(-1), mask)
    return masked_mean(loss(label_log_probs(log_probs, labels)), mask & (labels != IGNORED))


def masked_cross_entropy(log_probs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Eq. 9, with the minus sign that it lacks in print."""
    return _masked(torch.neg, log_probs, labels, mask)


def huberised(log_p: Tensor, tau: float) -> Tensor:
    """Partially huberised cross-entropy of log p(label) (Eq. 11): linear in p up to 1/tau, -log p above.

    Both pieces meet at p = 1/tau with value log tau and slope -tau, so the gradient of a word never exceeds tau in p.
    """
    return torch.where(log_p <= -math.log(tau), -tau * log_p.exp() + math.log(tau) + 1.0, -log_p)


def masked_phce(log_probs: Tensor, labels: Tensor, mask: Tensor, tau: float) -> Tensor:
    """Eq. 10 with the loss of Eq. 11."""
    return _masked(functools.partial(huberised, tau=tau), log_probs, labels, mask)


class WordLoss(Protocol):
    """The loss of a student's batch: (log probabilities, labels, mask of the selected words, share of the steps done)."""

    def __call__(self, log_probs: Tensor, labels: Tensor, mask: Tensor, done: float) -> Tensor: ...


class CrossEntropy:
    def __call__(self, log_probs: Tensor, labels: Tensor, mask: Tensor, done: float) -> Tensor:
        return masked_cross_entropy(log_probs, labels, mask)


@dataclass(frozen=True)
class HuberisedCrossEntropy:
    """PHCE, after cross-entropy for the first `warmup` of the steps.

    A new student first learns that most words are O. Every entity tag is then improbable, where PHCE hardly pulls: from the
    first step on it can leave the student there.
    """

    tau: float
    warmup: float = 0.0

    def __call__(self, log_probs: Tensor, labels: Tensor, mask: Tensor, done: float) -> Tensor:
        if done < self.warmup:
            return masked_cross_entropy(log_probs, labels, mask)
        return masked_phce(log_probs, labels, mask, self.tau)
