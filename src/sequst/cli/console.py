"""Notes and errors go to standard error, results to standard output."""

from __future__ import annotations

import functools
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console


@functools.cache
def console(stderr: bool) -> Console:
    from rich.console import Console  # which --help does without

    return Console(stderr=stderr, highlight=False, markup=False, soft_wrap=True)


def show(result: object, **options: Any) -> None:
    console(stderr=False).print(result, **options)


def note(message: str) -> None:
    console(stderr=True).print(message, style="dim")


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
    console(stderr=True).print(message)
    sys.exit(code)
