"""Which losses have a kernel."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger(__name__)

MOST_TAGS, MOST_ROWS = 512, 4096
"""What a program of a loss sees at once: the scores of a word, and how many words each row has."""


def loss_kernels(states: Tensor, rows: int, tags: int | None = None) -> Any:
    """The module `losses`, where its kernels run and take scores of so many rows and tags; else None. They have first
    derivatives alone."""
    if not states.is_cuda or rows > MOST_ROWS or (tags or states.shape[-1]) > MOST_TAGS:
        return None
    return _tried_losses(states.device)


@functools.cache
def _tried_losses(device: torch.device) -> Any:
    if torch.cuda.get_device_capability(device) < (8, 0) or not importlib.util.find_spec("triton"):
        return None
    losses = importlib.import_module("sequst.tagger.accel.kernels.losses")
    try:
        with torch.cuda.device(device):
            losses.labelled_loss(torch.zeros(1, 1, 2, device=device), torch.zeros(1, 1, device=device, dtype=torch.int64))
    except Exception as error:  # a compiler may fail in any way
        log.warning("losses take a slower path: Triton does not work (%s: %s)", type(error).__name__, error)
        return None
    return losses
