"""Gaussian-based consistency regularisation: predictions that stay when a word's representation is perturbed (Eq. 12 to 14)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sequst.tagger.accel.available import loss_kernels
from sequst.tagger.batches import Rows
from sequst.tagger.heads import Head, SoftmaxHead

FIRST_SCALE = 0.1


class GaussianNets(nn.Module):
    """The two projections, one linear layer with ReLU each, that give every word a mean and a scale (Eq. 12).

    They start at the identity, mu = 1, with a little noise. Linear layers as torch makes them give a mu near 0: the perturbed
    representation is then almost nothing, and agreeing with that teaches a student to ignore its input.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        # linear layers that draw nothing from the generator of dropout
        self.mean, self.scale = (nn.utils.skip_init(nn.Linear, hidden, hidden) for _ in range(2))  # type: ignore[no-untyped-call]
        for layer, value in ((self.mean, 1.0), (self.scale, FIRST_SCALE)):
            nn.init.zeros_(layer.weight)
            nn.init.constant_(layer.bias, value)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """(..., H) -> mu, Sigma, each (..., H)."""
        return F.relu(self.mean(hidden)), F.relu(self.scale(hidden))


def perturb(hidden: Tensor, mean: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """h * (mu + Sigma * epsilon) (Eq. 13)."""
    return hidden * (mean + scale * noise)


def divergence(clean: Tensor, perturbed: Tensor) -> Tensor:
    """KL(clean || perturbed) of log probabilities (..., C), per word (...)."""
    return F.kl_div(perturbed, clean, reduction="none", log_target=True).sum(-1)


def consistency(
    hidden: Tensor, words: Tensor, nets: GaussianNets, head: Head, rows: Rows, samples: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Eq. 14 over the words that `words` (B, W) marks: (the mean KL over words and `samples` perturbations, the mean mu, the
    mean Sigma). As written it has a trivial optimum, mu = 1 and Sigma = 0, at which it regularises nothing.

    hidden (B, W, H). The clean side is kept out of the gradient, the head does not drop out, or the divergence would measure
    that, and noise comes from the generator alone, so that this shares no random stream with dropout.
    """
    noise = torch.randn((samples, *hidden.shape), generator=generator, device=generator.device)
    kernels = loss_kernels(hidden, len(hidden), head.linear.out_features) if isinstance(head, SoftmaxHead) else None
    if kernels is not None:
        found: tuple[Tensor, Tensor, Tensor] = kernels.gaussian_divergence(hidden, words, nets.mean, nets.scale, head, noise)
        return found
    mean, scale = nets(hidden)
    clean = head(hidden, rows, dropout=False).detach()
    count = words.sum().clamp(min=1)
    perturbed = head(perturb(hidden, mean, scale, noise.to(hidden)), rows, dropout=False)
    each = divergence(clean, perturbed)  # (samples, B, W)
    total = torch.where(words, each, 0.0).sum() / count
    marked, width = words.unsqueeze(-1), count * hidden.shape[-1]
    mu, sigma = (torch.where(marked, value, 0.0).sum().detach() / width for value in (mean, scale))
    return total / samples, mu, sigma


class GaussianConsistency:
    """The regulariser with its nets, as a part of a student's objective."""

    def __init__(self, hidden: int, *, weight: float, samples: int) -> None:
        self.nets = GaussianNets(hidden)
        self._weight, self._samples = weight, samples

    def __call__(
        self, hidden: Tensor, words: Tensor, head: Head, rows: Rows, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """(lambda x R, what to record)."""
        loss, mu, sigma = consistency(hidden, words, self.nets, head, rows, self._samples, generator)
        return self._weight * loss, {"gcr": loss.detach(), "gcr_mu": mu, "gcr_sigma": sigma}
