"""What learning a word is worth: weights from a meta-gradient (Ren et al. 2018, as MetaST uses it)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.autograd import forward_ad

Parameters = Mapping[str, Tensor]
Slopes = Callable[[Parameters], Mapping[str, Tensor]]
"""The gradient of the meta loss at these parameters, in each that it depends on."""


def slopes_of(loss: Tensor, at: Parameters) -> dict[str, Tensor]:
    """The gradient of a loss in each parameter that it depends on."""
    found = torch.autograd.grad(loss, list(at.values()), allow_unused=True)
    return {name: slope for name, slope in zip(at, found, strict=True) if slope is not None}


def worth_of_words(losses: Tensor, parameters: Parameters, meta_slopes: Slopes, rate: float) -> Tensor:
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
    slopes = meta_slopes(_moved(parameters, step, rate))
    along = [(gradient * slopes[name]).sum() for name, gradient in step.items() if name in slopes]
    [worth] = torch.autograd.grad(rate * torch.stack(along).sum(), weights, retain_graph=True)
    return worth


def worth_by_tangent(
    losses_at: Callable[[Parameters], Tensor], counted: Tensor, parameters: Parameters, meta_slopes: Slopes, rate: float
) -> Tensor:
    """The same, (B, W) for losses (B, W) of which some are `counted`, without a second derivative.

    dl/dtheta along one direction, that of the meta gradient, is what forward-mode differentiation finds for all words at once:
    a forward that carries how its states change. `losses_at` must give the same at the same parameters: no fresh dropout.
    """
    mean = torch.where(counted, losses_at(parameters), 0.0).sum() / counted.sum().clamp(min=1)
    step = slopes_of(mean, parameters)
    slopes = meta_slopes(_moved(parameters, step, rate))
    with forward_ad.dual_level():
        along = {
            name: forward_ad.make_dual(parameters[name].detach(), slope)  # type: ignore[no-untyped-call]
            for name, slope in slopes.items()
        }
        found = forward_ad.unpack_dual(losses_at({**parameters, **along})).tangent  # type: ignore[no-untyped-call]
    return torch.zeros_like(counted, dtype=torch.float32) if found is None else rate * torch.where(counted, found, 0.0)


@torch.no_grad()
def _moved(parameters: Parameters, slopes: Mapping[str, Tensor], rate: float) -> dict[str, Tensor]:
    """The parameters after a step down these slopes, as a new beginning."""
    ends = torch._foreach_add([parameters[name] for name in slopes], [slopes[name].detach() for name in slopes], alpha=-rate)
    return {**parameters, **{name: end.requires_grad_() for name, end in zip(slopes, ends, strict=True)}}


def normalised(worth: Tensor) -> Tensor:
    """max(0, worth) with a sum of 1; 0 throughout where no word is worth anything."""
    kept = worth.clamp(min=0)
    return kept / kept.sum().clamp(min=1e-30)


def decay_weights(before: Tensor, now: Tensor, smoothing: float) -> Tensor:
    """Probabilities (N,) to draw labelled sentences by: max(loss decay, smoothing), with a sum of 1; all alike where a loss is
    not known yet."""
    decay = (before - now).nan_to_num(nan=smoothing, posinf=smoothing, neginf=smoothing).clamp(min=smoothing)
    return decay / decay.sum()
