"""Passes of MC dropout over a batch, as fast as the encoder and the machine allow."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from sequst.tagger.batches import Batch
from sequst.tagger.forward import Forward
from sequst.tagger.masks import Masks
from sequst.tagger.tagger import Tagger
from sequst.tagger.transformer import states_of_words
from sequst.uncertainty.mc_dropout import mc_dropout


def mc_passes(tagger: Tagger, forward: Forward, batch: Batch, passes: int, seed: int) -> Iterator[Tensor]:
    """(B, W, C): the log probabilities of every pass, each with masks of its own, which the seed decides."""
    if forward.lean is None:
        with mc_dropout(tagger, seed):
            for _ in range(passes):
                yield tagger(batch)
        return
    begun, masks, head = forward.lean.begin(batch), Masks(seed), tagger.head
    for _ in range(passes):
        hidden = states_of_words(forward.lean.finish(begun, masks), batch)
        states = masks.drop(head.standardised(hidden), head.dropout.p)
        yield head.log_probs(head.linear(states).float(), batch.rows)
