"""Gaussian-based consistency regularisation: predictions that stay when a word's representation is perturbed (Eq. 12 to 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

if TYPE_CHECKING:
    from sequst.tagger.heads import Head

Start = Literal["identity", "random"]
FIRST_SCALE = 0.1


class GaussianNets(nn.Module):
    """The two projections, one linear layer with ReLU each, that give every word a mean and a scale (Eq. 12).

    They start at the identity, mu = 1, with a little noise. Linear layers as torch makes them give a mu near 0: the perturbed
    representation is then almost nothing, and agreeing with that teaches a student to ignore its input.
    """

    def __init__(self, hidden: int, start: Start = "identity") -> None:
        super().__init__()
        self.mean = nn.Linear(hidden, hidden)
        self.scale = nn.Linear(hidden, hidden)
        if start == "identity":
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


@dataclass(frozen=True)
class Consistency:
    """The regulariser of a batch and what shows whether the noise has collapsed: as written it has a trivial optimum,
    mu = 1 and Sigma = 0, at which it regularises nothing."""

    loss: Tensor
    mean: Tensor
    scale: Tensor

    @property
    def told(self) -> dict[str, Tensor]:
        """What to record."""
        return {"gcr": self.loss.detach(), "gcr_mu": self.mean, "gcr_sigma": self.scale}


def consistency(
    hidden: Tensor,
    words: Tensor,
    nets: GaussianNets,
    predict: Callable[[Tensor], Tensor],
    samples: int,
    generator: torch.Generator,
    detach: bool = True,
) -> Consistency:
    """Eq. 14 over the words that `words` (B, W) marks: the mean KL over words and `samples` perturbations.

    hidden (B, W, H); `predict` gives (..., B, W, C) from such states and must draw nothing, or the divergence would measure its
    draws. Noise comes from the generator alone, so that this shares no random stream with dropout. `detach` keeps the clean
    side out of the gradient.
    """
    mean, scale = nets(hidden)
    clean = predict(hidden)
    clean = clean.detach() if detach else clean
    count = words.sum().clamp(min=1)
    noise = torch.randn((samples, *hidden.shape), generator=generator, device=generator.device).to(hidden)
    each = divergence(clean, predict(perturb(hidden, mean, scale, noise)))  # (samples, B, W)
    total = torch.where(words, each, 0.0).sum() / count
    marked = words.unsqueeze(-1)
    width = count * hidden.shape[-1]
    averages = [torch.where(marked, value, 0.0).sum().detach() / width for value in (mean, scale)]
    return Consistency(total / samples, *averages)


def noise_prior(mean: Tensor, scale: Tensor, words: Tensor, prior_scale: float) -> Tensor:
    """KL of N(mu, Sigma^2) to N(1, s^2), the mean over marked words and features: keeps the noise from collapsing."""
    variance = scale.pow(2).clamp(min=1e-12)
    target = prior_scale**2
    each = 0.5 * ((variance + (mean - 1).pow(2)) / target - 1 + torch.log(target / variance))
    marked = words.unsqueeze(-1)
    return torch.where(marked, each, 0.0).sum() / (words.sum().clamp(min=1) * mean.shape[-1])


class GaussianConsistency:
    """The regulariser with its nets and its own generator, as a part of a student's objective."""

    def __init__(
        self,
        hidden: int,
        seed: int,
        *,
        weight: float,
        samples: int,
        prior: float,
        start: Start,
        detach: bool,
        selected_only: bool,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.nets = GaussianNets(hidden, start)
        self._weight, self._samples, self._prior = weight, samples, prior
        self._detach, self._selected_only = detach, selected_only
        self.generator = torch.Generator()

    def begin_epoch(self, seed: int) -> None:
        device = self.nets.mean.weight.device
        if self.generator.device != device:
            self.generator = torch.Generator(device)
        self.generator.manual_seed(seed)

    def __call__(
        self, hidden: Tensor, owned: Tensor, selected: Tensor, predict: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """(lambda x R, what to record)."""
        words = self._words(owned, selected)
        found = consistency(hidden, words, self.nets, predict, self._samples, self.generator, self._detach)
        loss = found.loss
        if self._prior > 0:
            mean, scale = self.nets(hidden)
            loss = loss + noise_prior(mean, scale, words, self._prior)
        return self._weight * loss, found.told

    @property
    def fusable(self) -> bool:
        """Whether there are kernels for it."""
        return self._detach and self._prior == 0

    def fused(self, hidden: Tensor, owned: Tensor, selected: Tensor, head: Head) -> tuple[Tensor, dict[str, Tensor]]:
        """The same by kernels of Triton, where it is `fusable` and the head a softmax."""
        from sequst.objectives import accel as fused

        words = self._words(owned, selected)
        found = fused.consistency(hidden, words, self.nets, head, self._samples, self.generator)
        return self._weight * found.loss, found.told

    def _words(self, owned: Tensor, selected: Tensor) -> Tensor:
        return selected if self._selected_only else owned
