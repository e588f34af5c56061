"""The steps of a packed forward as one would write them down: what the fused ones are tested against."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sequst.tagger.kernels import Drop, Spans

_BITS = 2**32 - 1


def kept(places: Tensor, drop: Drop) -> Tensor:
    """True where an element stays; random bits are a hash of its place and the keys, so nothing is drawn and nothing stored."""
    first, second = drop.keys
    bits = (places.long() + first) & _BITS
    for shift, factor in ((17, 0xED5AD4BB), (11, 0xAC4C1B51), (15, 0x31848BAB)):
        bits = ((bits ^ (bits >> shift)) * factor) & _BITS
    bits = ((bits ^ (bits >> 14) ^ second) * 0x7FEB352D) & _BITS
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & _BITS
    return ((bits ^ (bits >> 16)) >> 8) >= drop.threshold


def attention(qkv: Tensor, spans: Spans, heads: int, bias: Tensor | None, drop: Drop | None) -> Tensor:
    width = qkv.shape[1] // 3
    out = qkv.new_empty(len(qkv), width)
    starts, longest = spans.starts.tolist(), spans.longest
    for row in range(len(qkv) // spans.tokens * spans.rows):
        begin, end = (row // spans.rows * spans.tokens + starts[row % spans.rows + i] for i in (0, 1))
        query, key, value = qkv[begin:end].float().view(end - begin, 3, heads, -1).permute(1, 2, 0, 3)  # (heads, L, size)
        scores = query @ key.transpose(1, 2) * query.shape[-1] ** -0.5
        place = torch.arange(end - begin, device=qkv.device)
        if bias is not None:
            scores = scores + bias[:, place - place.unsqueeze(1) + longest - 1]
        weights = torch.softmax(scores, -1)
        if drop is not None:
            head = torch.arange(heads, device=qkv.device)[:, None, None]
            stays = kept((((row * heads + head) * longest) + place[:, None]) * longest + place, drop)
            weights = torch.where(stays, weights * drop.scale, 0.0)
        out[begin:end] = (weights @ value).transpose(0, 1).reshape(end - begin, width)
    return out


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, drop: Drop | None) -> Tensor:
    change = change.float()
    if drop is not None:
        places = torch.arange(change.numel(), device=change.device).view_as(change)
        change = torch.where(kept(places, drop), change * drop.scale, 0.0)
    return nn.functional.layer_norm(change + to.float(), norm.normalized_shape, norm.weight, norm.bias, norm.eps).to(to.dtype)
