"""A lean forward of the BERT family: what transformers computes, in fewer steps and with cheap dropout; without gradients.

It reads the weights where they are, so it is never out of date, and every other architecture goes through transformers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.masks import Masks

_ALIKE = ("BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel")
_MPNET = "MPNetModel"


class Begun(NamedTuple):
    """What all passes over a batch have in common: it comes before the first dropout."""

    states: Tensor  # (B, L, H)
    bias: Tensor | None  # what is added to the attention scores, (B or 1, heads or 1, L or 1, L)


class Layer(NamedTuple):
    """The parts of a layer, whatever its architecture calls them."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    attention_dropout: nn.Dropout
    output: nn.Linear
    first_dropout: nn.Dropout
    first_norm: nn.LayerNorm
    up: nn.Linear
    activation: Any
    down: nn.Linear
    second_dropout: nn.Dropout
    second_norm: nn.LayerNorm


class Lean:
    """The forward of one model."""

    def __init__(self, base: Any, layers: list[Layer]) -> None:
        self.base = base
        self.layers = layers
        self.heads: int = base.config.num_attention_heads

    @classmethod
    def of(cls, model: nn.Module) -> Lean | None:
        """Of a `*ForTokenClassification`; none where its architecture is not known to be one that this computes."""
        base = getattr(model, getattr(model, "base_model_prefix", ""), None)
        kind = type(base).__name__
        if base is None or kind not in (*_ALIKE, _MPNET):
            return None
        config: Any = base.config
        plain = getattr(config, "position_embedding_type", None) in (None, "absolute") and not config.chunk_size_feed_forward
        if not plain or getattr(config, "is_decoder", False) or getattr(config, "add_cross_attention", False):
            return None
        return cls(base, [_mpnet_layer(layer) if kind == _MPNET else _bert_layer(layer) for layer in base.encoder.layer])

    def begin(self, batch: Batch) -> Begun:
        states = self.base.embeddings(input_ids=batch.input_ids)
        mask = batch.attention_mask
        bias = None if bool(mask.all()) else torch.where(mask.bool(), 0.0, torch.finfo(states.dtype).min)[:, None, None, :]
        if hasattr(self.base.encoder, "compute_position_bias"):
            places = self.base.encoder.compute_position_bias(states[:1])  # (1, heads, L, L)
            bias = places if bias is None else places + bias
        return Begun(states, bias)

    def finish(self, begun: Begun, masks: Masks | None = None) -> Tensor:
        """(B, L, H): the states of the last layer; with masks, one pass of MC dropout."""
        rows, length, width = begun.states.shape
        size = width // self.heads
        states = begun.states
        if masks is not None:
            states = masks.drop(states.clone(), self.base.embeddings.dropout.p)
        states = states.reshape(rows * length, width)
        for layer in self.layers:
            query, key, value = (
                part(states).view(rows, length, self.heads, size).transpose(1, 2).reshape(-1, length, size)
                for part in (layer.query, layer.key, layer.value)
            )  # (B x heads, L, size)
            weights = torch.bmm(query, key.transpose(1, 2)).mul_(size**-0.5).view(rows, self.heads, length, length)
            if begun.bias is not None:
                weights += begun.bias
            weights = torch.softmax(weights, -1)
            if masks is not None:
                weights = masks.drop(weights, layer.attention_dropout.p)
            seen = torch.bmm(weights.view(-1, length, length), value)
            seen = seen.view(rows, self.heads, length, size).transpose(1, 2).reshape(rows * length, width)
            states = layer.first_norm(_added(layer.output(seen), states, masks, layer.first_dropout))
            inner = layer.activation(layer.up(states))
            states = layer.second_norm(_added(layer.down(inner), states, masks, layer.second_dropout))
        return states.view(rows, length, width)


def _added(change: Tensor, to: Tensor, masks: Masks | None, dropout: nn.Dropout) -> Tensor:
    return change.add_(to) if masks is None else masks.add_dropped(change, to, dropout.p)


def _bert_layer(layer: Any) -> Layer:
    inner, outer = layer.attention.self, layer.attention.output
    attention = (inner.query, inner.key, inner.value, inner.dropout, outer.dense, outer.dropout, outer.LayerNorm)
    return Layer(*attention, *_feed_forward(layer))


def _mpnet_layer(layer: Any) -> Layer:
    inner, outer = layer.attention.attn, layer.attention
    return Layer(inner.q, inner.k, inner.v, inner.dropout, inner.o, outer.dropout, outer.LayerNorm, *_feed_forward(layer))


def _feed_forward(layer: Any) -> tuple[nn.Linear, Any, nn.Linear, nn.Dropout, nn.LayerNorm]:
    up, down = layer.intermediate, layer.output
    return up.dense, up.intermediate_act_fn, down.dense, down.dropout, down.LayerNorm
