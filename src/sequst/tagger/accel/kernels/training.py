"""The steps of a forward that learns, and their gradients, each one kernel.

N = B x L sub-words with their padding, H features. `keys` are the two numbers on the device that decide the masks of a step.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from sequst.tagger.accel.kernels import LONGEST, Drop, Normed, NormedBack
from sequst.tagger.accel.kernels.varlen import (
    NORM_WARPS,
    PRECISION,
    dropped,
    halves,
    norm_tile,
    normalise,
    random_bits,
    store_halves,
)

_ATTENTION_WARPS = {16: 1, 32: 4, 64: 2}
"""Warps for each size of block. Four would multiply blocks of 64 by Hopper's asynchronous instructions, and several products in
a row, some of transposed results, are what Triton has been reported to get wrong with these."""
_PROGRAMS = 132
"""Among how many programs the rows of a normalisation are divided, at most, for what is summed over rows."""


@triton.jit
def _places(length, HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Where the features of a row and head lie (N, H), its queries (N, 3H) and its pairs of sub-words (heads, L, L); and which
    features and pairs there are."""
    row, head = tl.program_id(0), tl.program_id(1)
    width: tl.constexpr = HEADS * SIZE
    place = tl.arange(0, BLOCK)
    feature = (head * SIZE + tl.arange(0, SIZE))[None, :]
    start = (row * length + place)[:, None]
    pair = (head * length + place)[:, None] * length + place[None, :]
    inside = (place < length)[:, None]
    return start * width + feature, start * (3 * width) + feature, pair, inside, inside & (place < length)[None, :]


@triton.jit
def _weights(scores, sizes, BLOCK: tl.constexpr):
    """The weights of attention."""
    scores = tl.where((tl.arange(0, BLOCK) < tl.load(sizes + tl.program_id(0)))[None, :], scores, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@triton.jit
def _stays(pair, keys, site, threshold, length, HEADS: tl.constexpr):
    """Which weights of attention are not dropped."""
    bits = random_bits(tl.program_id(0) * HEADS * length * length + pair, tl.load(keys) + site, tl.load(keys + 1))
    return (bits >> 16).to(tl.int32) >= threshold


@triton.jit(do_not_specialize=["length", "site", "threshold"])
def _attention(
    out, qkv, sizes, bias, keys, length, site, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    width: tl.constexpr = HEADS * SIZE
    state, at, pair, inside, both = _places(length, HEADS, SIZE, BLOCK)
    query = tl.load(qkv + at, mask=inside, other=0.0)
    key = tl.load(qkv + at + width, mask=inside, other=0.0)
    value = tl.load(qkv + at + 2 * width, mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
    if BIASED:
        scores += tl.load(bias + pair, mask=both, other=0.0)
    weights = _weights(scores, sizes, BLOCK)
    weights = tl.where(_stays(pair, keys, site, threshold, length, HEADS), weights * kept_scale, 0.0)
    seen = tl.dot(weights.to(value.dtype), value, input_precision=PRECISION)
    tl.store(out + state, seen.to(value.dtype), mask=inside)


@triton.jit(do_not_specialize=["length", "site", "threshold"])
def _attention_back(
    out, of_bias, qkv, sizes, bias, keys, length, site, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, TOLD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """What a program reads, no other does, so that it can write its results there when it has read all."""
    width: tl.constexpr = HEADS * SIZE
    state, at, pair, inside, both = _places(length, HEADS, SIZE, BLOCK)
    query = tl.load(qkv + at, mask=inside, other=0.0)
    key = tl.load(qkv + at + width, mask=inside, other=0.0)
    value = tl.load(qkv + at + 2 * width, mask=inside, other=0.0)
    of_out = tl.load(out + state, mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
    if BIASED:
        scores += tl.load(bias + pair, mask=both, other=0.0)
    weights = _weights(scores, sizes, BLOCK)
    stays = _stays(pair, keys, site, threshold, length, HEADS)
    kept = tl.where(stays & inside, weights * kept_scale, 0.0).to(value.dtype)
    of_value = tl.dot(tl.trans(kept), of_out, input_precision=PRECISION)
    of_weights = tl.dot(of_out, tl.trans(value), input_precision=PRECISION)
    of_weights = tl.where(stays, of_weights * kept_scale, 0.0)
    of_scores = weights * (of_weights - tl.sum(weights * of_weights, 1)[:, None])
    of_scores = tl.where(inside, of_scores, 0.0)
    if TOLD:
        tl.store(of_bias + tl.program_id(0) * HEADS * length * length + pair, of_scores, mask=both)
    of_scores = (of_scores * score_scale).to(value.dtype)
    of_query = tl.dot(of_scores, key, input_precision=PRECISION)
    of_key = tl.dot(tl.trans(of_scores), query, input_precision=PRECISION)
    tl.debug_barrier()  # all threads have read
    tl.store(qkv + at, of_query.to(value.dtype), mask=inside)
    tl.store(qkv + at + width, of_key.to(value.dtype), mask=inside)
    tl.store(qkv + at + 2 * width, of_value.to(value.dtype), mask=inside)


@triton.jit(do_not_specialize=["length", "site", "threshold"])
def _attention_along(
    out, along, of_bias, qkv, sizes, bias, keys, length, site, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    width: tl.constexpr = HEADS * SIZE
    state, at, pair, inside, both = _places(length, HEADS, SIZE, BLOCK)
    query = tl.load(qkv + at, mask=inside, other=0.0)
    key = tl.load(qkv + at + width, mask=inside, other=0.0)
    of_query = tl.load(along + at, mask=inside, other=0.0)
    of_key = tl.load(along + at + width, mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
    of_scores = tl.dot(of_query, tl.trans(key), input_precision=PRECISION)
    of_scores += tl.dot(query, tl.trans(of_key), input_precision=PRECISION)
    of_scores *= score_scale
    if BIASED:
        scores += tl.load(bias + pair, mask=both, other=0.0)
        of_scores += tl.load(of_bias + pair, mask=both, other=0.0)
    weights = _weights(scores, sizes, BLOCK)
    of_weights = weights * (of_scores - tl.sum(weights * of_scores, 1)[:, None])
    stays = _stays(pair, keys, site, threshold, length, HEADS)
    weights = tl.where(stays, weights * kept_scale, 0.0)
    of_weights = tl.where(stays, of_weights * kept_scale, 0.0)
    value = tl.load(qkv + at + 2 * width, mask=inside, other=0.0)
    of_value = tl.load(along + at + 2 * width, mask=inside, other=0.0)
    seen = tl.dot(of_weights.to(value.dtype), value, input_precision=PRECISION)
    seen += tl.dot(weights.to(value.dtype), of_value, input_precision=PRECISION)
    tl.store(out + state, seen.to(value.dtype), mask=inside)


@triton.jit(do_not_specialize=["count", "site", "threshold", "turns"])
def _add_norm_back(
    out, normal, inverse, weight, keys, change, to, sums, count, site, threshold, kept_scale, turns,
    WIDTH: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A program takes several turns of some rows, and leaves its share of what is summed over all."""
    column = tl.arange(0, BLOCK)
    inside, further = column < HALF, column + HALF < WIDTH
    by_one, by_two = halves(weight, column[None, :], inside[None, :], further[None, :], HALF)
    first, second = tl.load(keys) + site, tl.load(keys + 1)
    weight_one, weight_two = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    bias_one, bias_two = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    change_one, change_two = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for turn in range(turns):
        row = (tl.program_id(0) * turns + turn) * ROWS + tl.arange(0, ROWS)
        known = (row < count)[:, None]
        left, right = known & inside[None, :], known & further[None, :]
        at = row[:, None] * WIDTH + column[None, :]
        one, two = halves(out, at, left, right, HALF)
        was_one, was_two = halves(normal, at, left, right, HALF)
        weight_one += tl.sum(one * was_one, 0)
        weight_two += tl.sum(two * was_two, 0)
        bias_one += tl.sum(one, 0)
        bias_two += tl.sum(two, 0)
        one, two = one * by_one, two * by_two
        mean = ((tl.sum(one, 1) + tl.sum(two, 1)) / WIDTH)[:, None]
        along = ((tl.sum(one * was_one, 1) + tl.sum(two * was_two, 1)) / WIDTH)[:, None]
        scale = tl.load(inverse + row, mask=row < count, other=0.0)[:, None]
        one, two = (one - mean - was_one * along) * scale, (two - mean - was_two * along) * scale
        store_halves(to, at, one, two, left, right, HALF)
        bits = random_bits(row[:, None] * HALF + column[None, :], first, second)
        one, two = dropped(one, two, bits, threshold, kept_scale)
        store_halves(change, at, one, two, left, right, HALF)
        change_one += tl.sum(one, 0)
        change_two += tl.sum(two, 0)
    mine = tl.program_id(0) * 3 * WIDTH + column
    store_halves(sums, mine, weight_one, weight_two, inside, further, HALF)
    store_halves(sums, mine + WIDTH, bias_one, bias_two, inside, further, HALF)
    store_halves(sums, mine + 2 * WIDTH, change_one, change_two, inside, further, HALF)


@triton.jit(do_not_specialize=["count", "site", "threshold"])
def _add_norm_along(
    change, to, normal, inverse, weight, of_weight, of_bias, keys, out, count, site, threshold, kept_scale,
    WIDTH: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    known = (row < count)[:, None]
    inside, further = column < HALF, column + HALF < WIDTH
    left, right = known & inside[None, :], known & further[None, :]
    at = row[:, None] * WIDTH + column[None, :]
    bits = random_bits(row[:, None] * HALF + column[None, :], tl.load(keys) + site, tl.load(keys + 1))
    one, two = halves(change, at, left, right, HALF)
    one, two = dropped(one, two, bits, threshold, kept_scale)
    to_one, to_two = halves(to, at, left, right, HALF)
    one, two = one + to_one, two + to_two
    was_one, was_two = halves(normal, at, left, right, HALF)
    mean = ((tl.sum(one, 1) + tl.sum(two, 1)) / WIDTH)[:, None]
    same = ((tl.sum(one * was_one, 1) + tl.sum(two * was_two, 1)) / WIDTH)[:, None]
    scale = tl.load(inverse + row, mask=row < count, other=0.0)[:, None]
    one, two = (one - mean - was_one * same) * scale, (two - mean - was_two * same) * scale
    by_one, by_two = halves(weight, column, inside, further, HALF)
    weight_one, weight_two = halves(of_weight, column, inside, further, HALF)
    bias_one, bias_two = halves(of_bias, column, inside, further, HALF)
    one = one * by_one[None, :] + was_one * weight_one[None, :] + bias_one[None, :]
    two = two * by_two[None, :] + was_two * weight_two[None, :] + bias_two[None, :]
    store_halves(out, at, one, two, left, right, HALF)


def _attend(
    kernel: Any, arrays: tuple[Tensor, ...], qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor,
    drop: Drop, **constants: bool,
) -> None:  # fmt: skip
    """Launch a kernel of attention, a program for each row and head."""
    rows, size = len(sizes), qkv.shape[1] // 3 // heads
    length = len(qkv) // rows
    block = max(16, triton.next_power_of_2(length))
    warps = 4 if qkv.dtype == torch.float32 else _ATTENTION_WARPS[block]  # products in fp32 are none of the tensor cores'
    kernel[(rows, heads)](
        *arrays, qkv, sizes, qkv if bias is None else bias, keys, length, drop.keys[0], drop.threshold, drop.scale, size**-0.5,
        HEADS=heads, SIZE=size, BLOCK=block, BIASED=bias is not None, PRECISION=PRECISION[qkv.dtype], **constants,
        num_warps=warps, num_stages=1,
    )  # fmt: skip


def attention(qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, drop: Drop) -> Tensor:
    """(N, H) from queries, keys and values side by side (N, 3H); a sub-word sees the first `sizes` (B,) of its row. `bias`
    (heads, L, L) is added to the scores."""
    out = qkv.new_empty(len(qkv), qkv.shape[1] // 3)
    _attend(_attention, (out,), qkv, sizes, heads, bias, keys, drop)
    return out


def attention_back(
    out: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, drop: Drop, of_scores: Tensor | None
) -> Tensor:
    """From the gradient of what it gave, that of qkv (N, 3H), in its place, and where there is room for it, that of all scores
    (B, heads, L, L)."""
    arrays = out, qkv if of_scores is None else of_scores
    _attend(_attention_back, arrays, qkv, sizes, heads, bias, keys, drop, TOLD=of_scores is not None)
    return qkv


def attention_along(
    along: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, of_bias: Tensor | None, keys: Tensor, drop: Drop
) -> Tensor:
    """(N, H): how what it gives changes, where qkv (N, 3H) changes `along` this and the bias by `of_bias`."""
    out = qkv.new_empty(len(qkv), qkv.shape[1] // 3)
    if of_bias is None:
        of_bias = qkv if bias is None else torch.zeros_like(bias)
    _attend(_attention_along, (out, along, of_bias.contiguous()), qkv, sizes, heads, bias, keys, drop)
    return out


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, keys: Tensor, drop: Drop, dtype: torch.dtype) -> Normed:
    """The normalised sum of what is left of `change` and `to`."""
    count, tile = len(to), norm_tile(to.shape[1])
    out, normal = torch.empty_like(to, dtype=dtype), torch.empty_like(change)
    inverse = torch.empty(count, device=to.device)
    normalise[(triton.cdiv(count, tile["ROWS"]),)](
        change, to, norm.weight, norm.bias, keys, out, normal, inverse, count, *drop.keys, drop.threshold, drop.scale, norm.eps,
        **tile, LEARNS=True, num_warps=NORM_WARPS,
    )  # fmt: skip
    return Normed(out, normal, inverse)


def add_norm_back(out: Tensor, normed: Normed, norm: nn.LayerNorm, keys: Tensor, drop: Drop) -> NormedBack:
    """From the gradient of the sum, those of what it was made of."""
    (count, width), tile = out.shape, norm_tile(out.shape[1])
    change, to = torch.empty_like(normed.normal), torch.empty_like(normed.normal)
    turns = triton.cdiv(count, tile["ROWS"] * _PROGRAMS)
    programs = triton.cdiv(count, tile["ROWS"] * turns)
    sums = torch.empty(programs, 3, width, device=out.device)
    _add_norm_back[(programs,)](
        out, normed.normal, normed.inverse, norm.weight, keys, change, to, sums, count, drop.keys[0], drop.threshold,
        drop.scale, turns, **tile, num_warps=NORM_WARPS,
    )  # fmt: skip
    return NormedBack(change, to, sums)


def add_norm_along(
    change: Tensor, to: Tensor, normed: Normed, norm: nn.LayerNorm, of_norm: tuple[Tensor, Tensor], keys: Tensor, drop: Drop,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """How the sum changes, where what it is made of changes by `change` and `to`, and weight and bias by `of_norm`."""
    out, tile = torch.empty_like(change, dtype=dtype), norm_tile(change.shape[1])
    _add_norm_along[(triton.cdiv(len(change), tile["ROWS"]),)](
        change, to, normed.normal, normed.inverse, norm.weight, *(each.contiguous() for each in of_norm), keys, out,
        len(change), drop.keys[0], drop.threshold, drop.scale, **tile, num_warps=NORM_WARPS,
    )  # fmt: skip
    return out


def try_out(device: torch.device, size: int, dtype: torch.dtype) -> None:
    """Call what is most likely to fail: the largest kernels, of rows as long as they may be and a head of this size."""
    qkv = torch.zeros(LONGEST, 3 * size, device=device, dtype=dtype)
    sizes = torch.full((1,), LONGEST, device=device, dtype=torch.int32)
    keys, drop = torch.zeros(2, device=device, dtype=torch.int32), Drop.of_training(0.1, 0)
    attention_along(qkv, qkv, sizes, 1, None, None, keys, drop)
    attention_back(qkv[:, :size].contiguous(), qkv, sizes, 1, None, keys, drop, None)
