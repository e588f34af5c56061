"""A forward of the BERT family that learns, for a GPU: a step of few sentences takes as long as it has kernels; here are few.

A layer is 8 of them and its gradient some 20; transformers and autograd make 150 of it. States and products are in bf16, sums,
normalisation, softmax and the gradients of weights in fp32. The gradient of a layer is written by hand: it is tested against
autograd's. Other architectures, longer rows and other precisions go through transformers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.kernels import LONGEST, LearningKernels, Site
from sequst.tagger.kernels.finding import fused_kernels
from sequst.tagger.layers import Layer, Layers


class _Product(NamedTuple):
    """A linear layer in the precision of the products, or several whose outputs lie side by side."""

    weight: Tensor
    bias: Tensor

    def __call__(self, states: Tensor) -> Tensor:
        return F.linear(states, self.weight, self.bias)

    def back(self, out: Tensor, beside: Tensor | None = None) -> Tensor:
        """The gradient of what went in, added to what flows back beside it."""
        return out @ self.weight if beside is None else beside.addmm_(out, self.weight)


class _Prepared(NamedTuple):
    """What a layer computes with: its modules, its products and its dropouts."""

    known: Layer
    qkv: _Product
    output: _Product
    up: _Product
    down: _Product
    attention_site: Site
    first_site: Site
    second_site: Site


class _Common(NamedTuple):
    """What all layers of a forward share."""

    kernels: LearningKernels
    heads: int
    sizes: Tensor  # (B,)
    keys: Tensor  # (2,)
    ones: Tensor  # (1, N)


class Learning:
    """The forward of one model while it is trained, with copies of the weights, which are to be refreshed when these change."""

    def __init__(self, known: Layers, kernels: LearningKernels, dtype: torch.dtype) -> None:
        self._known, self._kernels, self._dtype = known, kernels, dtype
        self.copies: dict[Tensor, Tensor] = {}
        """In the precision of the products, of each weight that takes part in one."""
        self._layers = [self._prepared(layer, number) for number, layer in enumerate(known.layers)]

    @classmethod
    def of(cls, known: Layers | None) -> Learning | None:
        """Where its kernels run."""
        if known is None or known.base.device.type != "cuda" or not known.gelu or not hasattr(torch.ops.aten.mm, "dtype"):
            return None
        kernels = fused_kernels(known)
        return None if kernels is None else cls(known, kernels.learning, torch.bfloat16)

    def takes(self, batch: Batch) -> bool:
        """Whether it is this forward's to do: rows that are short enough, gradients that are asked for, autocast to bf16."""
        half = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == self._dtype
        return half and torch.is_grad_enabled() and batch.input_ids.shape[1] <= LONGEST

    @torch.no_grad()
    def refresh(self) -> None:
        """Make the copies equal to the weights."""
        torch._foreach_copy_(list(self.copies.values()), list(self.copies))

    def states(self, batch: Batch, words: Tensor | None = None) -> Tensor:
        """(B, L, H): of every sub-word, fp32; from these word embeddings where they are given. What is dropped, torch's
        generator decides."""
        device = batch.input_ids.device
        with torch.autocast(device.type, enabled=False):
            embedded = self._known.embeddings(batch.input_ids, words)
            bias = self._known.position_bias(embedded.shape[1], device)
            bias = None if bias is None else bias.contiguous()
            keys = torch.randint(2**31 - 1, (2,), device=device, dtype=torch.int32)
            states = embedded.flatten(0, 1).to(self._dtype)
            sizes = batch.attention_mask.sum(1, dtype=torch.int32)
            common = _Common(self._kernels, self._known.heads, sizes, keys, states.new_ones(1, len(states)))
            for layer in self._layers:
                dtype = torch.float32 if layer is self._layers[-1] else self._dtype
                states = _LayerStep.apply(states, bias, *_weights(layer.known), layer, common, dtype)  # type: ignore[no-untyped-call]
        return states.view(embedded.shape)

    def _prepared(self, layer: Layer, number: int) -> _Prepared:
        attention, first, second = (
            Site(dropout.p, 3 * number + i)
            for i, dropout in enumerate((layer.attention_dropout, layer.first_dropout, layer.second_dropout))
        )
        return _Prepared(
            layer, self._product(layer.query, layer.key, layer.value), self._product(layer.output), self._product(layer.up),
            self._product(layer.down), attention, first, second,
        )  # fmt: skip

    def _product(self, *parts: nn.Linear) -> _Product:
        """The weights of some layers side by side."""
        weight = torch.cat([part.weight.detach() for part in parts]).to(self._dtype)
        bias = torch.cat([part.bias.detach() for part in parts]).to(self._dtype)
        at = 0
        for part in parts:
            rows = slice(at, at + part.out_features)
            self.copies |= {part.weight: weight[rows], part.bias: bias[rows]}
            at += part.out_features
        return _Product(weight, bias)


def _weights(layer: Layer) -> list[Tensor]:
    """What a layer learns, in the order in which its gradients come."""
    parts = (layer.query, layer.key, layer.value, layer.output, layer.first_norm, layer.up, layer.down, layer.second_norm)
    return [weight for part in parts for weight in (part.weight, part.bias)]


class _LayerStep(torch.autograd.Function):
    """A layer: states (N, H) -> states (N, H)."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
        layer: _Prepared
        common: _Common
        *_, layer, common, dtype = rest
        kernels, known = common.kernels, layer.known
        qkv = layer.qkv(states)
        seen = kernels.attention(qkv, common.sizes, common.heads, bias, common.keys, layer.attention_site)
        first = kernels.add_norm(layer.output(seen), states, known.first_norm, common.keys, layer.first_site, states.dtype)
        inner = layer.up(first.out)
        active = F.gelu(inner)
        second = kernels.add_norm(layer.down(active), first.out, known.second_norm, common.keys, layer.second_site, dtype)
        ctx.layer, ctx.common, ctx.bias = layer, common, bias
        ctx.kept = states, qkv, seen, first, inner, active, second._replace(out=first.out)
        return second.out

    @staticmethod
    def backward(ctx: Any, out: Tensor) -> tuple[Tensor | None, ...]:
        layer: _Prepared = ctx.layer
        common: _Common = ctx.common
        states, qkv, seen, first, inner, active, second = ctx.kept
        ctx.kept = None
        kernels, known, keys = common.kernels, layer.known, common.keys

        after = kernels.add_norm_back(out.contiguous(), second, known.second_norm, keys, layer.second_site)
        of_inner = torch.ops.aten.gelu_backward(layer.down.back(after.change), inner)
        between = kernels.add_norm_back(layer.up.back(of_inner, after.to), first, known.first_norm, keys, layer.first_site)
        of_qkv, of_scores = kernels.attention_back(
            layer.output.back(between.change), qkv, common.sizes, common.heads, ctx.bias, keys, layer.attention_site
        )
        of_states = layer.qkv.back(of_qkv, between.to)
        of_bias = None if of_scores is None or not ctx.needs_input_grad[1] else of_scores.sum(0)
        if not any(ctx.needs_input_grad[2:]):
            return of_states, of_bias, *(None for _ in ctx.needs_input_grad[2:])
        of_down, of_up = _in_fp32(after.change.t(), active), _in_fp32(of_inner.t(), first.out)
        of_up_bias = _in_fp32(common.ones, of_inner)[0]
        of_output = _in_fp32(between.change.t(), seen)
        of_queries = _in_fp32(of_qkv.t(), states)
        of_query_bias = _in_fp32(common.ones, of_qkv)[0]
        three = zip(of_queries.chunk(3), of_query_bias.chunk(3), strict=True)
        weights = (
            *(each for pair in three for each in pair), of_output, between.sums[2], between.sums[0], between.sums[1],
            of_up, of_up_bias, of_down, after.sums[2], after.sums[0], after.sums[1],
        )  # fmt: skip
        return of_states, of_bias, *weights, None, None, None


def _in_fp32(one: Tensor, other: Tensor) -> Tensor:
    """A product for the gradient of a weight: what it sums in anyway is not rounded. With ones it sums over rows, in less
    time than a sum takes."""
    return one @ other if one.dtype == torch.float32 else torch.mm(one, other, out_dtype=torch.float32)
