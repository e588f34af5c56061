"""The steps of a packed forward, each one kernel of Triton: what lies between is never written to memory.

Importing this needs Triton, which torch brings where it knows a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from sequst.tagger.kernels import Drop, Spans

_NO_DROP = Drop(0.0, (0, 0))
_PRECISION = {torch.float32: "ieee", torch.bfloat16: "tf32", torch.float16: "tf32"}
"""Of matrix products: fp32 is to stay fp32; for the others it says nothing."""


@triton.jit
def _kept(places, first, second, threshold):
    """As `plain.kept`."""
    bits = places.to(tl.uint32) + first.to(tl.uint32)
    bits = (bits ^ (bits >> 17)) * 0xED5AD4BB
    bits = (bits ^ (bits >> 11)) * 0xAC4C1B51
    bits = (bits ^ (bits >> 15)) * 0x31848BAB
    bits = (bits ^ (bits >> 14) ^ second.to(tl.uint32)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return ((bits ^ (bits >> 16)) >> 8).to(tl.int32) >= threshold


@triton.jit(do_not_specialize=["rows", "tokens", "longest", "first", "second", "threshold"])
def _attention(
    qkv, out, starts, bias, rows, tokens, longest, first, second, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, DROPPED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    row, head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + row % rows)
    length = tl.load(starts + row % rows + 1) - begin
    if block * BLOCK < length:
        begin += row // rows * tokens
        width: tl.constexpr = HEADS * SIZE
        feature = head * SIZE + tl.arange(0, SIZE)
        here = block * BLOCK + tl.arange(0, BLOCK)
        inside = (here < length)[:, None]
        query = tl.load(qkv + (begin + here)[:, None] * (3 * width) + feature[None, :], mask=inside, other=0.0)
        highest = tl.full((BLOCK,), -1e30, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        seen = tl.zeros((BLOCK, SIZE), tl.float32)
        for start in range(0, length, BLOCK):
            there = start + tl.arange(0, BLOCK)
            at = qkv + (begin + there)[:, None] * (3 * width) + feature[None, :]
            known = (there < length)[:, None]
            key = tl.load(at + width, mask=known, other=0.0)
            value = tl.load(at + 2 * width, mask=known, other=0.0)
            scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
            if BIASED:
                apart = there[None, :] - here[:, None] + longest - 1
                both = inside & (there < length)[None, :]
                scores += tl.load(bias + head * (2 * longest - 1) + apart, mask=both, other=0.0)
            scores = tl.where((there < length)[None, :], scores, -1e30)
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp(scores - higher[:, None])
            fade = tl.exp(highest - higher)
            total = total * fade + tl.sum(weights, 1)
            if DROPPED:
                place = ((row * HEADS + head) * longest + here)[:, None] * longest + there[None, :]
                weights = tl.where(_kept(place, first, second, threshold), weights, 0.0)
            seen = seen * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision=PRECISION)
            highest = higher
        seen = seen * (kept_scale / total)[:, None]
        tl.store(out + (begin + here)[:, None] * width + feature[None, :], seen.to(query.dtype), mask=inside)


@triton.jit(do_not_specialize=["first", "second", "threshold"])
def _add_norm(
    change, to, weight, bias, out, first, second, threshold, kept_scale, epsilon,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, DROPPED: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < WIDTH
    at = tl.program_id(0) * WIDTH + column
    residual = tl.load(to + at, mask=inside, other=0.0)
    added = tl.load(change + at, mask=inside, other=0.0).to(tl.float32)
    if DROPPED:
        added = tl.where(_kept(at, first, second, threshold), added * kept_scale, 0.0)
    summed = added + residual.to(tl.float32)
    apart = tl.where(inside, summed - tl.sum(summed, 0) / WIDTH, 0.0)
    apart = apart / tl.sqrt(tl.sum(apart * apart, 0) / WIDTH + epsilon)
    normed = apart * tl.load(weight + column, mask=inside, other=0.0) + tl.load(bias + column, mask=inside, other=0.0)
    tl.store(out + at, normed.to(residual.dtype), mask=inside)


def attention(qkv: Tensor, spans: Spans, heads: int, bias: Tensor | None, drop: Drop | None) -> Tensor:
    size = qkv.shape[1] // 3 // heads
    out = qkv.new_empty(len(qkv), heads * size)
    block = min(128, max(16, triton.next_power_of_2(spans.longest)))
    kept = drop or _NO_DROP
    grid = (len(qkv) // spans.tokens * spans.rows, heads, triton.cdiv(spans.longest, block))
    _attention[grid](
        qkv, out, spans.starts, qkv if bias is None else bias, spans.rows, spans.tokens, spans.longest, *kept.keys,
        kept.threshold, kept.scale, size**-0.5, HEADS=heads, SIZE=size, BLOCK=block, BIASED=bias is not None,
        DROPPED=drop is not None, PRECISION=_PRECISION[qkv.dtype], num_warps=max(1, min(4, block // 32)),
    )  # fmt: skip
    return out


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, drop: Drop | None) -> Tensor:
    count, width = to.shape
    out = torch.empty_like(to)
    kept = drop or _NO_DROP
    block = triton.next_power_of_2(width)
    _add_norm[(count,)](
        change, to, norm.weight, norm.bias, out, *kept.keys, kept.threshold, kept.scale, norm.eps,
        WIDTH=width, BLOCK=block, DROPPED=drop is not None, num_warps=max(1, min(8, block // 256)),
    )  # fmt: skip
    return out
