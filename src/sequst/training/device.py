"""Device and precision of a run."""

from __future__ import annotations

import os
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from sequst.tagger.encoders.shape import BILSTM
from sequst.tagger.precision import has_bf16
from sequst.tagger.tagger import pick_device
from sequst.training.settings import Settings

BF16_FROM = {"cuda": 80_000_000, "cpu": 10_000_000}
"""Parameters of a transformer from which bf16 pays: below, a step is so little arithmetic that casting takes what it saves, and
so it is in an LSTM. On two cores, by hand, a step of 4 million took 87 % of its time in fp32, one of 11 million 76 %, of 23
million 70 %."""


def resolve_precision(settings: Settings, parameters: int) -> str:
    """`fp32` or `bf16`: what the settings ask for, or what pays on this machine. Phases that bf16 would harm are in fp32 either
    way, see `Objective.needs_fp32`."""
    if settings.precision != "auto":
        return settings.precision
    device = pick_device(settings.device)
    pays = settings.encoder != BILSTM and parameters >= BF16_FROM[device.type]
    return "bf16" if pays and has_bf16(device) else "fp32"


def make_accelerator(settings: Settings, precision: str = "fp32") -> Accelerator:
    """Accelerate on the device that the settings ask for, in this precision."""
    device = pick_device(settings.device)
    if device.type == "cuda":  # the CPU's kernels are deterministic as they are
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(settings.deterministic)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # nothing here reads memory it has not written
    AcceleratorState._reset_state(reset_partial_state=True)  # it is global: another run in this process may have set it
    return Accelerator(mixed_precision="no" if precision == "fp32" else precision, cpu=device.type == "cpu")


def describe_device(accelerator: Accelerator) -> dict[str, Any]:
    """The machine, for the record."""
    precision = accelerator.mixed_precision.replace("no", "fp32")
    if accelerator.device.type == "cuda":
        return {"device": torch.cuda.get_device_name(accelerator.device), "precision": precision}
    return {"device": f"cpu, {torch.get_num_threads()} threads", "precision": precision}
