"""Training states on disk: whole or not there, and never anything but tensors, numbers and text."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import torch

from sequst.files import explained


def save_state(path: Path, state: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explained(path, "free some space, then continue with --resume"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(buffer.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def load_state(path: Path) -> dict[str, Any]:
    return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
