"""What a file from outside must never do: run code, start a process, open a socket, read standard input, write elsewhere.

Python tells audit hooks of all of these. A hook cannot be removed, so one is added and watches only within `guarded`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

FORBIDDEN = {
    "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen",
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "pickle.find_class", "builtins.input",
}  # fmt: skip
CACHES = {"__pycache__", ".hypothesis"}
TEMPORARY = re.compile(r"\..+\.[^.]+\.\d+\.(tmp|old)")
"""Names that `sequst.files` gives to what is half-written."""


class Forbidden(AssertionError):
    """What was done, and where."""


class _Watch:
    def __init__(self, folder: Path) -> None:
        self.folder = os.path.realpath(folder)
        self.seen: list[str] = []


_watches: list[_Watch | None] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    watch = _watches[-1] if _watches else None
    if watch is None:
        return
    if event in FORBIDDEN:
        _forbid(watch, f"{event} {arguments}")
    elif event == "exec":
        if arguments[0].co_filename.startswith(watch.folder):
            _forbid(watch, f"code of {arguments[0].co_filename}")
    elif event == "open":
        path, _, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR) and isinstance(path, str | bytes):
            place = os.path.realpath(os.fsdecode(path))
            if not place.startswith((watch.folder, "/dev/")) and not CACHES & set(Path(place).parts):
                _forbid(watch, f"writing of {place}")


sys.addaudithook(_hook)


def _forbid(watch: _Watch, what: str) -> NoReturn:
    """Prevent it, and remember it: the code under test may turn the error into one of its own."""
    watch.seen.append(what[:1000])
    raise Forbidden(what[:1000])


class _Unread(io.TextIOBase):
    """Standard input that nobody may read."""

    def __init__(self, watch: _Watch) -> None:
        self._watch = watch

    def readline(self, *_: Any) -> NoReturn:  # type: ignore[override]
        _forbid(self._watch, "reading of standard input")

    read = readline  # type: ignore[assignment]

    @property
    def buffer(self) -> NoReturn:
        self.readline()


@contextlib.contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Fail at the end if anything forbidden was tried within; files may be written below `folder`, whose code is not run."""
    watch, stdin = _Watch(folder), sys.stdin
    _watches.append(watch)
    sys.stdin = _Unread(watch)  # type: ignore[assignment]
    try:
        yield
    finally:
        _watches.pop()
        sys.stdin = stdin
    if watch.seen:
        raise Forbidden("; ".join(watch.seen))


@contextlib.contextmanager
def unguarded() -> Iterator[None]:
    """For what a test itself needs: a process of its own."""
    _watches.append(None)
    try:
        yield
    finally:
        _watches.pop()


def require_clean(folder: Path) -> None:
    """Raise an error if anything half-written is below the folder."""
    left = [path for path in folder.rglob(".*") if TEMPORARY.fullmatch(path.name)]
    assert not left, f"half-written: {left}"


MOST = 700_000_000
"""Bytes of memory that a test may take. All imports together take 400 MB."""


@contextlib.contextmanager
def limited(most: int = MOST) -> Iterator[None]:
    """Fail at the end if memory grew by more bytes at any time within. Only Linux tells."""
    peak = Path("/proc/self/clear_refs")
    if not peak.exists():
        yield
        return
    peak.write_text("5")  # the peak is forgotten
    before = _memory("VmRSS")
    yield
    grown = _memory("VmHWM") - before
    assert grown < most, f"{grown:,} bytes of memory"


def _memory(name: str) -> int:
    """Bytes: of VmRSS now, of VmHWM at the peak."""
    [kilobytes] = re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)
