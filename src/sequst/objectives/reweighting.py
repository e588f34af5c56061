"""What learning a word is worth: weights from a meta-gradient (Ren et al. 2018, as MetaST uses it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Parameters = Mapping[str, Tensor]


def worth_of_words(losses: Tensor, parameters: Parameters, meta_loss: Callable[[Parameters], Tensor], rate: float) -> Tensor:
    """(N,): how fast the meta loss after a virtual step falls with the weight of each word in that step, -dL/dw.

    The step is theta' = theta - rate x d/dtheta of sum w l, with w = 1/N. As theta' is linear in w, the derivative is the
    product of two gradients, rate x dL/dtheta'(theta') . dl/dtheta(theta). The second comes for all words at once, from the
    gradient of the step differentiated in w: so `losses` (N,) must be made of operations that have a second derivative.
    """
    weights = torch.full_like(losses, 1.0 / max(1, len(losses)), requires_grad=True)
    names = list(parameters)
    gradients = torch.autograd.grad(
        (weights * losses).sum(), [parameters[name] for name in names], create_graph=True, allow_unused=True
    )
    step = {name: gradient for name, gradient in zip(names, gradients, strict=True) if gradient is not None}
    moved = {name: (parameters[name] - rate * gradient).detach().requires_grad_() for name, gradient in step.items()}
    slopes = torch.autograd.grad(meta_loss({**parameters, **moved}), list(moved.values()), allow_unused=True)
    along = [(step[name] * slope).sum() for name, slope in zip(moved, slopes, strict=True) if slope is not None]
    [worth] = torch.autograd.grad(rate * torch.stack(along).sum(), weights, retain_graph=True)
    return worth


def worth_by_difference(
    losses: Tensor, losses_at: Callable[[Parameters], Tensor], parameters: Parameters,
    meta_loss: Callable[[Parameters], Tensor], rate: float,
) -> Tensor:  # fmt: skip
    """(N,): how much the loss of each word falls when the meta loss is learnt for a step.

    To the first order that is rate x dL/dtheta . dl/dtheta as well, but with the meta gradient at theta itself: no virtual
    step, and no second derivative. At these parameters `losses_at` must give `losses`: no fresh dropout.
    """
    names = list(parameters)
    slopes = torch.autograd.grad(meta_loss(parameters), [parameters[name] for name in names], allow_unused=True)
    # they ask for a gradient as those of `losses` did: without, other kernels might draw other masks
    moved = {
        name: (parameters[name] - rate * slope).detach().requires_grad_()
        for name, slope in zip(names, slopes, strict=True)
        if slope is not None
    }
    return (losses - losses_at({**parameters, **moved})).detach()


def normalised(worth: Tensor) -> Tensor:
    """max(0, worth) with a sum of 1; 0 throughout where no word is worth anything."""
    kept = worth.clamp(min=0)
    return kept / kept.sum().clamp(min=1e-30)


def decay_weights(before: Tensor, now: Tensor, smoothing: float) -> Tensor:
    """Probabilities (N,) to draw labelled sentences by: max(loss decay, smoothing), with a sum of 1; all alike where a loss is
    not known yet."""
    decay = (before - now).nan_to_num(nan=smoothing, posinf=smoothing, neginf=smoothing).clamp(min=smoothing)
    return decay / decay.sum()
