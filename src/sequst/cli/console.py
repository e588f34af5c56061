"""Notes and errors go to standard error, results to standard output."""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from sequst.files import as_json

if TYPE_CHECKING:
    from rich.console import Console


@functools.cache
def console(stderr: bool) -> Console:
    from rich.console import Console  # which --help does without

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def safe(text: str) -> str:
    """The text without control characters of data, which could write anywhere on a terminal."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def show(result: object, **options: Any) -> None:
    console(stderr=False).print(safe(result) if isinstance(result, str) else result, **options)


def show_json(value: object) -> None:
    """In ASCII, without control characters: any terminal can show it, and any program reads the same."""
    sys.stdout.write(as_json(value, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n")


def note(message: str) -> None:
    console(stderr=True).print(safe(message), style="dim")


class LogHandler(logging.Handler):
    """Shows the library's log as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"{record.levelname.lower()}: {self.format(record)}" if record.levelno > logging.INFO else self.format(record))


def fail(message: str, code: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError:  # what cannot be written now cannot be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    console(stderr=True).print("error: ", style="bold red", end="")
    console(stderr=True).print(safe(message))
    sys.exit(code)
