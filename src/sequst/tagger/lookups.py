"""Tables of embeddings whose gradients are the same every time on a GPU.

torch's kernel for the gradient of a few thousand lookups reads them a thousand at a time, and where the next thousand is whole,
or nearly, fast threads write it over numbers that slow ones still read (pytorch/pytorch#187687): now and then a gradient is
wrong. Lookups of fewer are not affected, and for more there is another kernel.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

SAFE = 2 * 1024 - 32
"""The last thirty-two of the first thousand are read last: from so many lookups on they may be written over."""
MOST = 4096
"""Beyond it another kernel is taken; on some GPUs from 3,072 on."""


class Lookup(nn.Embedding):
    """A table that looks up no more at a time than is safe, where a gradient will be asked for."""

    def forward(self, input: Tensor) -> Tensor:
        if input.is_cuda and torch.is_grad_enabled() and SAFE < input.numel() <= MOST:
            return self.in_parts(input)
        return super().forward(input)

    def in_parts(self, input: Tensor) -> Tensor:
        look = super().forward
        parts = input.flatten().chunk(-(-input.numel() // SAFE))
        return torch.cat([look(part) for part in parts]).view(*input.shape, self.embedding_dim)


def make_safe(model: nn.Module) -> None:
    """Let all its tables look up as `Lookup` does; what they hold stays as it is."""
    for module in model.modules():
        if type(module) is nn.Embedding:
            module.__class__ = Lookup
