"""Masked sequence labelling: the loss of the selected words, averaged in each sentence (Eq. 9 and 10).

Labels are hard, (B, W), or soft: probabilities of every class, (B, W, C), of which the loss is the expectation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
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


def each(loss: Callable[[Tensor], Tensor], log_probs: Tensor, labels: Tensor) -> Tensor:
    """(B, W): a loss of log p(label) of every word; of words without a label that of log p = 0."""
    if labels.ndim == log_probs.ndim:
        return (labels * loss(log_probs)).sum(-1)
    return loss(label_log_probs(log_probs, labels))


def huberised(log_p: Tensor, tau: float) -> Tensor:
    """Partially huberised cross-entropy of log p(label) (Eq. 11): linear in p up to 1/tau, -log p above.

    Both pieces meet at p = 1/tau with value log tau and slope -tau, so the gradient of a word never exceeds tau in p.
    """
    return torch.where(log_p <= -math.log(tau), -tau * log_p.exp() + math.log(tau) + 1.0, -log_p)


class WordLoss(Protocol):
    """The loss of every word (B, W), from (log probabilities, labels, share of the steps done)."""

    def __call__(self, log_probs: Tensor, labels: Tensor, done: float) -> Tensor: ...

    def tau_at(self, done: float) -> float | None:
        """That of the PHCE that it is, infinity where it is cross-entropy; None where it is neither, and no kernel knows it."""

    def stage(self, done: float) -> Hashable:
        """Within a stage it does not depend on the share of the steps."""


class CrossEntropy:
    """-log p(label): Eq. 9, with the minus sign that it lacks in print."""

    def __call__(self, log_probs: Tensor, labels: Tensor, done: float) -> Tensor:
        return each(torch.neg, log_probs, labels)

    def tau_at(self, done: float) -> float:
        return math.inf

    def stage(self, done: float) -> Hashable:
        return None


@dataclass(frozen=True)
class HuberisedCrossEntropy:
    """PHCE (Eq. 11), after cross-entropy for the first `warmup` of the steps.

    A new student first learns that most words are O. Every entity tag is then improbable, where PHCE hardly pulls: from the
    first step on it can leave the student there.
    """

    tau: float
    warmup: float = 0.0

    def __call__(self, log_probs: Tensor, labels: Tensor, done: float) -> Tensor:
        return each(torch.neg if self.stage(done) else functools.partial(huberised, tau=self.tau), log_probs, labels)

    def tau_at(self, done: float) -> float:
        return math.inf if self.stage(done) else self.tau

    def stage(self, done: float) -> Hashable:
        """Whether it is still cross-entropy."""
        return done < self.warmup
