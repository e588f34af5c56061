"""Optional libraries, imported where they are used."""

from __future__ import annotations

import importlib
import os
from typing import Any

from sequst.errors import UsageError


def needed(module: str, extra: str) -> Any:
    """The module, or an error that names the extra to install."""
    if module.startswith("onnxruntime"):
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # from 1.31 on it reports to its makers unless told not to
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"this needs {module.partition('.')[0]} ({error}): pip install 'sequst[{extra}]', in a clone '.[{extra}]'"
        ) from None
