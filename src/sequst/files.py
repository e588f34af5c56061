"""Files in and out: transparent gzip, standard input, and writes that are whole or not there at all."""

from __future__ import annotations

import contextlib
import errno
import glob
import gzip
import io
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from sequst.errors import Problem, SequstError, UsageError, shorten

STDIN = "-"
_BUFFER = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

Report = Callable[[Problem], None]
"""Takes a malformed place: either keeps it or raises."""


class Input:
    """A text file, gzipped or not, or standard input (`-`), as numbered lines of UTF-8."""

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.is_stdin = str(path) == STDIN
        self.name = name or ("<stdin>" if self.is_stdin else str(path))
        self._path = Path(path)
        self._stream: io.BufferedReader | None = None
        if self.is_stdin:
            self._stream = _gunzip(io.BufferedReader(cast(Any, sys.stdin.buffer), _BUFFER))
        else:
            self._check()

    def _check(self) -> None:
        if self._path.is_dir():
            raise UsageError(f"{self.name} is a directory; name a file in it")
        try:
            with self._path.open("rb"):
                pass
        except FileNotFoundError:
            raise UsageError(f"{self.name}: no such file") from None
        except OSError as error:
            raise UsageError(f"{self.name}: cannot be opened ({error.strerror})") from None

    def lines(self, report: Report) -> Iterator[tuple[int, str]]:
        """(line number from 1, the line without its end); undecodable lines are reported and left out."""
        with contextlib.ExitStack() as stack:
            stream = self._stream or stack.enter_context(
                _gunzip(cast(io.BufferedReader, self._path.open("rb", buffering=_BUFFER)))
            )
            number = 0
            try:
                for number, raw in enumerate(stream, 1):
                    line = self._decode(number, raw, report)
                    if line is not None:
                        yield number, line
            except (OSError, EOFError, zlib.error) as error:
                if isinstance(error, SequstError):
                    raise
                report(Problem(self.name, number + 1, f"unreadable data ({error})", "a whole, undamaged file"))

    def _decode(self, number: int, raw: bytes, report: Report) -> str | None:
        if number == 1:
            if raw.startswith(_UTF16_MARKS):
                report(Problem(self.name, 1, "UTF-16 text", "UTF-8; convert it: iconv -f UTF-16 -t UTF-8"))
                return None
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if b"\0" in raw:
            report(Problem(self.name, number, "a NUL byte", "text; is this a binary file?"))
            return None
        try:
            return raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            found = f"byte 0x{raw[error.start]:02x} at column {error.start + 1}, which is not UTF-8"
            report(Problem(self.name, number, found, "UTF-8; convert it, e.g. iconv -f LATIN1 -t UTF-8"))
            return None

    def head(self) -> Iterator[str]:
        """The lines that a guess of the format may look at, still unread: all of a file, of standard input what has come."""
        if self._stream is None:
            yield from (line for _, line in self.lines(lambda problem: None))
            return
        peeked = self._stream.peek(_BUFFER).removeprefix(b"\xef\xbb\xbf")
        for raw in peeked.split(b"\n")[: -1 if len(peeked) >= io.DEFAULT_BUFFER_SIZE else None]:
            yield raw.decode("utf-8", errors="replace").rstrip("\r")


def _gunzip(stream: io.BufferedReader) -> io.BufferedReader:
    if stream.peek(2)[:2] == _GZIP_MAGIC:
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=stream)), _BUFFER)
    return stream


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SequstError(f"{path}: not valid JSON ({error})") from None


@contextlib.contextmanager
def explained(path: Path, what_now: str = "nothing half-written was left behind") -> Iterator[None]:
    """Turn a failing write into an error that names the path and the way out."""
    try:
        yield
    except SequstError:
        raise
    except Exception as error:
        # safetensors reports a full disk as an exception of its own that only its text tells apart
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)
        if not (isinstance(error, OSError) or full or "I/O error" in str(error)):
            raise
        reason = "the disk is full or a quota is reached" if full else getattr(error, "strerror", None) or str(error)
        raise SequstError(f"cannot write {path}: {reason}; {what_now}") from error


def _temporary(path: Path) -> Path:
    """A name beside the path to write under; what killed processes left under such names is cleared away."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.*"):
        owner, kind = left.name.rsplit(".", 2)[1:]
        if kind in ("tmp", "old") and owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def atomic_text(path: str | Path) -> Iterator[IO[str]]:
    """Write a text file (gzipped where the name ends in .gz) that appears under its name only when it is whole."""
    path = Path(path)
    with explained(path):
        temporary = _temporary(path)
        try:
            with contextlib.ExitStack() as stack:
                raw: IO[bytes] = stack.enter_context(temporary.open("wb"))
                if path.suffix == ".gz":
                    raw = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=raw, filename="", mode="wb", mtime=0)))
                text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
                yield text
                text.flush()
                text.detach()
            _sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes | memoryview, what_now: str) -> None:
    """Write a file that appears under its name only when it is whole; `what_now` tells the way out where that fails."""
    with explained(path, what_now):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary(path)
        try:
            with temporary.open("wb") as file:
                file.write(data)
            _sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    with atomic_text(path) as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


@contextlib.contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Fill a folder that appears under its name only when it is whole, in place of what was there."""
    path = Path(path)
    with explained(path):
        temporary, old = _temporary(path), path.with_name(f".{path.name}.{os.getpid()}.old")
        try:
            temporary.mkdir(parents=True)
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    _sync(file)
            if path.exists() and any(path.iterdir()):
                path.rename(old)
            temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_free(folder: str | Path, flag: str) -> Path:
    """The folder, if a new result may be put there: it does not exist yet, or it is empty."""
    folder = Path(folder)
    with explained(folder, "name another folder"):
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{flag} {shorten(str(folder))} is a file; name a folder that does not exist yet")
        if folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{flag} {shorten(str(folder))} is not empty; name a folder that does not exist yet")
        parent = next(p for p in [folder.absolute(), *folder.absolute().parents] if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise SequstError(f"{flag} {shorten(str(folder))}: no permission to write in {parent}; name another folder")
    return folder
