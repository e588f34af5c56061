"""The layers of the BERT family, whatever an architecture calls their parts: what faster ways through it are made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

_KNOWN = ("BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel", "MPNetModel")


class Layer(NamedTuple):
    """The modules of a layer, in the order in which they act."""

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

    @property
    def products(self) -> list[list[nn.Linear]]:
        """The linear layers; side by side those that read the same."""
        return [[self.query, self.key, self.value], [self.output], [self.up], [self.down]]


class Layers(NamedTuple):
    """Those of a model, with what is below them."""

    base: Any
    layers: list[Layer]

    @classmethod
    def of(cls, encoder: nn.Module) -> Layers | None:
        """Of a pretrained encoder, or of its model; None where its architecture is not one of those that are known here."""
        model = getattr(encoder, "model", encoder)
        base: Any = getattr(model, getattr(model, "base_model_prefix", ""), None)
        if type(base).__name__ not in _KNOWN:
            return None
        config: Any = base.config
        plain = getattr(config, "position_embedding_type", None) in (None, "absolute") and not config.chunk_size_feed_forward
        if not plain or getattr(config, "is_decoder", False) or getattr(config, "add_cross_attention", False):
            return None
        return cls(base, [_layer(layer) for layer in base.encoder.layer])

    def last(self, count: int) -> list[nn.Module]:
        """The modules of the last layers."""
        return list(self.base.encoder.layer[len(self.layers) - count :])

    @property
    def heads(self) -> int:
        return int(self.base.config.num_attention_heads)

    @property
    def width(self) -> int:
        return int(self.base.config.hidden_size)

    @property
    def gelu(self) -> bool:
        """Whether its activation is GELU, by erf."""
        return bool(self.base.config.hidden_act == "gelu")

    def embeddings(self, input_ids: Tensor, words: Tensor | None = None) -> Tensor:
        """(B, L, H): the states below the first layer; with dropout where the model is being trained. From these word
        embeddings where they are given."""
        inputs = {"input_ids": input_ids} if words is None else {"inputs_embeds": words}
        return self.base.embeddings(**inputs)  # type: ignore[no-any-return]

    @property
    def embeddings_dropout(self) -> float:
        return float(self.base.embeddings.dropout.p)

    def position_bias(self, length: int, device: torch.device) -> Tensor | None:
        """(heads, L, L): what is added to the scores of attention, where an architecture has such a thing."""
        if not hasattr(self.base.encoder, "compute_position_bias"):
            return None
        return self.base.encoder.compute_position_bias(torch.empty(1, length, device=device))[0]  # type: ignore[no-any-return]


def _layer(layer: Any) -> Layer:
    outer = layer.attention
    if hasattr(outer, "attn"):  # MPNet
        inner = outer.attn
        attention = inner.q, inner.k, inner.v, inner.dropout, inner.o, outer.dropout, outer.LayerNorm
    else:
        inner, last = outer.self, outer.output
        attention = inner.query, inner.key, inner.value, inner.dropout, last.dense, last.dropout, last.LayerNorm
    up, down = layer.intermediate, layer.output
    return Layer(*attention, up.dense, up.intermediate_act_fn, down.dense, down.dropout, down.LayerNorm)


def joined(parts: Sequence[nn.Linear], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Copies of the weights and biases of linear layers, those of all side by side."""
    weight, bias = torch.cat([part.weight.detach() for part in parts]), torch.cat([part.bias.detach() for part in parts])
    return weight.to(dtype), bias.to(dtype)
