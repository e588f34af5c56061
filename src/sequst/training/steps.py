"""A step of training: forward, backward, clip, update."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.objective import Objective

MAX_GRADIENT_NORM = 1.0
"""Longer gradients are clipped to this norm."""


class StepResult(NamedTuple):
    """Loss, gradient norm and reported values of a step, still on the device."""

    names: tuple[str, ...]
    values: Tensor  # (2 + names,)


class Steps:
    """Steps of one phase."""

    def __init__(
        self, tagger: Tagger, objective: Objective, learners: nn.Module, optimizer: Any, accelerator: Accelerator
    ) -> None:
        self._tagger, self._objective, self._learners = tagger, objective, learners
        self._optimizer, self._accelerator = optimizer, accelerator

    def take(self, batch: Batch) -> StepResult:
        """Learn from a batch, which may be on the CPU."""
        return self._take(batch.to(self._tagger.device))

    def _take(self, batch: Batch) -> StepResult:
        with contextlib.nullcontext() if self._objective.needs_fp32 else self._accelerator.autocast():
            loss, told = self._objective.loss(self._tagger, batch)
        self._accelerator.backward(loss)
        norm = self._update()
        self._optimizer.zero_grad(set_to_none=True)
        return StepResult(tuple(told), torch.stack([value.detach().float() for value in (loss, norm, *told.values())]))

    def _update(self) -> Tensor:
        """Clip the gradients and update; returns the norm before clipping."""
        norm = self._accelerator.clip_grad_norm_(self._learners.parameters(), MAX_GRADIENT_NORM)
        self._optimizer.step()
        return norm  # type: ignore[no-any-return]
