"""Memory that a batch leaves is there for the next one.

glibc gives the end of a heap back to the system as soon as a few megabytes of it are free, which at the end of a batch they
are, and what the next one takes is mapped in again page by page, each filled with zeros first: a twentieth of the time.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
_KEPT, _LARGE = 64 << 20, 32 << 20
"""Bytes that stay at the end of a heap, and from which on a piece of memory is not of a heap, but the system's own."""


@functools.cache
def keep_heaps() -> None:
    """For the rest of the process; nothing where another C library, or whoever started it, decides."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    with contextlib.suppress(OSError, AttributeError, TypeError):  # no such library, or no such function in it
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
