"""What a phase minimises."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger


class Objective:
    """A loss of a batch. It may bring nets that are trained beside the tagger: they are part of the state that a phase resumes
    from, and not of the tagger."""

    nets: nn.Module | None = None
    nets_rate: float | None = None
    """Peak learning rate of the nets; without, that of the encoder."""
    fast_way: bool = False
    """Whether the loss of the step that has begun may go through the encoder by a faster way: with first derivatives alone, and
    refreshed where others stand in the place of the weights."""
    recordable: bool = False
    """Whether that step may also be recorded and replayed: its loss asks the GPU for nothing, and on what else than the batch
    it depends, `stage` tells."""
    stage: Hashable = None
    """Steps of one stage that may be recorded compute their loss in the same way."""
    exact: bool = False
    """Whether it goes by how a small step changes what comes out, which bf16 would round away: its steps are in fp32."""
    reads_batch_alone: bool = False
    """Whether its loss depends on no words but those of the batch: neither on other text, nor on what the encoder knows of
    other words. Then these alone are learnt."""
    generators: tuple[torch.Generator, ...] = ()
    """What its noise comes from; they are seeded anew and never exchanged."""

    def begin_epoch(self, seed: int) -> None:
        """Called before every epoch. Noise of the objective's own must come from a generator seeded here, never from the one
        that shuffles and drops out: then a phase without the noise is the same as one that never had it."""

    def begin_step(self, step: int, steps: int) -> None:
        """Called before every step: how many are done, of how many. What depends on it is the same in a resumed phase."""

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """(the loss, values to record; their means since the last score go into metrics.jsonl)."""
        raise NotImplementedError
