"""Checkpoints on disk: complete or not there; tensors, numbers and text only."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, Any, cast

import torch

from sequst.files import atomic_bytes, intact


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
    """Raises an error if the file is damaged, by the checksum of each of its parts, which torch does not look at."""
    with intact(path):
        with zipfile.ZipFile(path) as archive:
            if (part := archive.testzip()) is not None:
                raise ValueError(f"wrong checksum of {part}")
            if any(part.external_attr for part in archive.infolist()):  # torch would not read a part that is marked as a folder
                raise ValueError("wrong attributes of a part")
        return torch.load(path, map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
