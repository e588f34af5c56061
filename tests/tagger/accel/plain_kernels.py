"""The steps of a packed forward as one would write them down: what the fused ones are tested against."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sequst.tagger.accel.kernels import Drop, Spans

_BITS = 2**32 - 1


def random_bits(places: Tensor, keys: tuple[int, int]) -> Tensor:
    """32 bits for every place: a hash of it and the keys, so that nothing is drawn and nothing stored."""
    bits = (places.long() + keys[0]) & _BITS
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & _BITS
    bits = ((bits ^ (bits >> 15) ^ keys[1]) * 0x846CA68B) & _BITS
    bits = ((bits ^ (bits >> 16)) * 0x31848BAB) & _BITS
    return bits ^ (bits >> 14)


def kept_weights(places: Tensor, drop: Drop) -> Tensor:
    """True where a weight of attention stays: the upper half of its bits decides."""
    return random_bits(places, drop.keys) >> 16 >= drop.threshold


def kept_features(count: int, width: int, drop: Drop, device: torch.device) -> Tensor:
    """(N, H), true where a feature stays: of the first half by the lower half of its bits, of the second by the upper."""
    half = (width + 1) // 2
    bits = random_bits(torch.arange(count * half, device=device).view(count, half), drop.keys)
    return torch.cat([bits & 0xFFFF, bits >> 16], 1)[:, :width] >= drop.threshold


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
            stays = kept_weights((((row * heads + head) * longest) + place[:, None]) * longest + place, drop)
            weights = torch.where(stays, weights * drop.scale, 0.0)
        out[begin:end] = (weights @ value).transpose(0, 1).reshape(end - begin, width)
    return out


def up_gelu(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return nn.functional.gelu(nn.functional.linear(states, weight, bias))


def add_norm(change: Tensor, to: Tensor, norm: nn.LayerNorm, drop: Drop | None) -> Tensor:
    change = change.float()
    if drop is not None:
        change = torch.where(kept_features(len(change), change.shape[1], drop, change.device), change * drop.scale, 0.0)
    return nn.functional.layer_norm(change + to.float(), norm.normalized_shape, norm.weight, norm.bias, norm.eps).to(to.dtype)
