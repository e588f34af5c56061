"""Words that are hidden from the encoder in a step of training: what they are must be told from the others."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger


def hide_words(batch: Batch, share: float, tagger: Tagger, generator: torch.Generator) -> Batch:
    """The batch, on the CPU, with that share of its words, all sub-words of each, behind the mask token."""
    hidden = (torch.rand(batch.word_mask.shape, generator=generator) < share) & batch.word_mask  # (B, W)
    ids = torch.where(_subwords_of(hidden, batch, tagger.splitter.closing), tagger.encoder.mask_id, batch.input_ids)
    spelling = None if batch.spelling is None else torch.where(hidden.unsqueeze(-1), 0, batch.spelling)
    return replace(batch, input_ids=ids, spelling=spelling)


def _subwords_of(words: Tensor, batch: Batch, closing: int) -> Tensor:
    """(B, L): which sub-words are of the words marked in (B, W); `closing` special tokens end every row."""
    begins = torch.zeros_like(batch.input_ids).scatter_add(1, batch.heads, batch.word_mask.long())
    word = begins.cumsum(1) - 1  # (B, L) the word of each sub-word; -1 before the first
    places = torch.arange(word.shape[1])
    inside = (word >= 0) & (places < torch.tensor(batch.sizes).unsqueeze(1) - closing)
    return words.gather(1, word.clamp(min=0)) & inside
