"""Half precision, where a machine has it: products in bf16, all else that wants it in fp32."""

from __future__ import annotations

import contextlib

import torch

from sequst.errors import UsageError, nearest

PRECISIONS = ("fp32", "bf16")


def has_bf16(device: torch.device) -> bool:
    """Whether products of bf16 are faster there than those of fp32: it has instructions for them."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    asked = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # not in every torch
    return device.type == "cpu" and any(getattr(torch.cpu, name, bool)() for name in asked)


def require_bf16(device: torch.device, told: str, instead: str) -> None:
    """An error where the device does not compute in bf16 at all, or a CPU only slowly."""
    if not (torch.cuda.is_bf16_supported() if device.type == "cuda" else has_bf16(device)):
        kind = "GPU" if device.type == "cuda" else "CPU"
        raise UsageError(f"{told} needs a GPU or a CPU that has it, and this {kind} has not; use {instead}")


def as_in_this_thread() -> contextlib.AbstractContextManager[object]:
    """Within it another thread computes on the CPU in the precision of this one: autocast is a thread's own."""
    return torch.autocast("cpu", torch.get_autocast_dtype("cpu"), enabled=torch.is_autocast_enabled("cpu"))


def in_precision(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Within it a tagger on this device computes in `fp32` or `bf16`."""
    if precision not in PRECISIONS:
        raise UsageError(f"--precision {precision}: {nearest(precision, PRECISIONS)}")
    if precision == "fp32":
        return contextlib.nullcontext()
    require_bf16(device, f"--precision {precision}", "fp32")
    return torch.autocast(device.type, torch.bfloat16)
