"""Passes of MC dropout over a batch, as fast as the encoder and the machine allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sequst.errors import UsageError
from sequst.tagger.accel.dropout_masks import Masks
from sequst.tagger.accel.forward import Forward
from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.mc_dropout import mc_dropout, same_dropout

if TYPE_CHECKING:
    from sequst.tagger.accel.cpu_forward import CpuForward
    from sequst.tagger.accel.varlen_forward import VarlenForward

TOGETHER = 5
"""Passes that go through the head at once, which is little work in many steps."""


def mc_passes(tagger: Tagger, forward: Forward, batch: Batch, passes: int, seed: int, last_layers: int = 0) -> Iterator[Tensor]:
    """(P, B, W, C): the log probabilities of all passes, some at a time, each with masks of its own, which the seed decides.

    With `last_layers`, only so many layers and the head drop out: faster, and an approximation. See `require_layers`.
    """
    known = Layers.of(tagger.encoder) if last_layers else None
    if known is not None and last_layers == len(known.layers):
        known, last_layers = None, 0  # then the embeddings may as well
    if forward.varlen is not None:
        return _varlen_passes(tagger, forward.varlen, batch, passes, seed, last_layers)
    if forward.cpu is not None:
        return _cpu_passes(tagger, forward.cpu, batch, passes, seed, last_layers)
    parts = None if known is None else [*known.last(last_layers), tagger.head]
    return _plain_passes(tagger, batch, passes, seed, parts)


def require_layers(tagger: Tagger, last_layers: int) -> None:
    """Raise an error if the encoder does not have that many known layers."""
    known = Layers.of(tagger.encoder)
    if last_layers and known is None:
        raise UsageError(f"{last_layers} last layers: only encoders like BERT, RoBERTa and MPNet have them; use 0")
    if known is not None and not 0 <= last_layers <= len(known.layers):
        raise UsageError(f"{last_layers} last layers: the encoder has {len(known.layers)}; use no more, or 0, for all")


def _plain_passes(tagger: Tagger, batch: Batch, passes: int, seed: int, parts: list[nn.Module] | None) -> Iterator[Tensor]:
    with mc_dropout(tagger, seed, parts):
        for _ in range(passes):
            yield tagger.head.seen_log_probs(tagger.head.scores(tagger.hidden(batch)), batch.rows).unsqueeze(0)


def _cpu_passes(tagger: Tagger, cpu: CpuForward, batch: Batch, passes: int, seed: int, last_layers: int) -> Iterator[Tensor]:
    begun, masks, head = cpu.begin(batch, last_layers), Masks(seed), tagger.head
    for done in range(0, passes, TOGETHER):
        count = min(TOGETHER, passes - done)
        hidden = torch.stack([cpu.finish(begun, masks) for _ in range(count)])
        yield _log_probs(tagger, batch, masks.drop(head.standardised(hidden), head.dropout.p))


def _varlen_passes(
    tagger: Tagger, varlen: VarlenForward, batch: Batch, passes: int, seed: int, last_layers: int
) -> Iterator[Tensor]:
    head = tagger.head
    with same_dropout(tagger, seed), torch.autocast(tagger.device.type, enabled=False):
        for hidden in varlen.passes(batch, passes, seed, last_layers):
            yield _log_probs(tagger, batch, F.dropout(head.standardised(hidden.float()), head.dropout.p))


def _log_probs(tagger: Tagger, batch: Batch, states: Tensor) -> Tensor:
    """(P, B, W, C) from the states that the head's linear layer is to see (P, B, W, H)."""
    scores = tagger.head.linear(states).float().flatten(0, 1)
    log_probs = tagger.head.seen_log_probs(scores, batch.rows.repeated(len(states)))
    return log_probs.view(len(states), -1, *log_probs.shape[1:])
