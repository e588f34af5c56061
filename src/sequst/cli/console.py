"""Where words for people go: notes and errors to standard error, results to standard output."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

from rich.console import Console

notes = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
results = Console(highlight=False, markup=False, soft_wrap=True)


def note(message: str) -> None:
    notes.print(message, style="dim")


class LogHandler(logging.Handler):
    """Shows the library's log as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"{record.levelname.lower()}: {self.format(record)}" if record.levelno > logging.INFO else self.format(record))


def fail(message: str, code: int) -> NoReturn:
    try:
        sys.stdout.flush()
    except OSError:  # what cannot be written now cannot be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    notes.print("error: ", style="bold red", end="")
    notes.print(message)
    sys.exit(code)
