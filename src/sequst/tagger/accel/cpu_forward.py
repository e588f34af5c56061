"""A lean forward of the BERT family: what transformers computes, in fewer steps and with cheap dropout; without gradients.

It is made from the weights as they are, for as long as they stay so, and every other architecture goes through transformers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from sequst.tagger.accel.dropout_masks import Masks
from sequst.tagger.accel.layers import Layer, Layers, joined
from sequst.tagger.batches import Batch

_SHORT = 16
"""Rows of fewer numbers fill no vector register."""
_TOKENS, _NUMBERS = 384, 1 << 17
"""Sub-words of a batch, or, where they are narrow, numbers of their states: all of it stays in the cache of a core."""
_ROUND = 16
"""Rows of a product are filled up to a multiple of it: oneDNN builds a kernel for every number of rows, in milliseconds."""


class Product:
    """A linear layer, perhaps with GELU behind it."""

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype, gelu: bool = False) -> None:
        self._weight, self._bias, self._gelu = weight.detach().to(dtype).t(), bias.detach().to(dtype), gelu
        self.packed: Tensor | None = None
        """The weight in oneDNN's own order, where the product is oneDNN's."""

    def lay_out(self, rows: int) -> None:
        """For so many rows at a time."""
        if _one_dnn_is_faster(self._bias.dtype):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self._weight.t().contiguous(), rows)
        else:
            self._weight = self._weight.contiguous()

    def __call__(self, states: Tensor) -> Tensor:
        """(N, in) -> (N, out), in the precision of the product."""
        states = states.to(self._bias.dtype)
        if self.packed is not None:
            after = "gelu" if self._gelu else "none"
            found: Tensor = torch.ops.mkldnn._linear_pointwise(states, self.packed, self._bias, after, [], "none")
            return found
        found = torch.mm(states, self._weight).add_(self._bias)
        return torch.ops.aten.gelu_(found) if self._gelu else found


def _one_dnn_is_faster(dtype: torch.dtype) -> bool:
    """Than MKL, by a tenth with AVX-512. With AVX2, in fp32, MKL is by as much, and by a third where a GELU follows."""
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    mkl: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    return there and not (mkl and dtype == torch.float32 and torch.backends.cpu.get_cpu_capability() == "AVX2")


class Begun(NamedTuple):
    """What all passes over a batch have in common: it comes before the first dropout."""

    states: Tensor  # (B, L, H), before the first layer or, where only the last ones drop out, before these
    first: int  # which layer is next
    bias: Tensor | None  # what is added to the attention scores, (B or 1, heads or 1, L or 1, L)
    speakers: Tensor  # which of the B x L sub-words speak for a word
    there: Tensor | None  # which of them are no padding; None where all are
    words: Tensor  # (B, W) where they are among the words


class CpuForward:
    """The forward of one model. Its products may be in half precision, all else is not."""

    def __init__(self, known: Layers, dtype: torch.dtype = torch.float32) -> None:
        self._known, self._dtype = known, dtype
        self._layers = [(layer, self._products(layer)) for layer in known.layers]
        self._laid_out = False

    @property
    def token_budget(self) -> int:
        """Sub-words in a batch, for one core."""
        return max(_TOKENS, _NUMBERS // self._known.width)

    def lay_out(self) -> None:
        """Copy the weights as products read them fastest, which pays from a few batches on."""
        if self._laid_out:
            return
        for _, products in self._layers:
            for product in products:
                product.lay_out(self.token_budget)
        self._laid_out = True

    def _products(self, layer: Layer) -> tuple[Product, Product, Product, Product]:
        """(query, key and value, the query scaled already; output; up; down)."""
        weight, bias = joined(layer.products[0], torch.float32)
        for part in (weight, bias):
            part[: self._known.width] *= (self._known.width // self._known.heads) ** -0.5
        output, up, down = (
            Product(part.weight, part.bias, self._dtype, part is layer.up and self._known.gelu)
            for part in (layer.output, layer.up, layer.down)
        )
        return Product(weight, bias, self._dtype), output, up, down

    def begin(self, batch: Batch, last_layers: int = 0) -> Begun:
        """With `last_layers`, those before them are done."""
        states = self._known.embeddings(batch.input_ids)
        mask = batch.attention_mask
        there = None if bool(mask.all()) else mask.flatten().nonzero().flatten()
        bias = None if there is None else torch.where(mask.bool(), 0.0, torch.finfo(states.dtype).min)[:, None, None, :]
        places = self._known.position_bias(states.shape[1], states.device)  # (heads, L, L)
        if places is not None:
            bias = places.unsqueeze(0) if bias is None else places + bias
        speakers = (batch.heads + torch.arange(len(mask), device=mask.device).unsqueeze(1) * mask.shape[1])[batch.word_mask]
        begun = Begun(states, 0, bias, speakers, there, batch.word_mask)
        first = len(self._layers) - last_layers if last_layers else 0
        return begun._replace(states=self._through(begun, first, None).view(states.shape), first=first) if first else begun

    def finish(self, begun: Begun, masks: Masks | None = None) -> Tensor:
        """(B, W, H): the state of every word, 0 of padding; with masks, one pass of MC dropout."""
        if masks is not None and begun.first == 0:
            begun = begun._replace(states=masks.drop(begun.states.clone(), self._known.embeddings_dropout))
        states = self._through(begun, len(self._layers), masks)
        found = states.new_zeros(*begun.words.shape, states.shape[-1])
        found[begun.words] = states
        return found

    def _through(self, begun: Begun, end: int, masks: Masks | None) -> Tensor:
        """(B x L, H): the states before the layer `end`, or, behind the last, those that speak for a word. Without masks only
        attention sees padding."""
        rows, length, width = begun.states.shape
        count = rows * length
        # of many passes over a batch each has as many rows
        filled = masks is None and self._layers[0][1][0].packed is not None
        heads, states, speakers = self._known.heads, begun.states.reshape(count, width), begun.speakers
        there = begun.there if masks is None else None
        if there is not None:
            states, speakers = states[there], torch.searchsorted(there, speakers)
        some = len(states)
        states = _filled(states) if filled else states
        for layer, (query_key_value, output, up, down) in self._layers[begun.first : end]:
            found = _spread(query_key_value(states)[:some], there, count)
            parts = found.view(rows, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
            parts = states.new_empty(parts.shape).copy_(parts)
            query, key, value = parts.view(3, rows * heads, length, -1)  # (B x heads, L, size)
            weights = torch.bmm(query, key.transpose(1, 2))
            if begun.bias is not None:
                weights.view(rows, heads, length, length).add_(begun.bias)
            weights = _softmax(weights)
            if masks is not None:
                weights = masks.drop(weights, layer.attention_dropout.p)
            seen = torch.bmm(weights, value).view(rows, heads, length, -1).transpose(1, 2).reshape(count, width)
            if layer is self._known.layers[-1]:  # once attention has seen the others, nobody looks at them
                seen, states, some, there = seen[begun.speakers], states[speakers], len(speakers), None
                states = _filled(states) if filled else states
            elif there is not None:
                seen = seen[there]
            seen = _filled(seen) if filled else seen
            states = layer.first_norm(_added(output(seen), states, masks, layer.first_dropout))
            inner = up(states) if self._known.gelu else layer.activation(up(states))
            states = layer.second_norm(_added(down(inner), states, masks, layer.second_dropout))
        return _spread(states[:some], there, count)


def _spread(states: Tensor, places: Tensor | None, count: int) -> Tensor:
    """(count, ...): each of the states at its place, 0 elsewhere."""
    return states if places is None else states.new_zeros(count, *states.shape[1:]).index_copy_(0, places, states)


def _filled(states: Tensor) -> Tensor:
    """With rows of 0 behind them, up to a multiple of `_ROUND`."""
    return nn.functional.pad(states, (0, 0, 0, -len(states) % _ROUND))


def _added(change: Tensor, to: Tensor, masks: Masks | None, dropout: nn.Dropout) -> Tensor:
    change = change.to(to.dtype)
    return change.add_(to) if masks is None else masks.add_dropped(change, to, dropout.p)


def _softmax(scores: Tensor) -> Tensor:
    """Over the last dimension; in place where rows are short, with which torch's own takes up to ten times as long."""
    if scores.shape[-1] >= _SHORT:
        return torch.softmax(scores, -1)
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))
