"""Masked sequence labelling: the loss of the selected words, averaged in each sentence (Eq. 9 to 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sequst.tagger.accel.available import loss_kernels
from sequst.tagger.batches import IGNORED, Batch
from sequst.tagger.heads import Head, SoftmaxHead, unhalved


@dataclass(frozen=True)
class WordLoss:
    """PHCE (Eq. 11), after cross-entropy for the first `warmup` of the steps. With an infinite tau, cross-entropy throughout.

    A new student first learns that most words are O. Every entity tag is then improbable, where PHCE hardly pulls: from the
    first step on it can leave the student there.
    """

    tau: float = math.inf
    warmup: float = 0.0

    def tau_at(self, done: float) -> float:
        """The current tau, when this fraction of the steps is done; `inf` means cross-entropy."""
        return math.inf if done < self.warmup else self.tau


CROSS_ENTROPY = WordLoss()
"""-log p(label): Eq. 9, with the minus sign that it lacks in print."""


def huberised(log_p: Tensor, tau: float) -> Tensor:
    """Partially huberised cross-entropy of log p(label) (Eq. 11): linear in p up to 1/tau, -log p above.

    Both pieces meet at p = 1/tau with value log tau and slope -tau, so the gradient of a word never exceeds tau in p.
    """
    return torch.where(log_p <= -math.log(tau), -tau * log_p.exp() + math.log(tau) + 1.0, -log_p)


def word_losses(log_probs: Tensor, labels: Tensor, tau: float = math.inf) -> Tensor:
    """(B, W): the loss of every word's label (B, W) under log probabilities (B, W, C); 0 where the label is IGNORED."""
    chosen = log_probs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    log_p = torch.where(labels != IGNORED, chosen, 0.0)
    return huberised(log_p, tau) if math.isfinite(tau) else -log_p


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over a sentence's selected words, averaged over the sentences that have any; 0 where none has.

    values (B, W), mask (B, W) true where selected.
    """
    selected = mask.sum(-1)  # (B,) L' of Eq. 9
    per_sentence = torch.where(mask, values, 0.0).sum(-1) / selected.clamp(min=1)
    return per_sentence.sum() / (selected > 0).sum().clamp(min=1)


def masked_loss(head: Head, hidden: Tensor, batch: Batch, tau: float) -> Tensor:
    """The masked mean of the losses of a batch's labels, each times its weight, from hidden states (B, W, H)."""
    assert batch.labels is not None
    scores = head.raw_scores(hidden)
    kernels = loss_kernels(scores, len(hidden)) if isinstance(head, SoftmaxHead) else None
    if kernels is not None:
        loss: Tensor = kernels.masked_loss(scores, batch.labels, batch.selected, batch.weights, tau)
        return loss
    losses = word_losses(head.log_probs(unhalved(scores), batch.rows), batch.labels, tau)
    return masked_mean(losses if batch.weights is None else batch.weights * losses, batch.selected)
