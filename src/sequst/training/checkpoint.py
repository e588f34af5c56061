"""Checkpoints on disk: complete or not there; tensors, numbers and text only."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any, cast

import torch

from sequst.files import atomic_bytes


def save_state(path: Path, state: dict[str, Any]) -> None:
    with atomic_bytes(path, "free some space, then continue with --resume") as file:
        out = _Out(file)
        try:
            torch.save(state, cast(IO[bytes], out))
        except RuntimeError:
            if out.error is None:
                raise
            raise out.error from None


class _Out:
    """What torch writes to, piece by piece: it tells of a failure, but not of which."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self._file.flush()


def load_state(path: Path) -> dict[str, Any]:
    return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
