"""The steps of a forward that learns, and their gradients, as one would write them down."""

from __future__ import annotations

import torch
from tests.tagger.accel.plain_kernels import random_bits
from torch import Tensor, nn

from sequst.tagger.accel.kernels import Drop, Normed, NormedBack


def _bits(places: Tensor, keys: Tensor, drop: Drop) -> Tensor:
    first, second = keys.long()
    return random_bits(places, (first + drop.keys[0], second))


def kept_weights(shape: torch.Size, keys: Tensor, drop: Drop) -> Tensor:
    """(B, heads, L, L): what the weights of attention are multiplied with, 0 or a little more than 1."""
    stays = _bits(torch.arange(shape.numel(), device=keys.device).view(shape), keys, drop) >> 16 >= drop.threshold
    return stays * drop.scale


def kept_features(shape: torch.Size, keys: Tensor, drop: Drop) -> Tensor:
    """(N, H): the same for features; one hash decides over a feature of the first half and one of the second."""
    count, width = shape
    half = (width + 1) // 2
    bits = _bits(torch.arange(count * half, device=keys.device).view(count, half), keys, drop)
    return (torch.cat([bits & 0xFFFF, bits >> 16], 1)[:, :width] >= drop.threshold) * drop.scale


def _apart(qkv: Tensor, rows: int, heads: int) -> Tensor:
    """(3, B, heads, L, size): queries, keys and values that lie side by side (N, 3H)."""
    return qkv.float().view(rows, -1, 3, heads, qkv.shape[1] // 3 // heads).permute(2, 0, 3, 1, 4)


def _seen(qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, keys, values (B, heads, L, size) and the weights of attention (B, heads, L, L)."""
    query, key, value = _apart(qkv, len(sizes), heads)
    scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    hidden = torch.arange(scores.shape[-1], device=qkv.device) >= sizes[:, None, None, None]
    return query, key, value, torch.softmax(scores.masked_fill(hidden, -1e30), -1)


def attention(qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, drop: Drop) -> Tensor:
    _, _, value, weights = _seen(qkv, sizes, heads, bias)
    out = weights * kept_weights(weights.shape, keys, drop) @ value
    return out.transpose(1, 2).reshape(len(qkv), -1).to(qkv.dtype)


def attention_back(
    out: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, drop: Drop, of_scores: Tensor | None
) -> Tensor:
    query, key, value, weights = _seen(qkv, sizes, heads, bias)
    kept = kept_weights(weights.shape, keys, drop)
    of_out = out.float().view(len(sizes), -1, heads, value.shape[-1]).transpose(1, 2)
    of_weights = of_out @ value.transpose(2, 3) * kept
    slopes = weights * (of_weights - (weights * of_weights).sum(-1, keepdim=True))
    if of_scores is not None:
        of_scores.copy_(slopes)
    scale = query.shape[-1] ** -0.5
    parts = slopes @ key * scale, slopes.transpose(2, 3) @ query * scale, (weights * kept).transpose(2, 3) @ of_out
    return qkv.copy_(torch.stack(parts).permute(1, 3, 0, 2, 4).reshape(qkv.shape))


def attention_along(
    along: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, of_bias: Tensor | None, keys: Tensor, drop: Drop
) -> Tensor:
    query, key, value, weights = _seen(qkv, sizes, heads, bias)
    of_query, of_key, of_value = _apart(along, len(sizes), heads)
    of_scores = (of_query @ key.transpose(2, 3) + query @ of_key.transpose(2, 3)) * query.shape[-1] ** -0.5
    if of_bias is not None:
        of_scores = of_scores + of_bias
    of_weights = weights * (of_scores - (weights * of_scores).sum(-1, keepdim=True))
    kept = kept_weights(weights.shape, keys, drop)
    out: Tensor = of_weights * kept @ value + weights * kept @ of_value
    return out.transpose(1, 2).reshape(len(qkv), -1).to(qkv.dtype)


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, keys: Tensor, drop: Drop, dtype: torch.dtype) -> Normed:
    summed = change.float() * kept_features(change.shape, keys, drop) + to.float()
    inverse = torch.rsqrt(summed.var(-1, correction=0) + norm.eps)
    normal = (summed - summed.mean(-1, keepdim=True)) * inverse.unsqueeze(-1)
    return Normed((normal * norm.weight + norm.bias).to(dtype), normal.to(change.dtype), inverse)


def add_norm_back(out: Tensor, normed: Normed, norm: nn.LayerNorm, keys: Tensor, drop: Drop) -> NormedBack:
    normal, dtype = normed.normal.float(), normed.normal.dtype
    of_normal = out.float() * norm.weight
    along = (of_normal * normal).mean(-1, keepdim=True)
    to = normed.inverse.unsqueeze(-1) * (of_normal - of_normal.mean(-1, keepdim=True) - normal * along)
    change = to * kept_features(to.shape, keys, drop)
    sums = torch.stack([(out.float() * normal).sum(0), out.float().sum(0), change.sum(0)])
    return NormedBack(change.to(dtype), to.to(dtype), sums.unsqueeze(0))


def add_norm_along(
    change: Tensor, to: Tensor, normed: Normed, norm: nn.LayerNorm, of_norm: tuple[Tensor, Tensor], keys: Tensor, drop: Drop,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    normal, (of_weight, of_bias) = normed.normal.float(), of_norm
    summed = change.float() * kept_features(change.shape, keys, drop) + to.float()
    summed = summed - summed.mean(-1, keepdim=True) - normal * (summed * normal).mean(-1, keepdim=True)
    of_normal = summed * normed.inverse.unsqueeze(-1)
    return (of_normal * norm.weight.detach() + normal * of_weight + of_bias).to(dtype)
