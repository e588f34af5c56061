"""Dropout masks on the CPU at a fraction of the usual cost: 64 random bits decide four elements, where torch draws a number for
each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

_LEVELS = 1 << 16
"""Rates are multiples of one part in so many: 16 bits decide an element."""


class Masks:
    """Dropout with masks of its own stream, which the seed decides."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.SFC64(seed)

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """The tensor with elements dropped and the others scaled, so that its mean is what it was; changed in place."""
        mask, scale = self._mask(x.shape, rate)
        return x.mul_(mask).mul_(scale)

    def add_dropped(self, x: Tensor, to: Tensor, rate: float) -> Tensor:
        """What is left of `x`, added to another tensor."""
        mask, scale = self._mask(x.shape, rate)
        return torch.addcmul(to, x, mask, value=scale)

    def _mask(self, shape: Sequence[int], rate: float) -> tuple[Tensor, float]:
        """1 where an element stays and 0 where it goes, and what those that stay are scaled by."""
        dropped = round(rate * _LEVELS)
        count = math.prod(shape)
        draws = self._bits.random_raw(-(-count // 4)).view(np.int16)[:count]
        mask = torch.empty(count)
        torch.ge(torch.from_numpy(draws), dropped - _LEVELS // 2, out=mask)
        return mask.view(*shape), _LEVELS / max(1, _LEVELS - dropped)
