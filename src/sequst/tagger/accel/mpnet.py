"""MPNet without a wait: transformers makes its position bias and parts of its mask on the CPU, and copies them to the GPU in
every forward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder


class PlacedEncoder(MPNetEncoder):  # type: ignore[misc]
    """Its stack of layers, which remembers the bucket of every distance on each device."""

    def compute_position_bias(self, x: Tensor, position_ids: Any = None, num_buckets: int = 32) -> Tensor:
        known: dict[torch.device, Tensor] = self.__dict__.setdefault("_known_buckets", {})
        if x.device not in known:
            with torch.inference_mode(False):  # they outlive this forward, and training may be next
                place = torch.arange(self.config.max_position_embeddings)
                buckets = self.relative_position_bucket(place - place.unsqueeze(1), num_buckets=num_buckets)
                known[x.device] = buckets.to(x.device)
        bias = self.relative_attention_bias(known[x.device][: x.shape[1], : x.shape[1]])  # (L, L, heads)
        return bias.permute(2, 0, 1).unsqueeze(0).expand(x.shape[0], -1, -1, -1)  # type: ignore[no-any-return]


def added_mask(mask: Tensor) -> Tensor:
    """(B, 1, 1, L): what is added to the scores of attention, from (B, L): 0 at a sub-word, else all but minus infinity."""
    return torch.zeros(mask.shape, device=mask.device).masked_fill(mask == 0, torch.finfo(torch.float32).min)[:, None, None]
