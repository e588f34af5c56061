"""Several processes on one GPU: side by side, by NVIDIA's MPS, in place of by turns."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sequst.errors import SequstError, UsageError

CONTROL = "nvidia-cuda-mps-control"
PIPE = "CUDA_MPS_PIPE_DIRECTORY"
_PATIENCE = 60.0


@contextlib.contextmanager
def side_by_side(device: str, engine: str) -> Iterator[None]:
    """Within it processes that are started here share a GPU through a server of their own, which ends with it."""
    import torch

    if engine != "local":
        raise UsageError(f"--mps shares the GPU of this machine; with --engine {engine}, start a server on every machine")
    if device == "cpu" or not torch.cuda.is_available():
        raise UsageError("--mps shares a GPU, and none is used here; leave it out")
    if os.environ.get(PIPE):
        raise UsageError(f"--mps starts a server, and {PIPE} names one that is there already, which is used; leave --mps out")
    control = shutil.which(CONTROL)
    if control is None:
        raise UsageError(f"--mps needs {CONTROL}, which comes with NVIDIA's driver on Linux; leave it out")
    with tempfile.TemporaryDirectory(prefix="mps-", ignore_cleanup_errors=True) as folder:
        own = {PIPE: str(Path(folder) / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(Path(folder) / "log")}
        for place in own.values():
            Path(place).mkdir()
        os.environ.update(own)
        try:
            _ask(control, Path(folder), "-d")
            yield
        finally:
            with contextlib.suppress(SequstError):  # whatever ended the work is told
                _ask(control, Path(folder), given="quit -t 10\n")
            for name in own:
                del os.environ[name]


def _ask(control: str, folder: Path, *arguments: str, given: str = "") -> None:
    """Its words go to a file, not to a pipe, which a server that it starts would keep open. Which GPUs are seen, clients say: a
    server that heard of it would number them anew."""
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    with (folder / "told").open("w+") as told:
        try:
            done = subprocess.run(
                [control, *arguments], input=given, text=True, stdout=told, stderr=told, check=False, timeout=_PATIENCE,
                env=environment,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SequstError(f"--mps: {CONTROL} does not work ({error}); leave --mps out") from None
        if done.returncode:
            told.seek(0)
            reason = " ".join(told.read().split()) or f"exit code {done.returncode}"
            raise SequstError(f"--mps: {CONTROL} does not work ({reason}); leave --mps out")
