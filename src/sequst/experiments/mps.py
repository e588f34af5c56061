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
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        own = {PIPE: str(Path(folder) / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(Path(folder) / "log")}
        for place in own.values():
            Path(place).mkdir()
        before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        try:
            _ask(control, "-d")
            try:
                yield
            finally:
                with contextlib.suppress(SequstError):  # whatever ended the work is told
                    _ask(control, given="quit\n")
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def _ask(control: str, *arguments: str, given: str = "") -> None:
    try:
        done = subprocess.run(
            [control, *arguments], input=given, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SequstError(f"--mps: {CONTROL} does not work ({error}); leave --mps out") from None
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise SequstError(f"--mps: {CONTROL} does not work ({reason}); leave --mps out")
