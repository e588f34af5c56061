"""Training objectives."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger


class Objective:
    """A loss of a batch, with what the loop must know of it. It may bring nets that are trained beside the tagger: they are
    part of a checkpoint, and not of the tagger."""

    nets: nn.Module | None = None
    nets_rate: float | None = None
    """Peak learning rate of the nets; None = the encoder's."""
    needs_fp32: bool = False
    """It compares losses before and after a small step, which bf16 would round off."""
    batch_only: bool = False
    """The loss depends on the words of the batch alone, so embeddings of other words need no training."""
    generator: torch.Generator
    """Where its own noise comes from. The loop makes it on the tagger's device and seeds it before every epoch; dropout and
    shuffling draw from another, so a phase without the noise is the same as one that never had it."""

    def begin_step(self, step: int, steps: int) -> None:
        """Called before every step: how many are done, of how many. What depends on it is the same in a resumed phase."""

    def graph_key(self) -> Hashable | None:
        """Key of the CUDA graph of the step that has begun: steps with the same key and shape compute the same function of
        their batch. None = do not record it."""
        return None

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """(the loss, values to record; their means since the last score go into metrics.jsonl)."""
        raise NotImplementedError
