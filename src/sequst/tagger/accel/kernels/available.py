"""Whether the fused kernels run here."""

from __future__ import annotations

import functools
import importlib.util
import logging
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sequst.tagger.accel.kernels import LONGEST, Site, TrainingKernels, VarlenKernels
from sequst.tagger.accel.layers import Layers

log = logging.getLogger(__name__)


class Fused(NamedTuple):
    """The kernels of the varlen forward and of the training forward."""

    varlen: VarlenKernels
    training: TrainingKernels


def fused_kernels(known: Layers, dtype: torch.dtype = torch.bfloat16) -> Fused | None:
    """Those for a model on a GPU, where heads are of a size that they take, and they run in this precision."""
    size = known.width // known.heads
    return None if size & (size - 1) or not 16 <= size <= 128 else _tried(known.base.device, size, dtype)


@functools.cache
def _tried(device: torch.device, size: int, dtype: torch.dtype) -> Fused | None:
    """Where Triton is there and kernels run: they need a C compiler, and an Ampere GPU or newer."""
    if torch.cuda.get_device_capability(device) < (8, 0) or not importlib.util.find_spec("triton"):
        return None
    from sequst.tagger.accel.kernels import training, varlen

    try:
        with torch.cuda.device(device):
            try_out(Fused(varlen, training), size, torch.zeros(1, 3 * size, device=device, dtype=dtype))
    except Exception as error:  # a compiler may fail in any way
        what = "training and MC dropout take" if dtype == torch.bfloat16 else "training in fp32 takes"
        log.warning("%s a slower way: Triton does not work (%s: %s)", what, type(error).__name__, error)
        return None
    return Fused(varlen, training)


def try_out(kernels: Fused, size: int, empty: Tensor) -> None:
    """Call what is most likely to fail: the largest kernels, of rows as long as they may be and a head of this size, and one of
    the packed forward. `empty` (1, 3 x size) is on the device."""
    qkv = empty.expand(LONGEST, -1).contiguous()
    sizes, keys = (
        torch.full((1,), LONGEST, device=empty.device, dtype=torch.int32),
        torch.zeros_like(empty[0, :2], dtype=torch.int32),
    )
    kernels.training.attention_along(qkv, qkv, sizes, 1, None, None, keys, Site(0.1, 0))
    kernels.training.attention_back(qkv[:, :size].contiguous(), qkv, sizes, 1, None, keys, Site(0.1, 0), None)
    state = empty[:, :size].contiguous()
    kernels.varlen.add_norm(state, state, nn.LayerNorm(size, device=empty.device), None)
