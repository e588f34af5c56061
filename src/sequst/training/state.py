"""Training states on disk: whole or not there, and never anything but tensors, numbers and text."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from sequst.files import write_bytes


def save_state(path: Path, state: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_bytes(path, buffer.getbuffer(), "free some space, then continue with --resume")


def load_state(path: Path) -> dict[str, Any]:
    return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
