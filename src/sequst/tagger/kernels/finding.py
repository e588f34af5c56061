"""Whether the fused kernels run here."""

from __future__ import annotations

import functools
import importlib.util
import logging
from typing import NamedTuple

import torch
from torch import nn

from sequst.tagger.kernels import Kernels, LearningKernels
from sequst.tagger.layers import Layers

log = logging.getLogger(__name__)


class Fused(NamedTuple):
    """The kernels of a packed forward, and those of one that learns."""

    packed: Kernels
    learning: LearningKernels


def fused_kernels(known: Layers) -> Fused | None:
    """Those for a model on a GPU, where heads are of a size that they take, and they run."""
    size = known.width // known.heads
    return None if size & (size - 1) or not 16 <= size <= 128 else _tried(known.base.device)


@functools.cache
def _tried(device: torch.device) -> Fused | None:
    """Where Triton is there and a kernel runs: it needs a C compiler, and an Ampere GPU or newer."""
    if torch.cuda.get_device_capability(device) < (8, 0) or not importlib.util.find_spec("triton"):
        return None
    from sequst.tagger.kernels import fused, fused_learning

    try:
        states = torch.ones(1, 16, device=device, dtype=torch.bfloat16)
        with torch.cuda.device(device):
            fused.add_norm(states, states, nn.LayerNorm(16, device=device), None)
    except Exception as error:  # a compiler may fail in any way
        log.warning("training and MC dropout take slower ways: Triton does not work (%s: %s)", type(error).__name__, error)
        return None
    return Fused(fused, fused_learning)
