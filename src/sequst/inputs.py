"""Reading files: UTF-8 text, gzipped or not, from a file, a pipe or standard input, as numbered lines."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from sequst.errors import Problem, SequstError, UsageError
from sequst.files import as_path, require_regular

STDIN = "-"
_BUFFER = 1 << 20
_LOOK_AHEAD = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"
LONGEST_LINE = 50_000_000
"""Bytes. More than any record has, and little enough for any memory."""
LARGEST_WHOLE = 500_000_000
"""Bytes, unzipped, of a file that is kept in memory."""
_DAMAGED = (OSError, EOFError, zlib.error)

Report = Callable[[Problem], None]
"""Receives a malformed place: collects it or raises."""


def require_small(name: str, size: int) -> None:
    """Raise an error if a file that is kept in memory has more bytes than the limit."""
    if size > LARGEST_WHOLE:
        raise SequstError(
            f"{name}: more than {LARGEST_WHOLE / 10**6:g} MB, unzipped, the limit of a file that is read whole; "
            "cut it into several, or make it JSON lines, of which `predict` and `next` take any number"
        )


def require_regular_files(folder: Path) -> None:
    """Raise an error if a folder that a library reads, or that is written to later, has anything but files and folders."""
    for path in folder.rglob("*"):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise SequstError(f"{path}: not a regular file; a pipe, a socket or a device cannot be part of this folder")


def read_text(path: Path) -> str:
    """The text of a file that is kept in memory."""
    require_regular(path)
    require_small(str(path), path.stat().st_size)
    return path.read_text(encoding="utf-8")


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except (ValueError, RecursionError) as error:  # of JSON, of UTF-8, of numbers with thousands of digits
        raise SequstError(f"{path}: not valid JSON ({error})") from None


def require_one_stdin(paths: Iterable[str | None]) -> None:
    if sum(path == STDIN for path in paths) > 1:
        raise UsageError("only one of the files can be standard input (-)")


class Input:
    """A file that can be reopened, or a stream (standard input, a pipe) whose beginning is buffered for format detection."""

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.name = name or ("<stdin>" if str(path) == STDIN else str(path))
        self.path = self._path = as_path(path)
        self._stream: io.BufferedReader | None = None
        self._ahead = b""
        if str(path) == STDIN:
            if sys.stdin is None:
                raise UsageError("standard input is closed; name a file")
            self._hold_back(io.BufferedReader(cast(Any, sys.stdin.buffer), _BUFFER))
        else:
            self._check()

    def _check(self) -> None:
        if self._path.is_dir():
            raise UsageError(f"{self.name} is a directory; name a file in it")
        try:
            file = cast(io.BufferedReader, self._path.open("rb", buffering=_BUFFER))
        except FileNotFoundError:
            hub = "" if self._path.suffix else "; for a dataset of that name on the hub, say that its format is datasets"
            raise UsageError(f"{self.name}: no such file{hub}") from None
        except OSError as error:
            raise UsageError(f"{self.name}: cannot be opened ({error.strerror})") from None
        if self._path.is_file():
            file.close()
        else:
            self._hold_back(file)

    def _hold_back(self, stream: io.BufferedReader) -> None:
        stream = _gunzip(stream)
        with contextlib.suppress(*_DAMAGED):  # `lines` meets the damage again, and reports it
            while len(self._ahead) < _LOOK_AHEAD and (data := stream.read1(_LOOK_AHEAD)):
                self._ahead += data
        self._stream = io.BufferedReader(_Rewound(self._ahead, stream), _BUFFER)

    def _opened(self, stack: contextlib.ExitStack) -> io.BufferedReader:
        """The unzipped bytes, from the beginning."""
        if self._stream is not None:
            return self._stream
        return _gunzip(cast(io.BufferedReader, stack.enter_context(self._path.open("rb", buffering=_BUFFER))))

    @property
    def can_be_read_again(self) -> bool:
        return self._stream is None

    def lines(self, report: Report, whole: bool = False) -> Iterator[tuple[int, str]]:
        """(line number from 1, the line without its end); undecodable lines are reported and left out.

        With `whole`, which is for those who keep all lines, a file above the limit is an error.
        """
        with contextlib.ExitStack() as stack:
            number = size = 0
            try:
                stream = self._opened(stack)
                for number, raw in enumerate(iter(functools.partial(stream.readline, LONGEST_LINE + 1), b""), 1):
                    if len(raw) > LONGEST_LINE:
                        found = f"a line of more than {LONGEST_LINE // 10**6} MB"
                        report(Problem(self.name, number, found, "a sentence, or a record, on each line"))
                        return  # what follows may be of any size
                    size += len(raw)
                    if whole:
                        require_small(self.name, size)
                    line = self._decode(number, raw, report)
                    if line is not None:
                        yield number, line
            except _DAMAGED as error:
                report(Problem(self.name, number + 1, f"unreadable data ({error})", "a whole, undamaged file"))

    def data(self, report: Report) -> bytes:
        """All bytes, unzipped. Empty if they cannot be read, which is reported. A file above the limit is an error."""
        data = bytearray()
        try:
            with contextlib.ExitStack() as stack:
                stream = self._opened(stack)
                while piece := stream.read1(_BUFFER):
                    data += piece
                    require_small(self.name, len(data))
            return bytes(data)
        except _DAMAGED as error:
            report(Problem(self.name, 1, f"unreadable data ({error})", "a whole, undamaged file"))
            return b""

    def _decode(self, number: int, raw: bytes, report: Report) -> str | None:
        if number == 1:
            if raw.startswith(_UTF16_MARKS):
                report(Problem(self.name, 1, "UTF-16 text", "UTF-8; convert it: iconv -f UTF-16 -t UTF-8"))
                return None
            raw = raw.removeprefix(_UTF8_MARK)
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
        """The lines for format detection: all of a file, the buffered ones of a stream."""
        if self._stream is None:
            yield from (line for _, line in self.lines(lambda problem: None))
            return
        pieces = self._ahead.removeprefix(_UTF8_MARK).split(b"\n")
        cut_off = len(self._ahead) >= _LOOK_AHEAD and len(pieces) > 1
        for raw in pieces[:-1] if cut_off else pieces:
            yield raw.decode("utf-8", errors="replace").rstrip("\r")


class Place(Input):
    """An input that is not a file: a folder, or a name that a library resolves. Its reader opens it."""

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.name = name or str(path)
        self.path = Path(path)
        self._stream = None

    def lines(self, report: Report, whole: bool = False) -> Iterator[tuple[int, str]]:
        return iter(())

    def data(self, report: Report) -> bytes:
        return b""


class _Rewound(io.RawIOBase):
    """A stream that starts again from its buffered beginning."""

    def __init__(self, ahead: bytes, rest: io.BufferedReader) -> None:
        self._ahead, self._rest = memoryview(ahead), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._ahead:
            count = min(len(buffer), len(self._ahead))
            buffer[:count], self._ahead = self._ahead[:count], self._ahead[count:]
            return count
        data = self._rest.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _gunzip(stream: io.BufferedReader) -> io.BufferedReader:
    if stream.peek(2)[:2] == _GZIP_MAGIC:
        return io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=stream)), _BUFFER)
    return stream
