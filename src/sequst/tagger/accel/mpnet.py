"""MPNet without a wait: transformers makes its position bias and parts of its mask on the CPU, and copies them to the GPU in
every forward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder


class PlacedEncoder(MPNetEncoder):  # type: ignore[misc]
    """Its stack of layers, which remembers the bucket of every distance."""

    def compute_position_bias(self, x: Tensor, position_ids: Any = None, num_buckets: int = 32) -> Tensor:
        if position_ids is not None:
            return super().compute_position_bias(x, position_ids, num_buckets)  # type: ignore[no-any-return]
        bias = self.relative_attention_bias(self._buckets(x.shape[1], num_buckets, x.device))  # (L, L, heads)
        return bias.permute(2, 0, 1).unsqueeze(0).expand(x.shape[0], -1, -1, -1)  # type: ignore[no-any-return]

    def _buckets(self, length: int, count: int, device: torch.device) -> Tensor:
        """(L, L): a corner of those that it remembers, which are enough for any sentence that it takes."""
        known: dict[Any, Tensor] = self.__dict__.setdefault("_known_buckets", {})
        if (count, device) not in known:
            with torch.inference_mode(False):  # they outlive this forward, and training may be next
                place = torch.arange(self.config.max_position_embeddings)
                buckets = self.relative_position_bucket(place - place.unsqueeze(1), num_buckets=count)
                known[count, device] = buckets.to(device)
        return known[count, device][:length, :length]


def added_mask(mask: Tensor) -> Tensor:
    """(B, 1, 1, L): what is added to the scores of attention, from (B, L): 0 at a sub-word, else all but minus infinity."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(mask == 0, torch.finfo(torch.float32).min)[:, None, None]


def place(encoder: MPNetEncoder) -> None:
    """Let it remember."""
    encoder.__class__ = PlacedEncoder
