"""Writing files: complete or not at all. Temporary folders, of which none is left."""

from __future__ import annotations

import contextlib
import errno
import functools
import glob
import gzip
import io
import json
import os
import re
import shutil
import socket
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from sequst.errors import SequstError, UsageError, said, shorten

try:
    import fcntl
except ImportError:  # not on Windows, where two processes at one place are not noticed
    fcntl = None  # type: ignore[assignment]


HALVES = re.compile("[\ud800-\udfff]")
"""Halves of characters: Python has them in place of the bytes of names that are not UTF-8."""


def as_path(path: str | Path) -> Path:
    """The path that somebody named. An error if no file can have this name."""
    if not str(path):
        raise UsageError("a file without a name; name a file")
    try:
        os.lstat(path)
    except ValueError:
        raise UsageError(f"{shorten(str(path))}: no file can have a name with NUL in it") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{shorten(str(path))}: the name is too long for a file") from None
    return Path(path)


def as_folder(path: str | Path) -> Path:
    """The path of a model, whose tokenizer is read and written by a library that takes UTF-8 alone."""
    if HALVES.search(str(path)):
        raise UsageError(f"{shorten(str(path))}: the folder of a model needs a name in UTF-8; rename it")
    return as_path(path)


@functools.cache
def _encoder(**options: Any) -> json.JSONEncoder:
    return json.JSONEncoder(**{"ensure_ascii": False, "allow_nan": False, **options})


def as_json(value: Any, **options: Any) -> str:
    """The value as JSON. All JSON of ours is made here. It has no NaN and no infinity, which JSON does not know."""
    try:
        text = _encoder(**options).encode(value)
        return text if text.isascii() or not HALVES.search(text) else as_json(value, **{**options, "ensure_ascii": True})
    except ValueError as error:
        raise SequstError(f"a number cannot be written as JSON, which has no NaN and no infinity ({error})") from None


@contextlib.contextmanager
def intact(path: Path, what_now: str = "delete it, and --resume repeats that part") -> Iterator[None]:
    """Turn whatever goes wrong with the contents of a file of ours into an error that names it."""
    try:
        yield
    except SequstError:
        raise
    except Exception as error:
        raise SequstError(
            f"{path} is damaged or not written by sequst ({type(error).__name__}: {said(error)}); {what_now}"
        ) from error


@contextlib.contextmanager
def explained(path: Path, what_now: str = "nothing half-written was left behind") -> Iterator[None]:
    """Turn a failed write into an error that names the path and what to do."""
    try:
        yield
    except SequstError:
        raise
    except Exception as error:
        # safetensors reports a full disk as an exception of its own that only its text tells apart
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)
        if not (isinstance(error, OSError) or full or "I/O error" in str(error)):
            raise
        if isinstance(error, BrokenPipeError):
            raise
        reason = "the disk is full or a quota is reached" if full else getattr(error, "strerror", None) or str(error)
        raise SequstError(f"cannot write {path}: {reason}; {what_now}") from error


def require_regular(path: Path) -> None:
    """Raise an OSError if the path is anything but a file: a pipe could make us wait for ever. A link is followed."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "Is a folder" if path.is_dir() else "Not a regular file")


def _temporary(path: Path, kind: str = "tmp") -> Path:
    """Temporary name beside the path: .NAME.HOST.PROCESS.KIND."""
    return path.with_name(f".{path.name}.{_host()}.{os.getpid()}.{kind}")


def _host() -> str:
    return socket.gethostname().replace(".", "-")


def _clear_up(path: Path) -> None:
    """Remove temporary files that killed processes of this machine left beside the path, and restore what they had moved
    aside."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.{glob.escape(_host())}.*"):
        owner, kind = left.name.rsplit(".", 2)[1:]
        if kind not in ("tmp", "old") or not owner.isdigit() or _is_another(int(owner)):
            continue
        if kind == "old" and not path.exists():
            left.rename(path)
        elif left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()


def _is_another(process: int) -> bool:
    """Whether this is a living process other than this one."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def atomic_bytes(path: str | Path, what_now: str = "nothing half-written was left behind") -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only when it is whole; `what_now` tells the way out where that fails.

    A device or a pipe, which cannot be replaced, is written to as it comes. A link stays, and what it leads to is written.
    """
    path = as_path(path)
    with explained(path, what_now):
        if path.is_symlink():
            path = Path(os.path.realpath(path))
            if path.is_symlink():
                raise OSError(errno.ELOOP, "links that lead to each other")
        direct = path.exists() and not path.is_file()
        target = path if direct else _temporary(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_up(path)
        try:
            with target.open("wb") as file:
                yield file
            if not direct:
                _sync(target)
                target.replace(path)
        finally:
            if not direct:
                target.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_text(path: str | Path) -> Iterator[IO[str]]:
    """The same for text, gzipped where the name ends in .gz."""
    with atomic_bytes(path) as raw, contextlib.ExitStack() as stack:
        if Path(path).suffix == ".gz":
            raw = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=raw, filename="", mode="wb", mtime=0)))
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        text.detach()


def with_mark(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces of a text, after a byte order mark where it begins with a U+FEFF, which readers would take for one."""
    pieces = filter(None, pieces)
    for first in pieces:
        yield "\ufeff" + first if first.startswith("\ufeff") else first
        yield from pieces


def require_writable(path: str | Path, flag: str, read: Iterable[str | Path] = ()) -> None:
    """Raise an error before any work if the file cannot be written, or is one of the files that are `read`."""
    path = as_path(path)
    if any(_is_part_of(path, Path(source)) for source in read):
        raise UsageError(f"{flag} {shorten(str(path))} is also an input and would be overwritten; name another")
    with explained(path, "name another file"):
        if path.is_dir():
            raise UsageError(f"{flag} {shorten(str(path))} is a folder; name a file")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{flag} {shorten(str(path))}: there is no folder {path.absolute().parent}")


def _is_part_of(path: Path, source: Path) -> bool:
    """Whether a file is this one, or is in this folder. False if that cannot be determined."""
    try:
        return path.is_file() and any(each.samefile(source) for each in (path, *path.absolute().parents) if each.exists())
    except OSError:
        return False


def write_bytes(path: Path, data: bytes, what_now: str) -> None:
    """Write these bytes to a file, completely or not at all."""
    with atomic_bytes(path, what_now) as file:
        file.write(data)


def write_json(path: str | Path, value: Any) -> None:
    try:
        text = as_json(value, indent=2)
    except SequstError as error:
        raise SequstError(f"{path}: {error}") from None
    with atomic_text(path) as file:
        file.write(text + "\n")


@contextlib.contextmanager
def atomic_folder(path: str | Path, replaces: tuple[str, ...] = ()) -> Iterator[Path]:
    """Fill a folder that appears under its name only when it is whole.

    With `replaces`, names of files, it takes the place of a folder that is empty or has all of these, which mark it as ours;
    anything else that is there is an error before anything is written. A link is followed.
    """
    path = as_path(path).resolve() if as_path(path).is_symlink() else Path(path).absolute()
    with explained(path):
        temporary, old = _temporary(path), _temporary(path, "old")
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_up(path)
        if replaces:
            _require_ours(path, replaces)
        try:
            temporary.mkdir()
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    _sync(file)
            if replaces and path.exists():
                _require_ours(path, replaces)  # somebody may have put something there meanwhile
                path.rename(old)
            temporary.rename(path)  # fails where somebody has done so just now
            shutil.rmtree(old, ignore_errors=True)
        except SequstError as error:
            raise type(error)(str(error).replace(str(temporary), str(path))) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if old.exists() and not path.exists():
                old.rename(path)


def _require_ours(path: Path, marks: tuple[str, ...]) -> None:
    """Raise an error if the path exists and is neither an empty folder nor one that has the marks."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; name a folder that does not exist yet")
    missing = next((mark for mark in marks if not (path / mark).is_file()), None)
    if path.is_dir() and any(path.iterdir()) and missing is not None:
        found = f"{path} is not empty and has no {missing}"
        raise UsageError(f"{found}, so it is not replaced; name another folder, or empty this one")


def lock(path: Path, taken: str) -> IO[str]:
    """A lock that holds until it is closed or the process ends. If another process has it, an error with the message
    `taken`."""
    with explained(path):
        require_regular(path)
        file = path.open("w")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise SequstError(taken) from None
    return file


_SCRATCH = "sequst-scratch-"


class Scratch(tempfile.TemporaryDirectory[str]):
    """A temporary folder. Those that killed processes of this user left are removed first.

    It is locked as long as its process lives. The kernel holds the lock, so no other process can look like its owner, not even
    one of another container.
    """

    def __init__(self) -> None:
        _clear_scratch()
        while True:
            super().__init__(prefix=_SCRATCH)
            with contextlib.suppress(OSError):  # where folders cannot be locked, nobody removes them either
                _lock_folder(self)
            if Path(self.name).exists():
                return
            self._finalizer.detach()  # type: ignore[attr-defined]  # removed before it was locked


def _lock_folder(folder: Scratch) -> None:
    if fcntl is not None:
        descriptor = os.open(folder.name, os.O_RDONLY)
        weakref.finalize(folder, os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _clear_scratch() -> None:
    """Remove the temporary folders of this user that no process has locked."""
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*") if fcntl is not None else ():
        with contextlib.suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.getuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left)
            finally:
                os.close(descriptor)


_synced = True


@contextlib.contextmanager
def unsynced() -> Iterator[None]:
    """Do not wait for files to reach the disk: for temporary runs."""
    global _synced
    before, _synced = _synced, False
    try:
        yield
    finally:
        _synced = before


def _sync(path: Path) -> None:
    if not _synced:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_free(folder: str | Path, flag: str) -> Path:
    """The folder, which must not exist yet or be empty."""
    folder = as_path(folder)
    with explained(folder, "name another folder"):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{flag} {shorten(str(folder))} is a file; name a folder that does not exist yet")
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{flag} {shorten(str(folder))} is not empty; name a folder that does not exist yet")
        parent = next(p for p in [folder.absolute(), *folder.absolute().parents] if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise SequstError(f"{flag} {shorten(str(folder))}: no permission to write in {parent}; name another folder")
    return folder
