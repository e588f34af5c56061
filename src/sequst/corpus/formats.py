"""Which format a file is in: as told, by its extension, or by its content; and the reason, so that a guess can be shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, get_args

from sequst.corpus.columns import DOCUMENT_START, Layout, fields_of, is_blank
from sequst.corpus.tags import is_tag
from sequst.errors import UsageError, nearest, shorten
from sequst.inputs import Input

Format = Literal["conll", "jsonl", "text"]
FORMATS: tuple[str, ...] = ("auto", *get_args(Format))

_BY_EXTENSION: dict[str, Format] = {
    ".conll": "conll",
    ".bio": "conll",
    ".tsv": "conll",
    ".jsonl": "jsonl",
}


LOOKED_AT = 10_000
"""Lines that decide whether the tag comes first."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The format of a file, the layout of its columns, and why."""

    format: Format
    layout: Layout
    reason: str

    def __str__(self) -> str:
        columns = f" (word in column {self.layout.word}, tag in column {self.layout.tag})" if self.format == "conll" else ""
        return f"{self.format}{columns}, {self.reason}"


def guess(source: Input, format: str = "auto", word_column: int | None = None, tag_column: int | None = None) -> Guess:
    """Decide how to read a file; explicit flags are never overruled."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}; {nearest(format, FORMATS)}")
    extension = PurePath(source.name.lower().removesuffix(".gz")).suffix
    chosen: Format
    if format != "auto":
        chosen, reason = format, "as told"  # type: ignore[assignment]
    elif extension in _BY_EXTENSION:
        chosen, reason = _BY_EXTENSION[extension], f"by its extension {extension}"
    else:
        chosen, reason = _by_content(source.head(), may_be_jsonl=extension != ".txt")
    layout = Layout(0 if word_column is None else word_column, -1 if tag_column is None else tag_column)
    if chosen == "conll" and word_column is None and tag_column is None:
        if _tag_comes_first(source.head()):
            layout, reason = Layout(word=1, tag=0), f"{reason}; rows begin with their tag"
    return Guess(chosen, layout, reason)


def _by_content(lines: Iterable[str], may_be_jsonl: bool) -> tuple[Format, str]:
    """Rows whose last field is always a tag are columns; JSON objects, where allowed, are JSON lines; all else is text.

    A single row needs a tab in it or an empty line behind it to be told from a sentence that ends in, say, B-52.
    """
    rows, separated = 0, False
    for number, line in enumerate(lines, 1):
        if is_blank(line):
            separated = separated or rows > 0
            continue
        fields = fields_of(line)
        if fields[0] == DOCUMENT_START:
            continue
        if may_be_jsonl and not rows and line.lstrip().startswith("{"):
            return "jsonl", f"by its content: line {number} begins with {{"
        if len(fields) < 2 or not is_tag(fields[-1]):
            return "text", f"by its content: line {number}, {shorten(line, 40)}, does not end in a tag"
        separated = separated or rows > 0 or "\t" in line
        rows += 1
    if not rows:
        return "text", "by its content: it is empty"
    return ("conll", "by its content: every row ends in a tag") if separated else ("text", "by its content: a single line")


def _tag_comes_first(lines: Iterable[str]) -> bool:
    """Whether most rows begin with a tag, and more than end in one; malformed rows are for the reader to report."""
    rows = first = last = 0
    for line in itertools.islice(lines, LOOKED_AT):
        fields = [] if is_blank(line) else fields_of(line)
        if len(fields) > 1 and fields[0] != DOCUMENT_START:
            rows += 1
            first += is_tag(fields[0])
            last += is_tag(fields[-1])
    return 2 * first > rows and first > last
