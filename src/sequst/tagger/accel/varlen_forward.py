"""A forward of the BERT family for a GPU: no padding, and many passes of MC dropout at once, so that every launch is full.

The sub-words of all sentences lie one after the other; linear layers know no better, and attention and normalisation are
kernels of our own (`accel.kernels`). It has no gradients. Other architectures go through transformers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sequst.tagger.accel.available import encoder_kernels
from sequst.tagger.accel.kernels import Drop, Spans
from sequst.tagger.accel.layers import Layers, joined
from sequst.tagger.batches import Batch, moved

AT_ONCE = 65536
"""Sub-words of all passes that are computed together."""


class _Begun(NamedTuple):
    """What all passes over a batch have in common."""

    states: Tensor  # (N, H) of the sub-words, before the first layer
    spans: Spans
    bias: Tensor | None  # (heads, 2 x longest - 1)
    speakers: Tensor  # (M,) which of the N sub-words speak for a word
    words: Tensor  # (B x W,) which of the M speaks for each word; any for one that is padding


class VarlenForward:
    """The forward of one model, with its weights as they are now."""

    def __init__(self, known: Layers, kernels: ModuleType, dtype: torch.dtype) -> None:
        self._known, self._kernels, self._dtype = known, kernels, dtype
        self._layers = [[joined(parts, dtype) for parts in layer.products] for layer in known.layers]

    @classmethod
    def of(cls, known: Layers) -> VarlenForward | None:
        """Where there is a GPU that its kernels run on, and autocast to half precision; in fp32 it would gain little."""
        if known.base.device.type != "cuda" or not torch.is_autocast_enabled("cuda"):
            return None
        dtype = torch.get_autocast_dtype("cuda")
        kernels = encoder_kernels("varlen", known, dtype)
        return None if kernels is None else cls(known, kernels, dtype)

    def hidden(self, batch: Batch) -> Tensor:
        """(B, W, H): the state of every word."""
        begun = self._begin(batch)
        return self._words(begun, self._through(begun, begun.states.to(self._dtype), None), batch)[0]

    def passes(self, batch: Batch, passes: int, seed: int, last_layers: int = 0) -> Iterator[Tensor]:
        """(P, B, W, H): the states of every word in passes of MC dropout, some at a time; the seed decides them. With
        `last_layers` only these drop out, and those before them are done once for all passes.

        The embeddings' dropout comes from torch's own generator, which the caller seeds.
        """
        begun, keys = self._begin(batch), np.random.default_rng(seed)
        first = len(self._layers) - last_layers if last_layers else 0
        done = self._through(begun, begun.states.to(self._dtype), None, end=first) if last_layers else begun.states
        for count in _shares(passes, begun.spans.tokens):
            states = done.expand(count, -1, -1)
            if not last_layers:
                states = F.dropout(states, self._known.embeddings_dropout).to(self._dtype)
            yield self._words(begun, self._through(begun, states.flatten(0, 1), keys, first), batch)

    def _words(self, begun: _Begun, states: Tensor, batch: Batch) -> Tensor:
        """(P, B, W, H): of every word, from the states of the sub-words that speak for one (P x M, H)."""
        states = states.view(-1, len(begun.speakers), states.shape[1])[:, begun.words]
        return states.view(-1, *batch.heads.shape, states.shape[-1])

    def _begin(self, batch: Batch) -> _Begun:
        device = batch.input_ids.device
        starts = np.concatenate([[0], np.cumsum(batch.sizes)]).astype(np.int32)
        longest = batch.input_ids.shape[1]
        flat = np.flatnonzero(np.arange(longest) < np.array(batch.sizes)[:, None])

        on_device = moved(torch.from_numpy(starts), device)
        with torch.autocast(device.type, enabled=False):
            states = self._known.embeddings(batch.input_ids).flatten(0, 1)[moved(torch.from_numpy(flat), device)]
            places = self._known.position_bias(longest, device)  # (heads, L, L)
            bias = None if places is None else torch.cat([places[:, 1:, 0].flip(-1), places[:, 0]], -1).float().contiguous()
        there = np.arange(batch.heads.shape[1]) < np.array(batch.lengths)[:, None]  # (B, W)
        speakers = (on_device[:-1, None] + batch.heads).flatten()[moved(torch.from_numpy(np.flatnonzero(there)), device)]
        words = moved(torch.from_numpy(there.cumsum() - 1).clamp(min=0), device)
        return _Begun(states, Spans(on_device, int(starts[-1]), longest), bias, speakers, words)

    def _through(
        self, begun: _Begun, states: Tensor, keys: np.random.Generator | None, first: int = 0, end: int | None = None
    ) -> Tensor:
        """(P x N, H): the states behind some layers; behind the last (P x M, H), of sub-words that speak for a word, for nobody
        looks at others. With keys, they drop out."""
        kernels, spans = self._kernels, begun.spans

        def drop(dropout: nn.Dropout) -> Drop | None:
            if keys is None or dropout.p == 0:
                return None
            first, second = keys.integers(2**31, size=2).tolist()
            return Drop(dropout.p, (first, second))

        on_device = torch.cuda.device(states.device) if states.is_cuda else contextlib.nullcontext()
        with on_device, torch.autocast(states.device.type, enabled=False):
            for (qkv, output, up, down), known in list(zip(self._layers, self._known.layers, strict=True))[first:end]:
                seen = kernels.attention(
                    F.linear(states, *qkv), spans, self._known.heads, begun.bias, drop(known.attention_dropout)
                )
                if known is self._known.layers[-1]:
                    seen, states = (
                        x.view(-1, spans.tokens, x.shape[1])[:, begun.speakers].flatten(0, 1) for x in (seen, states)
                    )
                states = kernels.add_norm(F.linear(seen, *output), states, known.first_norm, drop(known.first_dropout))
                inner = kernels.up_gelu(states, *up) if self._known.gelu else known.activation(F.linear(states, *up))
                states = kernels.add_norm(F.linear(inner, *down), states, known.second_norm, drop(known.second_dropout))
        return states


def _shares(passes: int, tokens: int) -> list[int]:
    """How many passes to make at a time: as few blocks as memory allows, of like size."""
    blocks = -(-passes // max(1, AT_ONCE // tokens))
    return [passes * (i + 1) // blocks - passes * i // blocks for i in range(blocks)]
