"""Column files: a word a line, its fields separated by tabs or spaces, an empty line after each sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.tags import is_tag
from sequst.errors import Problem, shorten
from sequst.inputs import Report

DOCUMENT_START = "-DOCSTART-"
TagUse = Literal["required", "optional", "hidden", "ignored"]
"""Labelled files need tags and other files may have them; those of unlabelled files are for diagnosis alone, so that invalid
ones are dropped with a note; `predict` does not look at them."""

Row = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns hold the word and the tag: 0 is the first, -1 the last."""

    word: int = 0
    tag: int = -1


def fields_of(line: str) -> list[str]:
    """A row's fields. Tabs separate, or else spaces; other white space may be part of a word."""
    return line.split("\t") if "\t" in line else [field for field in line.split(" ") if field]


def is_blank(line: str) -> bool:
    return not line.strip(" \t")


def read_columns(
    name: str, lines: Iterable[tuple[int, str]], layout: Layout, tag_use: TagUse, report: Report
) -> Iterator[Sentence]:
    """Sentences with their tags as written (the scheme is turned later). A sentence with a malformed row is left out."""
    width = 0
    for ordinal, rows in enumerate(blocks(_rows(lines)), 1):
        width = width or len(rows[0][1])
        tagged = tag_use == "required" or (tag_use in ("optional", "hidden") and width > 1)
        needed = _columns_for(layout, tagged)
        whole = True
        for number, fields in rows:
            malformed = _malformed(fields, width, needed, layout, tagged)
            if malformed is not None:
                whole = False
                report(Problem(name, number, *malformed))
        if whole:
            words = tuple(fields[layout.word] for _, fields in rows)
            tags = tuple(fields[layout.tag] for _, fields in rows) if tagged else None
            yield Sentence(words, tags, ordinal, Source(name, rows[0][0], line_per_word=True))


def _rows(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Rows with their fields; none for an empty line and for -DOCSTART-, which ends a sentence as that does."""
    for number, line in lines:
        fields = [] if is_blank(line) else fields_of(line)
        yield number, [] if fields[:1] == [DOCUMENT_START] else fields


def blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of one sentence after the other; those without fields stand between sentences."""
    block: list[Row] = []
    for row in rows:
        if row[1]:
            block.append(row)
        elif block:
            yield block
            block = []
    if block:
        yield block


def _malformed(fields: list[str], width: int, needed: int, layout: Layout, tagged: bool) -> tuple[str, str] | None:
    """(found, expected) of a row that cannot be read."""
    text = "\t".join(fields)
    fits = len(fields) == width >= needed and "\r" not in text
    if fits and fields[layout.word].strip(" ") and (not tagged or is_tag(fields[layout.tag])):
        return None  # nearly all, and there may be millions
    row = shorten(text)
    if "\r" in text:
        return f"a carriage return in {row}", "lines that end with a line feed; convert it, e.g. tr '\\r' '\\n'"
    if len(fields) < needed:
        what = "a word and its tag" if tagged else "a word"
        return f"{len(fields)} column{'s' * (len(fields) != 1)}, {row}", f"at least {needed}, for {what}"
    if len(fields) != width:
        return f"{len(fields)} columns, {row}", f"{width}, as in the first row"
    if not fields[layout.word].strip(" "):
        return f"an empty word, {row}", "a word in every row"
    hint = "; if the tag is in another column, say which: --tag-column, --word-column"
    return f"{shorten(fields[layout.tag])} as the tag", f"O, B-TYPE or I-TYPE{hint}"


def _columns_for(layout: Layout, tagged: bool) -> int:
    """How many a row must have at least."""
    word, tag = (index + 1 if index >= 0 else -index for index in (layout.word, layout.tag))
    return max(word, tag, 2) if tagged else word
