"""The mean of a tagger's weights over the last steps of a phase, which is steadier than the weights of any one step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from sequst.tagger.tagger import Tagger


class Averaged:
    """An exponential moving average of the weights: of each step it keeps `decay`, and of the first ones less, so that where a
    phase began weighs no more than any other step."""

    def __init__(self, tagger: Tagger, decay: float) -> None:
        self._weights = [weight.detach() for weight in tagger.parameters()]
        self._means = [weight.clone() for weight in self._weights]
        self._decay, self._steps = decay, 0

    @torch.no_grad()
    def took_step(self) -> None:
        self._steps += 1
        kept = min(self._decay, (self._steps - 1) / self._steps)
        torch._foreach_lerp_(self._means, self._weights, 1.0 - kept)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it the tagger has the averaged weights."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def settle(self) -> None:
        """Leave the tagger with the averaged weights."""
        torch._foreach_copy_(self._weights, self._means)

    @torch.no_grad()
    def _exchange(self) -> None:
        own = [weight.clone() for weight in self._weights]
        torch._foreach_copy_(self._weights, self._means)
        torch._foreach_copy_(self._means, own)

    def state(self) -> dict[str, list[Tensor] | int]:
        return {"means": self._means, "steps": self._steps}

    def restore(self, state: dict[str, list[Tensor] | int]) -> None:
        means, steps = state["means"], state["steps"]
        assert isinstance(means, list)
        assert isinstance(steps, int)
        torch._foreach_copy_(self._means, [mean.to(own.device) for mean, own in zip(means, self._means, strict=True)])
        self._steps = steps
