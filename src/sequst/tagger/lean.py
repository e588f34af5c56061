"""A lean forward of the BERT family: what transformers computes, in fewer steps and with cheap dropout; without gradients.

It is made from the weights as they are, for as long as they stay so, and every other architecture goes through transformers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.masks import Masks

_ALIKE = ("BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel")
_MPNET = "MPNetModel"
_SHORT = 16
"""Rows of fewer numbers fill no vector register."""
_TOKENS, _NUMBERS = 384, 1 << 16
"""A batch has so many sub-words, or, where they are narrow, states of so many numbers: products and whatever is done besides
take a while each, and all of it stays in the cache of a core."""


class Product:
    """A linear layer, perhaps with GELU behind it."""

    def __init__(self, weight: Tensor, bias: Tensor, gelu: bool = False) -> None:
        self._weight, self._bias, self._gelu = weight.detach().t(), bias.detach(), gelu

    @classmethod
    def of(cls, layer: nn.Linear, gelu: bool = False) -> Product:
        return cls(layer.weight, layer.bias, gelu)

    def lay_out(self) -> None:
        self._weight = self._weight.contiguous()

    def __call__(self, states: Tensor) -> Tensor:
        """(N, in) -> (N, out)."""
        found = torch.mm(states, self._weight).add_(self._bias)
        return torch.ops.aten.gelu_(found) if self._gelu else found


class Begun(NamedTuple):
    """What all passes over a batch have in common: it comes before the first dropout."""

    states: Tensor  # (B, L, H)
    bias: Tensor | None  # what is added to the attention scores, (B or 1, heads or 1, L or 1, L)
    speakers: Tensor | None  # which of the B x L sub-words speak for a word; none where all do


class _Layer(NamedTuple):
    query_key_value: Product  # the query is scaled already
    attention_dropout: nn.Dropout
    output: Product
    first_dropout: nn.Dropout
    first_norm: nn.LayerNorm
    up: Product
    activation: Any  # none where the product has it
    down: Product
    second_dropout: nn.Dropout
    second_norm: nn.LayerNorm


class Lean:
    """The forward of one model."""

    def __init__(self, base: Any, layers: list[_Layer]) -> None:
        self._base = base
        self._layers = layers
        self._heads: int = base.config.num_attention_heads

    @property
    def token_budget(self) -> int:
        """Sub-words in a batch, for one core."""
        return max(_TOKENS, _NUMBERS // int(self._base.config.hidden_size))

    def lay_out(self) -> None:
        """Copy the weights as products read them fastest, which pays from a few batches on."""
        for layer in self._layers:
            for product in (layer.query_key_value, layer.output, layer.up, layer.down):
                product.lay_out()

    @classmethod
    def of(cls, model: nn.Module) -> Lean | None:
        """Of a `*ForTokenClassification`; none where its architecture is not known to be one that this computes."""
        base = getattr(model, getattr(model, "base_model_prefix", ""), None)
        kind = type(base).__name__
        if base is None or kind not in (*_ALIKE, _MPNET) or base.training:
            return None
        config: Any = base.config
        plain = getattr(config, "position_embedding_type", None) in (None, "absolute") and not config.chunk_size_feed_forward
        if not plain or getattr(config, "is_decoder", False) or getattr(config, "add_cross_attention", False):
            return None
        return cls(base, [(_mpnet_layer if kind == _MPNET else _bert_layer)(layer, config) for layer in base.encoder.layer])

    def begin(self, batch: Batch) -> Begun:
        states = self._base.embeddings(input_ids=batch.input_ids)
        mask = batch.attention_mask
        bias = None if bool(mask.all()) else torch.where(mask.bool(), 0.0, torch.finfo(states.dtype).min)[:, None, None, :]
        if hasattr(self._base.encoder, "compute_position_bias"):
            places = self._base.encoder.compute_position_bias(states[:1])  # (1, heads, L, L)
            bias = places if bias is None else places + bias
        speakers = (batch.heads + torch.arange(len(mask), device=mask.device).unsqueeze(1) * mask.shape[1])[batch.word_mask]
        return Begun(states, bias, speakers if len(speakers) < mask.numel() else None)

    def finish(self, begun: Begun, masks: Masks | None = None) -> Tensor:
        """(B, L, H): the states of the last layer, of sub-words that speak for a word; with masks, one pass of MC dropout.

        Others are 0: what they become in the last layer, once attention has seen them, nobody looks at.
        """
        rows, length, width = begun.states.shape
        states = begun.states
        if masks is not None:
            states = masks.drop(states.clone(), self._base.embeddings.dropout.p)
        states = states.reshape(rows * length, width)
        for layer in self._layers:
            parts = layer.query_key_value(states).view(rows, length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
            query, key, value = parts.reshape(3, rows * self._heads, length, -1)  # (B x heads, L, size)
            weights = torch.bmm(query, key.transpose(1, 2))
            if begun.bias is not None:
                weights.view(rows, self._heads, length, length).add_(begun.bias)
            weights = _softmax(weights)
            if masks is not None:
                weights = masks.drop(weights, layer.attention_dropout.p)
            seen = torch.bmm(weights, value).view(rows, self._heads, length, -1).transpose(1, 2).reshape(rows * length, width)
            if begun.speakers is not None and layer is self._layers[-1]:
                seen, states = seen[begun.speakers], states[begun.speakers]
            states = layer.first_norm(_added(layer.output(seen), states, masks, layer.first_dropout))
            inner = layer.up(states)
            inner = inner if layer.activation is None else layer.activation(inner)
            states = layer.second_norm(_added(layer.down(inner), states, masks, layer.second_dropout))
        if begun.speakers is not None:
            states = states.new_zeros(rows * length, width).index_copy_(0, begun.speakers, states)
        return states.view(rows, length, width)


def _added(change: Tensor, to: Tensor, masks: Masks | None, dropout: nn.Dropout) -> Tensor:
    return change.add_(to) if masks is None else masks.add_dropped(change, to, dropout.p)


def _softmax(scores: Tensor) -> Tensor:
    """Over the last dimension; in place where rows are short, with which torch's own takes up to ten times as long."""
    if scores.shape[-1] >= _SHORT:
        return torch.softmax(scores, -1)
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))


def _bert_layer(layer: Any, config: Any) -> _Layer:
    inner, outer = layer.attention.self, layer.attention.output
    return _layer(layer, config, (inner.query, inner.key, inner.value), inner.dropout, outer.dense, outer)


def _mpnet_layer(layer: Any, config: Any) -> _Layer:
    inner, outer = layer.attention.attn, layer.attention
    return _layer(layer, config, (inner.q, inner.k, inner.v), inner.dropout, inner.o, outer)


def _layer(layer: Any, config: Any, parts: tuple[nn.Linear, ...], dropout: nn.Dropout, output: nn.Linear, outer: Any) -> _Layer:
    """`outer` has the dropout and the norm behind attention."""
    scales = ((config.hidden_size // config.num_attention_heads) ** -0.5, 1.0, 1.0)
    weight = torch.cat([part.weight.detach() * scale for part, scale in zip(parts, scales, strict=True)])
    bias = torch.cat([part.bias.detach() * scale for part, scale in zip(parts, scales, strict=True)])
    up, down = layer.intermediate, layer.output
    gelu = config.hidden_act == "gelu"
    return _Layer(
        Product(weight, bias), dropout, Product.of(output), outer.dropout, outer.LayerNorm, Product.of(up.dense, gelu),
        None if gelu else up.intermediate_act_fn, Product.of(down.dense), down.dropout, down.LayerNorm,
    )  # fmt: skip
