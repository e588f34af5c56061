"""Errors that a user can cause and fix.

Every error that a user can cause is a `SequstError`; its message says where, what was found and what to do. The command line
prints the message alone and exits with `exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Unit = Literal["line", "record"]
"""What places of a file are counted in: lines, or records."""

_LONGEST = 500
"""Characters of what was found, and of what was expected: a tag may have any number."""


class SequstError(Exception):
    """Something failed: the data, the disk, the encoder, the optimisation. Of a long message the middle is left out: it may
    quote a path, or a name, of any number of characters."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 1900 else f"{message[:1200]} … {message[-600:]}")


class UsageError(SequstError):
    """The call itself is wrong: a flag, a name, a path."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One malformed place in an input file."""

    file: str
    line: int
    found: str
    expected: str
    unit: Unit = "line"

    def __str__(self) -> str:
        found, expected = (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in (self.found, self.expected))
        return f"{place(self.file, self.line, self.unit)}: found {found}; expected {expected}"


def place(file: str, number: int, unit: Unit) -> str:
    """FILE:3 for a line, FILE, record 3 for a record."""
    return f"{file}:{number}" if unit == "line" else f"{file}, record {number}"


class Malformed(Exception):
    """A malformed piece of input. The reader adds the place."""

    def __init__(self, found: str, expected: str) -> None:
        self.found, self.expected = found, expected


class DataError(SequstError):
    """Malformed input; `problems` lists every place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        more = len(self.problems) - 1
        tail = f"\n{more} more such place{'s' if more > 1 else ''}; `sequst check` lists them all" if more else ""
        super().__init__(f"{self.problems[0]}{tail}")


def shorten(value: object, limit: int = 60) -> str:
    """Quote a piece of input for a message, shortened."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        text = "a number of thousands of digits"
    clipped = text if len(text) <= limit else text[:limit] + "…"
    return ascii(clipped) if not clipped.isprintable() else repr(clipped) if isinstance(value, str) else clipped


def said(error: BaseException, limit: int = 300) -> str:
    """What an error of a library says, on one line, shortened; its type if it says nothing."""
    return " ".join(str(error)[: 2 * limit].split())[:limit] or type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str:
    """' Did you mean …?' for a name that is close to a known one, else the known names."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(known)
