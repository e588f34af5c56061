"""The steps of a packed forward, each one kernel: what lies between is never written to memory.

N sub-words of all passes together, H features.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from sequst.tagger.accel.kernels import Drop, Spans

_NO_DROP = Drop(0.0, (0, 0))
"""All stay. It is not a kernel of its own: to build one takes seconds, and to hash for nothing hardly any time."""
PRECISION = {torch.float32: "ieee", torch.bfloat16: "tf32", torch.float16: "tf32"}
"""Of matrix products: fp32 is to stay fp32; for the others it says nothing."""

ATTENTION_WARPS = {16: 1, 32: 4, 64: 4}
"""Warps for each size of block."""
NORM_WARPS = 2
_NORM_TILE = 1024
"""Elements of half a row, times the rows, that a program normalises at once."""


@triton.jit
def random_bits(places, first, second):
    """32 bits for every place: a hash of it and the keys, so that nothing is drawn and nothing stored."""
    bits = places.to(tl.uint32) + first.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15) ^ second.to(tl.uint32)) * 0x846CA68B
    bits = (bits ^ (bits >> 16)) * 0x31848BAB
    return bits ^ (bits >> 14)


@triton.jit(do_not_specialize=["rows", "tokens", "longest", "first", "second", "threshold"])
def _attention(
    qkv, out, starts, bias, rows, tokens, longest, first, second, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr,
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
            place = ((row * HEADS + head) * longest + here)[:, None] * longest + there[None, :]
            stays = (random_bits(place, first, second) >> 16).to(tl.int32) >= threshold
            weights = tl.where(stays, weights, 0.0)
            seen = seen * fade[:, None] + tl.dot(weights.to(value.dtype), value, input_precision=PRECISION)
            highest = higher
        seen = seen * (kept_scale / total)[:, None]
        tl.store(out + (begin + here)[:, None] * width + feature[None, :], seen.to(query.dtype), mask=inside)


@triton.jit
def halves(x, at, left, right, HALF: tl.constexpr):
    """Rows in two halves, in fp32: one hash decides over a feature of both."""
    one = tl.load(x + at, mask=left, other=0.0).to(tl.float32)
    return one, tl.load(x + at + HALF, mask=right, other=0.0).to(tl.float32)


@triton.jit
def store_halves(x, at, one, two, left, right, HALF: tl.constexpr):
    tl.store(x + at, one.to(x.dtype.element_ty), mask=left)
    tl.store(x + at + HALF, two.to(x.dtype.element_ty), mask=right)


@triton.jit
def dropped(one, two, bits, threshold, kept_scale):
    """What is left of two halves."""
    one = tl.where((bits & 0xFFFF).to(tl.int32) >= threshold, one * kept_scale, 0.0)
    return one, tl.where((bits >> 16).to(tl.int32) >= threshold, two * kept_scale, 0.0)


@triton.jit(do_not_specialize=["count", "first", "second", "threshold"])
def normalise(
    change, to, weight, bias, keys, out, normal, inverse, count, first, second, threshold, kept_scale, epsilon,
    WIDTH: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, LEARNS: tl.constexpr,
):  # fmt: skip
    """Some rows at a time. Where it `LEARNS`, the keys of a step are on the device, and what the gradient takes is kept."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    known = (row < count)[:, None]
    left, right = known & (column < HALF)[None, :], known & (column + HALF < WIDTH)[None, :]
    at = row[:, None] * WIDTH + column[None, :]
    if LEARNS:
        first, second = tl.load(keys) + first, tl.load(keys + 1)
    one, two = halves(change, at, left, right, HALF)
    bits = random_bits(row[:, None] * HALF + column[None, :], first, second)
    one, two = dropped(one, two, bits, threshold, kept_scale)
    to_one, to_two = halves(to, at, left, right, HALF)
    one, two = one + to_one, two + to_two
    mean = (tl.sum(one, 1) + tl.sum(two, 1))[:, None] / WIDTH
    one, two = tl.where(left, one - mean, 0.0), tl.where(right, two - mean, 0.0)
    scale = tl.rsqrt((tl.sum(one * one, 1) + tl.sum(two * two, 1)) / WIDTH + epsilon)
    one, two = one * scale[:, None], two * scale[:, None]
    if LEARNS:
        tl.store(inverse + row, scale, mask=row < count)
        store_halves(normal, at, one, two, left, right, HALF)
    inside, further = column < HALF, column + HALF < WIDTH
    by_one, by_two = halves(weight, column, inside, further, HALF)
    more_one, more_two = halves(bias, column, inside, further, HALF)
    store_halves(out, at, one * by_one + more_one, two * by_two + more_two, left, right, HALF)


def norm_tile(width: int) -> dict[str, int]:
    """Features of a row and of half of one, the block that holds these, and the rows of a program."""
    half = (width + 1) // 2
    block = triton.next_power_of_2(half)
    return {"WIDTH": width, "HALF": half, "BLOCK": block, "ROWS": max(1, _NORM_TILE // block)}


def attention(qkv: Tensor, spans: Spans, heads: int, bias: Tensor | None, drop: Drop | None) -> Tensor:
    """(N, H) from queries, keys and values side by side (N, 3H); every sub-word sees those of its own sentence and pass.

    `bias` (heads, 2 x longest - 1) is added to scores by how far a key lies from its query: [.., longest - 1] at 0.
    """
    size = qkv.shape[1] // 3 // heads
    out = qkv.new_empty(len(qkv), heads * size)
    block = min(64, max(16, triton.next_power_of_2(spans.longest)))
    kept = drop or _NO_DROP
    grid = (len(qkv) // spans.tokens * spans.rows, heads, triton.cdiv(spans.longest, block))
    _attention[grid](
        qkv, out, spans.starts, qkv if bias is None else bias, spans.rows, spans.tokens, spans.longest, *kept.keys,
        kept.threshold, kept.scale, size**-0.5, HEADS=heads, SIZE=size, BLOCK=block, BIASED=bias is not None,
        PRECISION=PRECISION[qkv.dtype], num_warps=ATTENTION_WARPS[block], num_stages=1,
    )  # fmt: skip
    return out


def up_gelu(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(N, I): the GELU of a linear layer in half precision, as part of the product. It is that by tanh, which differs from that
    by erf by less than is rounded."""
    return torch._addmm_activation(bias, states, weight.t(), use_gelu=True)


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, drop: Drop | None) -> Tensor:
    """The normalised sum (N, H) of what is left of `change` and `to`."""
    count, width = to.shape
    out, kept, tile = torch.empty_like(to), drop or _NO_DROP, norm_tile(width)
    normalise[(triton.cdiv(count, tile["ROWS"]),)](
        change, to, norm.weight, norm.bias, out, out, out, out, count, *kept.keys, kept.threshold, kept.scale, norm.eps,
        **tile, LEARNS=False, num_warps=NORM_WARPS,
    )  # fmt: skip
    return out


def try_out(device: torch.device, size: int, dtype: torch.dtype) -> None:
    """Fails where kernels do not run."""
    states = torch.zeros(1, size, device=device, dtype=dtype)
    add_norm(states, states, nn.LayerNorm(size, device=device), None)
