"""A forward of the BERT family that learns, for a GPU: a step of few sentences takes as long as it has kernels; here are few.

A layer is 8 of them and its gradient some 14; transformers and autograd make 150 of it. States and products are in bf16 where
training is, and sums, normalisation, softmax and the gradients of weights in fp32. The gradient of a layer is written by hand:
it is tested against autograd's. Other architectures and longer rows go through transformers.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sequst.tagger.accel.available import encoder_kernels
from sequst.tagger.accel.kernels import LONGEST, Drop, Normed
from sequst.tagger.accel.layers import Layer, Layers, joined
from sequst.tagger.batches import Batch
from sequst.tagger.encoders.base import Encoder


class _Product(NamedTuple):
    """A linear layer in the precision of the products, or several whose outputs lie side by side."""

    weight: Tensor
    bias: Tensor

    def __call__(self, states: Tensor, into: Tensor | None = None) -> Tensor:
        return torch.addmm(self.bias, states, self.weight.t(), out=into)

    def back(self, out: Tensor, beside: Tensor | None = None) -> Tensor:
        """The gradient of what went in, added to what flows back beside it."""
        return out @ self.weight if beside is None else beside.addmm_(out, self.weight)

    def along(self, states: Tensor, change: Tensor, by: _Product) -> Tensor:
        """How what comes out changes, where what goes in changes so, and the layer by another."""
        return by(states).addmm_(change, self.weight.t())


class _Prepared(NamedTuple):
    """What a layer computes with: its modules, its products and its dropouts."""

    known: Layer
    qkv: _Product
    output: _Product
    up: _Product
    down: _Product
    attention_drop: Drop
    first_drop: Drop
    second_drop: Drop


class FusedEncoder:
    """The forward of one encoder while it is trained, used within this context. It computes with copies of the weights, which
    must be refreshed after an update; tensors that stand in the place of the weights are noticed by themselves."""

    def __init__(self, encoder: Encoder, known: Layers, kernels: ModuleType, dtype: torch.dtype) -> None:
        self._encoder, self._known, self._dtype = encoder, known, dtype
        self.kernels, self.heads = kernels, known.heads
        self.copies: dict[Tensor, Tensor] = {}
        """In the precision of the products, of each weight that takes part in one."""
        self._copied: list[nn.Linear] = []
        self.layers = [self._prepared(layer, number) for number, layer in enumerate(known.layers)]
        self._copied_from = self._addresses()

    def __enter__(self) -> None:
        self._encoder.fused = self

    def __exit__(self, *raised: object) -> None:
        self._encoder.fused = None

    @classmethod
    def of(cls, encoder: Encoder, dtype: torch.dtype = torch.bfloat16) -> FusedEncoder | None:
        """Where its kernels run; in bf16 or fp32."""
        known = Layers.of(encoder)
        if known is None or known.base.device.type != "cuda" or not known.gelu or not hasattr(torch.ops.aten.bmm, "dtype"):
            return None
        kernels = encoder_kernels("training", known, dtype)
        return None if kernels is None else cls(encoder, known, kernels, dtype)

    def takes(self, batch: Batch) -> bool:
        """Whether it is this forward's to do: rows that are short enough, gradients that are asked for, in this precision."""
        asked = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else torch.float32
        return asked == self._dtype and torch.is_grad_enabled() and batch.input_ids.shape[1] <= LONGEST

    @torch.no_grad()
    def refresh(self) -> None:
        """Make the copies equal to the weights, or to what stands in their place."""
        torch._foreach_copy_(list(self.copies.values()), [each.detach() for part in self._copied for each in _both(part)])
        self._copied_from = self._addresses()

    def follow(self) -> None:
        """Refresh the copies where other tensors stand in the place of the weights than when they were last refreshed."""
        if self._addresses() != self._copied_from:
            self.refresh()

    def _addresses(self) -> list[int]:
        """Where the weights lie, or what stands in their place."""
        return [each.data_ptr() for part in self._copied for each in _both(part)]

    def states(self, batch: Batch, words: Tensor | None = None) -> Tensor:
        """(B, L, H): of every sub-word, fp32; from these word embeddings where they are given. What is dropped, torch's
        generator decides."""
        device = batch.input_ids.device
        self.follow()
        with torch.autocast(device.type, enabled=False):
            embedded = self._known.embeddings(batch.input_ids, words)
            bias = self._known.position_bias(embedded.shape[1], device)
            bias = None if bias is None else bias.contiguous()
            keys = torch.randint(2**31 - 1, (2,), device=device, dtype=torch.int32)
            states = embedded.flatten(0, 1).to(self._dtype)
            sizes = batch.attention_mask.sum(1, dtype=torch.int32)
            weights = [weight for layer in self.layers for weight in _weights(layer.known)]
            states = _Stack.apply(states, bias, self, sizes, keys, *weights)  # type: ignore[no-untyped-call]
        return states.view(embedded.shape)  # type: ignore[no-any-return]

    def _prepared(self, layer: Layer, number: int) -> _Prepared:
        dropouts = layer.attention_dropout, layer.first_dropout, layer.second_dropout
        attention, first, second = (Drop.of_training(dropout.p, 3 * number + i) for i, dropout in enumerate(dropouts))
        qkv, output, up, down = map(self._product, layer.products)
        return _Prepared(layer, qkv, output, up, down, attention, first, second)

    def _product(self, parts: list[nn.Linear]) -> _Product:
        """The weights of some layers side by side."""
        product = _Product(*joined(parts, self._dtype))
        for part, weight, bias in zip(parts, product.weight.chunk(len(parts)), product.bias.chunk(len(parts)), strict=True):
            self.copies |= {part.weight: weight, part.bias: bias}
        self._copied += parts
        return product


def _both(part: nn.Linear | nn.LayerNorm) -> tuple[Tensor, Tensor]:
    return part.weight, part.bias


def _weights(layer: Layer) -> list[Tensor]:
    """What a layer learns, in the order in which its gradients come."""
    parts = (layer.query, layer.key, layer.value, layer.output, layer.first_norm, layer.up, layer.down, layer.second_norm)
    return [weight for part in parts for weight in _both(part)]


class _Kept(NamedTuple):
    """What a layer's gradient takes of its forward; that of some of it comes in its place."""

    states: Tensor
    qkv: Tensor
    seen: Tensor
    first: Normed
    inner: Tensor
    active: Tensor
    second: Normed


class _Stack(torch.autograd.Function):
    """All layers: states (N, H) -> states (N, H). `sizes` (B,) are the sub-words of each row, `keys` (2,) decide the masks.
    What the layers sum over rows they sum together, when all of them are through."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, bias: Tensor | None, fused: FusedEncoder, sizes: Tensor, keys: Tensor, *_: Tensor
    ) -> Tensor:
        kernels, layers, dtype = fused.kernels, fused.layers, states.dtype
        qkvs, inners = (
            states.new_empty(len(layers), len(states), product.weight.shape[0]) for product in (layers[0].qkv, layers[0].up)
        )
        kept = []
        for layer, qkv, inner in zip(layers, qkvs, inners, strict=True):
            layer.qkv(states, qkv)
            seen = kernels.attention(qkv, sizes, fused.heads, bias, keys, layer.attention_drop)
            first = kernels.add_norm(layer.output(seen), states, layer.known.first_norm, keys, layer.first_drop, dtype)
            active = F.gelu(layer.up(first.out, inner))
            last = torch.float32 if layer is layers[-1] else dtype
            second = kernels.add_norm(layer.down(active), first.out, layer.known.second_norm, keys, layer.second_drop, last)
            kept.append(_Kept(states, qkv, seen, first, inner, active, second._replace(out=first.out)))
            states = second.out
        ctx.fused, ctx.sizes, ctx.keys, ctx.bias, ctx.kept, ctx.qkvs, ctx.inners = fused, sizes, keys, bias, kept, qkvs, inners
        return states

    @staticmethod
    def backward(ctx: Any, out: Tensor) -> tuple[Any, ...]:
        fused: FusedEncoder = ctx.fused
        fused.follow()
        kernels, layers, sizes, keys = fused.kernels, fused.layers, ctx.sizes, ctx.keys
        learns = any(ctx.needs_input_grad[5:])
        of_scores = None
        if ctx.bias is not None and ctx.needs_input_grad[1]:
            of_scores = ctx.bias.new_empty(len(layers), len(sizes), *ctx.bias.shape)
        matrices: list[list[Tensor]] = []
        sums: list[Tensor] = []
        for number in reversed(range(len(layers))):
            layer, kept = layers[number], ctx.kept.pop()
            after = kernels.add_norm_back(out.contiguous(), kept.second, layer.known.second_norm, keys, layer.second_drop)
            of_inner = torch.ops.aten.gelu_backward(layer.down.back(after.change), kept.inner, grad_input=kept.inner)
            to_first = layer.up.back(of_inner, after.to)
            between = kernels.add_norm_back(to_first, kept.first, layer.known.first_norm, keys, layer.first_drop)
            of_qkv = kernels.attention_back(
                layer.output.back(between.change), kept.qkv, sizes, fused.heads, ctx.bias, keys, layer.attention_drop,
                None if of_scores is None else of_scores[number],
            )  # fmt: skip
            out = layer.qkv.back(of_qkv, between.to)
            if learns:
                slopes = of_qkv, between.change, of_inner, after.change
                inputs = kept.states, kept.seen, kept.first.out, kept.active
                matrices.append([_in_fp32(slope.t(), given) for slope, given in zip(slopes, inputs, strict=True)])
                sums += [after.sums, between.sums]
        of_bias = None if of_scores is None else of_scores.sum((0, 1))
        if not learns:
            return out, of_bias, *(None for _ in ctx.needs_input_grad[2:])
        norms = torch.stack(sums).sum(1).view(len(layers), 2, 3, -1).unbind()
        ones = ctx.qkvs.new_ones(len(layers), 1, ctx.qkvs.shape[1])
        qkv_biases, up_biases = (_in_fp32(ones, each).flatten(1).unbind() for each in (ctx.qkvs, ctx.inners))
        found: list[Tensor] = []
        for number in range(len(layers)):
            of_qkv, of_output, of_up, of_down = matrices[-1 - number]
            second, first = (each.unbind() for each in norms[-1 - number])
            three = zip(of_qkv.chunk(3), qkv_biases[number].chunk(3), strict=True)
            found += [each for pair in three for each in pair]
            found += [of_output, first[2], first[0], first[1], of_up, up_biases[number]]
            found += [of_down, second[2], second[0], second[1]]
        return out, of_bias, None, None, None, *found

    @staticmethod
    def jvp(ctx: Any, along: Tensor, of_bias: Tensor | None, *rest: Any) -> Tensor:
        """How states change, where those that go in change `along` this, and the weights so."""
        fused: FusedEncoder = ctx.fused
        kernels, layers, keys, dtype = fused.kernels, fused.layers, ctx.keys, along.dtype
        changes = _changes(layers, rest[3:])
        for layer, kept, change in zip(layers, ctx.kept, changes, strict=True):
            of_qkv = layer.qkv.along(kept.states, along, change.qkv)
            of_seen = kernels.attention_along(
                of_qkv, kept.qkv, ctx.sizes, fused.heads, ctx.bias, of_bias, keys, layer.attention_drop
            )
            of_output = layer.output.along(kept.seen, of_seen, change.output)
            first = kernels.add_norm_along(
                of_output, along, kept.first, layer.known.first_norm, change.first, keys, layer.first_drop, dtype
            )
            of_inner = layer.up.along(kept.first.out, first, change.up)
            of_active = torch.ops.aten.gelu_backward(of_inner, kept.inner)
            of_down = layer.down.along(kept.active, of_active, change.down)
            last = torch.float32 if layer is layers[-1] else dtype
            along = kernels.add_norm_along(
                of_down, first, kept.second, layer.known.second_norm, change.second, keys, layer.second_drop, last
            )
        return along


class _Change(NamedTuple):
    """How the weights of a layer change: those of its products in their precision."""

    qkv: _Product
    output: _Product
    up: _Product
    down: _Product
    first: tuple[Tensor, Tensor]
    second: tuple[Tensor, Tensor]


def _changes(layers: list[_Prepared], of_weights: tuple[Tensor, ...]) -> list[_Change]:
    """From those of all weights, which are copied side by side at once."""
    found = []
    copies: list[Tensor] = []
    given: list[Tensor] = []
    for number, layer in enumerate(layers):
        own = of_weights[16 * number : 16 * (number + 1)]  # two of each part, in the order of `_weights`
        qkv, output, up, down = (
            _Product(torch.empty_like(each.weight), torch.empty_like(each.bias))
            for each in (layer.qkv, layer.output, layer.up, layer.down)
        )
        copies += [*qkv.weight.chunk(3), *qkv.bias.chunk(3), *output, *up, *down]
        given += [*own[0:6:2], *own[1:6:2], *own[6:8], *own[10:14]]
        found.append(_Change(qkv, output, up, down, (own[8], own[9]), (own[14], own[15])))
    torch._foreach_copy_(copies, given)
    return found


def _in_fp32(one: Tensor, other: Tensor) -> Tensor:
    """A product for the gradient of a weight, or several: what it sums in anyway is not rounded. With ones it sums over rows,
    in less time than a sum takes."""
    if one.dtype == torch.float32:
        return one @ other
    return (torch.mm if one.ndim == 2 else torch.bmm)(one, other, out_dtype=torch.float32)
