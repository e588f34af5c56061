"""Which kernels are available on this machine."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from sequst.tagger.accel.layers import Layers

log = logging.getLogger(__name__)

MOST_TAGS, MOST_ROWS = 512, 4096
"""What a program of a loss sees at once: the scores of a word, and how many words each row has."""


def encoder_kernels(name: str, known: Layers, dtype: torch.dtype) -> ModuleType | None:
    """The kernels of the `varlen` or the `training` forward for a model on a GPU, where heads are of a size that they take."""
    size = known.width // known.heads
    return None if size & (size - 1) or not 16 <= size <= 128 else _tried(name, known.base.device, size, dtype)


def loss_kernels(states: Tensor, rows: int, tags: int | None = None) -> ModuleType | None:
    """The kernels of losses, where they take scores of so many rows and tags. They have first derivatives alone."""
    if not states.is_cuda or rows > MOST_ROWS or (tags or states.shape[-1]) > MOST_TAGS:
        return None
    return _tried("losses", states.device)


@functools.cache
def _tried(name: str, device: torch.device, *given: Any) -> ModuleType | None:
    """The kernels of this name where Triton is there and they run: they need a C compiler, and an Ampere GPU or newer."""
    if torch.cuda.get_device_capability(device) < (8, 0) or not importlib.util.find_spec("triton"):
        return None
    kernels = importlib.import_module(f"sequst.tagger.accel.kernels.{name}")
    try:
        with torch.cuda.device(device):
            kernels.try_out(device, *given)
    except Exception as error:  # a compiler may fail in any way
        log.warning("the %s kernels do not run, so slower paths are used (%s: %s)", name, type(error).__name__, error)
        return None
    return kernels
