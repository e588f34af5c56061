"""bf16: products in half precision, everything else in fp32."""

from __future__ import annotations

import contextlib

import torch

from sequst.errors import UsageError, nearest

PRECISIONS = ("fp32", "bf16")


def has_bf16(device: torch.device) -> bool:
    """Whether the device has instructions for bf16, so that it is faster than fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # not in every torch
    return device.type == "cpu" and any(getattr(torch.cpu, name, bool)() for name in asked)


def require_bf16(device: torch.device, told: str, instead: str) -> None:
    """Raise an error if the device has no bf16, or a CPU computes it slowly."""
    if not (torch.cuda.is_bf16_supported() if device.type == "cuda" else has_bf16(device)):
        kind = "GPU" if device.type == "cuda" else "CPU"
        raise UsageError(f"{told}: this {kind} has no bf16; use {instead}")


def as_in_this_thread() -> contextlib.AbstractContextManager[object]:
    """Context in which another thread computes in this thread's precision: autocast is per thread."""
    return torch.autocast("cpu", torch.get_autocast_dtype("cpu"), enabled=torch.is_autocast_enabled("cpu"))


def in_precision(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Context in which a tagger on this device computes in `fp32` or `bf16`."""
    if precision not in PRECISIONS:
        raise UsageError(f"--precision {precision}: {nearest(precision, PRECISIONS)}")
    if precision == "fp32":
        return contextlib.nullcontext()
    require_bf16(device, f"--precision {precision}", "fp32")
    return torch.autocast(device.type, torch.bfloat16)
