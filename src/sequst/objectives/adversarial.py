"""Virtual adversarial training: predictions that stay under the small change of the input that would move them most.

Miyato et al. 2017, on the word embeddings of a sentence.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def unit(direction: Tensor, mask: Tensor) -> Tensor:
    """Directions (B, L, E) with the padding at 0 and a norm of 1 over each sentence; 0 where there is no direction at all."""
    direction = direction * mask.unsqueeze(-1)
    direction = direction / direction.abs().flatten(1).amax(1).clamp(min=1e-30).view(-1, 1, 1)  # it may be tiny
    norm: Tensor = torch.linalg.vector_norm(direction.flatten(1), dim=1)
    return direction / norm.clamp(min=1e-12).view(-1, 1, 1)


def adversarial_direction(
    embeddings: Tensor, mask: Tensor, divergence: Callable[[Tensor], Tensor], generator: torch.Generator, step: float | Tensor
) -> Tensor:
    """The direction (B, L, E), of norm 1 over each sentence, in which the divergence grows fastest: one power iteration.

    `divergence` gives one number from embeddings and is 0, with a gradient of 0, at these ones. So its gradient is taken a
    small `step` away in a random direction, which is then turned towards the one that moves it most.
    """
    random = torch.randn(embeddings.shape, generator=generator, device=generator.device).to(embeddings)
    away = (step * unit(random, mask)).requires_grad_()
    moved = divergence(embeddings.detach() + away)
    with torch.autocast(embeddings.device.type, enabled=False):  # which is for the way there, not for the way back
        [gradient] = torch.autograd.grad(moved, away)
    return unit(gradient, mask).detach()


def mean_norm(embeddings: Tensor, mask: Tensor) -> Tensor:
    """(B, 1, 1): the mean norm of the embeddings of each sentence; lengths that are told in it fit every encoder."""
    norms: Tensor = torch.linalg.vector_norm(embeddings.detach(), dim=-1) * mask
    return (norms.sum(1) / mask.sum(1).clamp(min=1)).view(-1, 1, 1)
