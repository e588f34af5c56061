"""The steps of a forward that learns, and their gradients, each one kernel of Triton.

Importing this needs Triton, which torch brings where it knows a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from sequst.tagger.accel.kernels import Normed, NormedBack, Site
from sequst.tagger.accel.kernels.varlen import NORM_TILE, NORM_WARPS, PRECISION, random_bits

_ATTENTION_WARPS = {16: 1, 32: 4, 64: 2}
"""Warps for each size of block. Four would multiply blocks of 64 by Hopper's asynchronous instructions, and several products in
a row, some of transposed results, are what Triton has been reported to get wrong with these."""
_PROGRAMS = 132
"""Among how many programs the rows of a normalisation are divided, at most, for what is summed over rows."""


@triton.jit(do_not_specialize=["length", "site", "threshold"])
def _attention(
    qkv, out, sizes, bias, keys, length, site, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    width: tl.constexpr = HEADS * SIZE
    place = tl.arange(0, BLOCK)
    feature = head * SIZE + tl.arange(0, SIZE)
    inside = (place < length)[:, None]
    at = qkv + (row * length + place)[:, None] * (3 * width) + feature[None, :]
    query = tl.load(at, mask=inside, other=0.0)
    key = tl.load(at + width, mask=inside, other=0.0)
    value = tl.load(at + 2 * width, mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
    pair = (head * length + place)[:, None] * length + place[None, :]
    if BIASED:
        scores += tl.load(bias + pair, mask=inside & (place < length)[None, :], other=0.0)
    scores = tl.where((place < tl.load(sizes + row))[None, :], scores, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = weights / tl.sum(weights, 1)[:, None]
    bits = random_bits(row * HEADS * length * length + pair, tl.load(keys) + site, tl.load(keys + 1))
    weights = tl.where((bits >> 16).to(tl.int32) >= threshold, weights * kept_scale, 0.0)
    seen = tl.dot(weights.to(value.dtype), value, input_precision=PRECISION)
    tl.store(out + (row * length + place)[:, None] * width + feature[None, :], seen.to(value.dtype), mask=inside)


@triton.jit(do_not_specialize=["length", "site", "threshold"])
def _attention_back(
    out, qkv, of_bias, sizes, bias, keys, length, site, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, TOLD: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """What a program reads, no other does, so that it can write its results there when it has read all."""
    row, head = tl.program_id(0), tl.program_id(1)
    width: tl.constexpr = HEADS * SIZE
    place = tl.arange(0, BLOCK)
    feature = head * SIZE + tl.arange(0, SIZE)
    inside = (place < length)[:, None]
    offset = (row * length + place)[:, None] * (3 * width) + feature[None, :]
    query = tl.load(qkv + offset, mask=inside, other=0.0)
    key = tl.load(qkv + offset + width, mask=inside, other=0.0)
    value = tl.load(qkv + offset + 2 * width, mask=inside, other=0.0)
    of_out = tl.load(out + (row * length + place)[:, None] * width + feature[None, :], mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
    pair = (head * length + place)[:, None] * length + place[None, :]
    both = inside & (place < length)[None, :]
    if BIASED:
        scores += tl.load(bias + pair, mask=both, other=0.0)
    scores = tl.where((place < tl.load(sizes + row))[None, :], scores, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = weights / tl.sum(weights, 1)[:, None]
    bits = random_bits(row * HEADS * length * length + pair, tl.load(keys) + site, tl.load(keys + 1))
    stays = (bits >> 16).to(tl.int32) >= threshold
    kept = tl.where(stays & inside, weights * kept_scale, 0.0).to(value.dtype)
    of_value = tl.dot(tl.trans(kept), of_out, input_precision=PRECISION)
    of_weights = tl.dot(of_out, tl.trans(value), input_precision=PRECISION)
    of_weights = tl.where(stays, of_weights * kept_scale, 0.0)
    of_scores = weights * (of_weights - tl.sum(weights * of_weights, 1)[:, None])
    of_scores = tl.where(inside, of_scores, 0.0)
    if TOLD:
        tl.store(of_bias + row * HEADS * length * length + pair, of_scores, mask=both)
    of_scores = (of_scores * score_scale).to(value.dtype)
    of_query = tl.dot(of_scores, key, input_precision=PRECISION)
    of_key = tl.dot(tl.trans(of_scores), query, input_precision=PRECISION)
    tl.debug_barrier()  # all threads have read
    tl.store(qkv + offset, of_query.to(value.dtype), mask=inside)
    tl.store(qkv + offset + width, of_key.to(value.dtype), mask=inside)
    tl.store(qkv + offset + 2 * width, of_value.to(value.dtype), mask=inside)


@triton.jit(do_not_specialize=["length", "site", "threshold"])
def _attention_along(
    along, qkv, out, sizes, bias, of_bias, keys, length, site, threshold, kept_scale, score_scale,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, BIASED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    width: tl.constexpr = HEADS * SIZE
    place = tl.arange(0, BLOCK)
    feature = head * SIZE + tl.arange(0, SIZE)
    inside = (place < length)[:, None]
    offset = (row * length + place)[:, None] * (3 * width) + feature[None, :]
    query = tl.load(qkv + offset, mask=inside, other=0.0)
    key = tl.load(qkv + offset + width, mask=inside, other=0.0)
    of_query = tl.load(along + offset, mask=inside, other=0.0)
    of_key = tl.load(along + offset + width, mask=inside, other=0.0)
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * score_scale
    of_scores = tl.dot(of_query, tl.trans(key), input_precision=PRECISION)
    of_scores += tl.dot(query, tl.trans(of_key), input_precision=PRECISION)
    of_scores *= score_scale
    pair = (head * length + place)[:, None] * length + place[None, :]
    both = inside & (place < length)[None, :]
    if BIASED:
        scores += tl.load(bias + pair, mask=both, other=0.0)
        of_scores += tl.load(of_bias + pair, mask=both, other=0.0)
    scores = tl.where((place < tl.load(sizes + row))[None, :], scores, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = weights / tl.sum(weights, 1)[:, None]
    of_weights = weights * (of_scores - tl.sum(weights * of_scores, 1)[:, None])
    bits = random_bits(row * HEADS * length * length + pair, tl.load(keys) + site, tl.load(keys + 1))
    stays = (bits >> 16).to(tl.int32) >= threshold
    weights = tl.where(stays, weights * kept_scale, 0.0)
    of_weights = tl.where(stays, of_weights * kept_scale, 0.0)
    value = tl.load(qkv + offset + 2 * width, mask=inside, other=0.0)
    of_value = tl.load(along + offset + 2 * width, mask=inside, other=0.0)
    seen = tl.dot(of_weights.to(value.dtype), value, input_precision=PRECISION)
    seen += tl.dot(weights.to(value.dtype), of_value, input_precision=PRECISION)
    tl.store(out + (row * length + place)[:, None] * width + feature[None, :], seen.to(value.dtype), mask=inside)


@triton.jit(do_not_specialize=["count", "site", "threshold"])
def _add_norm(
    change, to, weight, bias, keys, out, normal, inverse, count, site, threshold, kept_scale, epsilon,
    WIDTH: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """As that of the packed forward, some rows at a time, each in two halves."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    known = (row < count)[:, None]
    left, right = known & (column < HALF)[None, :], known & (column + HALF < WIDTH)[None, :]
    at = row[:, None] * WIDTH + column[None, :]
    bits = random_bits(row[:, None] * HALF + column[None, :], tl.load(keys) + site, tl.load(keys + 1))
    one = tl.load(change + at, mask=left, other=0.0).to(tl.float32)
    two = tl.load(change + at + HALF, mask=right, other=0.0).to(tl.float32)
    one = tl.where((bits & 0xFFFF).to(tl.int32) >= threshold, one * kept_scale, 0.0)
    two = tl.where((bits >> 16).to(tl.int32) >= threshold, two * kept_scale, 0.0)
    one += tl.load(to + at, mask=left, other=0.0).to(tl.float32)
    two += tl.load(to + at + HALF, mask=right, other=0.0).to(tl.float32)
    mean = (tl.sum(one, 1) + tl.sum(two, 1))[:, None] / WIDTH
    one, two = tl.where(left, one - mean, 0.0), tl.where(right, two - mean, 0.0)
    scale = tl.rsqrt((tl.sum(one * one, 1) + tl.sum(two * two, 1)) / WIDTH + epsilon)
    one, two = one * scale[:, None], two * scale[:, None]
    tl.store(inverse + row, scale, mask=row < count)
    tl.store(normal + at, one.to(normal.dtype.element_ty), mask=left)
    tl.store(normal + at + HALF, two.to(normal.dtype.element_ty), mask=right)
    inside, further = column < HALF, column + HALF < WIDTH
    one = one * tl.load(weight + column, mask=inside, other=0.0) + tl.load(bias + column, mask=inside, other=0.0)
    two = two * tl.load(weight + column + HALF, mask=further, other=0.0)
    two += tl.load(bias + column + HALF, mask=further, other=0.0)
    tl.store(out + at, one.to(out.dtype.element_ty), mask=left)
    tl.store(out + at + HALF, two.to(out.dtype.element_ty), mask=right)


@triton.jit(do_not_specialize=["count", "site", "threshold", "turns"])
def _add_norm_back(
    out, normal, inverse, weight, keys, change, to, sums, count, site, threshold, kept_scale, turns,
    WIDTH: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """A program takes several turns of some rows, and leaves its share of what is summed over all."""
    column = tl.arange(0, BLOCK)
    inside, further = column < HALF, column + HALF < WIDTH
    by_one = tl.load(weight + column, mask=inside, other=0.0)[None, :]
    by_two = tl.load(weight + column + HALF, mask=further, other=0.0)[None, :]
    first, second = tl.load(keys) + site, tl.load(keys + 1)
    weight_one, weight_two = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    bias_one, bias_two = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    change_one, change_two = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for turn in range(turns):
        row = (tl.program_id(0) * turns + turn) * ROWS + tl.arange(0, ROWS)
        known = (row < count)[:, None]
        left, right = known & inside[None, :], known & further[None, :]
        at = row[:, None] * WIDTH + column[None, :]
        one = tl.load(out + at, mask=left, other=0.0).to(tl.float32)
        two = tl.load(out + at + HALF, mask=right, other=0.0).to(tl.float32)
        was_one = tl.load(normal + at, mask=left, other=0.0).to(tl.float32)
        was_two = tl.load(normal + at + HALF, mask=right, other=0.0).to(tl.float32)
        weight_one += tl.sum(one * was_one, 0)
        weight_two += tl.sum(two * was_two, 0)
        bias_one += tl.sum(one, 0)
        bias_two += tl.sum(two, 0)
        one, two = one * by_one, two * by_two
        mean = ((tl.sum(one, 1) + tl.sum(two, 1)) / WIDTH)[:, None]
        along = ((tl.sum(one * was_one, 1) + tl.sum(two * was_two, 1)) / WIDTH)[:, None]
        scale = tl.load(inverse + row, mask=row < count, other=0.0)[:, None]
        one, two = (one - mean - was_one * along) * scale, (two - mean - was_two * along) * scale
        tl.store(to + at, one.to(to.dtype.element_ty), mask=left)
        tl.store(to + at + HALF, two.to(to.dtype.element_ty), mask=right)
        bits = random_bits(row[:, None] * HALF + column[None, :], first, second)
        one = tl.where(left & ((bits & 0xFFFF).to(tl.int32) >= threshold), one * kept_scale, 0.0)
        two = tl.where(right & ((bits >> 16).to(tl.int32) >= threshold), two * kept_scale, 0.0)
        tl.store(change + at, one.to(change.dtype.element_ty), mask=left)
        tl.store(change + at + HALF, two.to(change.dtype.element_ty), mask=right)
        change_one += tl.sum(one, 0)
        change_two += tl.sum(two, 0)
    mine = sums + tl.program_id(0) * 3 * WIDTH + column
    tl.store(mine, weight_one, mask=inside)
    tl.store(mine + HALF, weight_two, mask=further)
    tl.store(mine + WIDTH, bias_one, mask=inside)
    tl.store(mine + WIDTH + HALF, bias_two, mask=further)
    tl.store(mine + 2 * WIDTH, change_one, mask=inside)
    tl.store(mine + 2 * WIDTH + HALF, change_two, mask=further)


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
    one = tl.load(change + at, mask=left, other=0.0).to(tl.float32)
    two = tl.load(change + at + HALF, mask=right, other=0.0).to(tl.float32)
    one = tl.where((bits & 0xFFFF).to(tl.int32) >= threshold, one * kept_scale, 0.0)
    two = tl.where((bits >> 16).to(tl.int32) >= threshold, two * kept_scale, 0.0)
    one += tl.load(to + at, mask=left, other=0.0).to(tl.float32)
    two += tl.load(to + at + HALF, mask=right, other=0.0).to(tl.float32)
    was_one = tl.load(normal + at, mask=left, other=0.0).to(tl.float32)
    was_two = tl.load(normal + at + HALF, mask=right, other=0.0).to(tl.float32)
    mean = ((tl.sum(one, 1) + tl.sum(two, 1)) / WIDTH)[:, None]
    same = ((tl.sum(one * was_one, 1) + tl.sum(two * was_two, 1)) / WIDTH)[:, None]
    scale = tl.load(inverse + row, mask=row < count, other=0.0)[:, None]
    one, two = (one - mean - was_one * same) * scale, (two - mean - was_two * same) * scale
    one = one * tl.load(weight + column, mask=inside, other=0.0)[None, :]
    two = two * tl.load(weight + column + HALF, mask=further, other=0.0)[None, :]
    one += was_one * tl.load(of_weight + column, mask=inside, other=0.0)[None, :]
    two += was_two * tl.load(of_weight + column + HALF, mask=further, other=0.0)[None, :]
    one += tl.load(of_bias + column, mask=inside, other=0.0)[None, :]
    two += tl.load(of_bias + column + HALF, mask=further, other=0.0)[None, :]
    tl.store(out + at, one.to(out.dtype.element_ty), mask=left)
    tl.store(out + at + HALF, two.to(out.dtype.element_ty), mask=right)


def _warps(block: int, dtype: torch.dtype) -> int:
    """Warps of attention: products in fp32 are none of the tensor cores'."""
    return 4 if dtype == torch.float32 else _ATTENTION_WARPS[block]


def attention(qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, site: Site) -> Tensor:
    rows, size, drop = len(sizes), qkv.shape[1] // 3 // heads, site.drop
    length = len(qkv) // rows
    out = qkv.new_empty(len(qkv), heads * size)
    block = max(16, triton.next_power_of_2(length))
    _attention[(rows, heads)](
        qkv, out, sizes, qkv if bias is None else bias, keys, length, drop.keys[0], drop.threshold, drop.scale, size**-0.5,
        HEADS=heads, SIZE=size, BLOCK=block, BIASED=bias is not None, PRECISION=PRECISION[qkv.dtype],
        num_warps=_warps(block, qkv.dtype), num_stages=1,
    )  # fmt: skip
    return out


def attention_back(
    out: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, site: Site, of_scores: Tensor | None
) -> Tensor:
    rows, size, drop = len(sizes), qkv.shape[1] // 3 // heads, site.drop
    length = len(qkv) // rows
    block = max(16, triton.next_power_of_2(length))
    _attention_back[(rows, heads)](
        out, qkv, qkv if of_scores is None else of_scores, sizes, qkv if bias is None else bias, keys, length,
        drop.keys[0], drop.threshold, drop.scale, size**-0.5, HEADS=heads, SIZE=size, BLOCK=block, BIASED=bias is not None,
        TOLD=of_scores is not None, PRECISION=PRECISION[qkv.dtype], num_warps=_warps(block, qkv.dtype), num_stages=1,
    )  # fmt: skip
    return qkv


def attention_along(
    along: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, of_bias: Tensor | None, keys: Tensor, site: Site
) -> Tensor:
    rows, size, drop = len(sizes), qkv.shape[1] // 3 // heads, site.drop
    length = len(qkv) // rows
    out = qkv.new_empty(len(qkv), heads * size)
    block = max(16, triton.next_power_of_2(length))
    if bias is not None:
        of_bias = torch.zeros_like(bias) if of_bias is None else of_bias.contiguous()
    _attention_along[(rows, heads)](
        along, qkv, out, sizes, qkv if bias is None else bias, qkv if of_bias is None else of_bias, keys, length, drop.keys[0],
        drop.threshold, drop.scale, size**-0.5, HEADS=heads, SIZE=size, BLOCK=block, BIASED=bias is not None,
        PRECISION=PRECISION[qkv.dtype], num_warps=_warps(block, qkv.dtype), num_stages=1,
    )  # fmt: skip
    return out


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, keys: Tensor, site: Site, dtype: torch.dtype) -> Normed:
    (count, width), drop = to.shape, site.drop
    out, normal = torch.empty_like(to, dtype=dtype), torch.empty_like(change)
    inverse = torch.empty(count, device=to.device)
    half, block, rows = _tile(width)
    _add_norm[(triton.cdiv(count, rows),)](
        change, to, norm.weight, norm.bias, keys, out, normal, inverse, count, drop.keys[0], drop.threshold, drop.scale,
        norm.eps, WIDTH=width, HALF=half, BLOCK=block, ROWS=rows, num_warps=NORM_WARPS,
    )  # fmt: skip
    return Normed(out, normal, inverse)


def add_norm_back(out: Tensor, normed: Normed, norm: nn.LayerNorm, keys: Tensor, site: Site) -> NormedBack:
    (count, width), drop = out.shape, site.drop
    change, to = torch.empty_like(normed.normal), torch.empty_like(normed.normal)
    half, block, rows = _tile(width)
    turns = triton.cdiv(count, rows * _PROGRAMS)
    programs = triton.cdiv(count, rows * turns)
    sums = torch.empty(programs, 3, width, device=out.device)
    _add_norm_back[(programs,)](
        out, normed.normal, normed.inverse, norm.weight, keys, change, to, sums, count, drop.keys[0], drop.threshold,
        drop.scale, turns, WIDTH=width, HALF=half, BLOCK=block, ROWS=rows, num_warps=NORM_WARPS,
    )  # fmt: skip
    return NormedBack(change, to, sums)


def add_norm_along(
    change: Tensor, to: Tensor, normed: Normed, norm: nn.LayerNorm, of_norm: tuple[Tensor, Tensor], keys: Tensor, site: Site,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    (count, width), drop = change.shape, site.drop
    out = torch.empty_like(change, dtype=dtype)
    half, block, rows = _tile(width)
    _add_norm_along[(triton.cdiv(count, rows),)](
        change, to, normed.normal, normed.inverse, norm.weight, *(each.contiguous() for each in of_norm), keys, out, count,
        drop.keys[0], drop.threshold, drop.scale, WIDTH=width, HALF=half, BLOCK=block, ROWS=rows, num_warps=NORM_WARPS,
    )  # fmt: skip
    return out


def _tile(width: int) -> tuple[int, int, int]:
    """Features of half a row, the block that holds them, and the rows of a program."""
    half = (width + 1) // 2
    block = triton.next_power_of_2(half)
    return half, block, max(1, NORM_TILE // block)
