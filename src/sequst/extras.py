"""Optional libraries, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from sequst.errors import UsageError


def needed(module: str, extra: str) -> Any:
    """The module, or an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            f"this needs {module.partition('.')[0]} ({error}): pip install 'sequst[{extra}]', in a clone '.[{extra}]'"
        ) from None
