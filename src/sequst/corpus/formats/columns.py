"""Column files: one word a line, fields separated by tabs or spaces, an empty line after each sentence."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sequst.corpus.formats.registry import Layout, Request
from sequst.corpus.sentence import LONGEST_WORD, Sentence, Source
from sequst.corpus.tags import is_tag
from sequst.errors import Problem, SequstError, shorten
from sequst.files import atomic_text, with_mark

DOCUMENT_START = "-DOCSTART-"
SEPARATORS = re.compile("[\t\r\n\0]")
"""Characters that a word in a column file cannot contain."""

Row = tuple[int, list[str]]


def fields_of(line: str) -> list[str]:
    """A row's fields; none for an empty line and for -DOCSTART-, which ends a sentence as that does.

    Tabs separate, or else spaces; other white space may be part of a word.
    """
    if not line.strip(" \t"):
        return []
    fields = line.split("\t") if "\t" in line else [field for field in line.split(" ") if field]
    return [] if fields[0] == DOCUMENT_START else fields


def read(request: Request) -> Iterator[Sentence]:
    """Sentences with their tags as written (the scheme is turned later). A sentence with a malformed row is left out."""
    name, layout, tag_use = request.source.name, request.layout, request.tag_use
    width = 0
    lines = request.lines()
    for ordinal, rows in enumerate(blocks((number, fields_of(line)) for number, line in lines), 1):
        width = width or len(rows[0][1])
        tagged = tag_use == "required" or (tag_use in ("optional", "hidden") and width > 1)
        problems = list(_problems(name, rows, width, layout, tagged))
        if problems:
            for problem in problems:
                request.report(problem)
        else:
            words = tuple(fields[layout.word] for _, fields in rows)
            tags = tuple(fields[layout.tag] for _, fields in rows) if tagged else None
            yield Sentence(words, tags, ordinal, Source(name, rows[0][0], line_per_word=True))


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


def _problems(name: str, rows: list[Row], width: int, layout: Layout, tagged: bool) -> Iterator[Problem]:
    """Problems of malformed rows."""
    word, tag = (index + 1 if index >= 0 else -index for index in (layout.word, layout.tag))
    needed = max(word, tag, 2) if tagged else word
    for number, fields in rows:
        row = "\t".join(fields)
        if "\r" in row:
            found, expected = "a carriage return in {}", "lines that end with a line feed; convert it, e.g. tr '\\r' '\\n'"
        elif len(fields) < needed:
            found = f"{len(fields)} column{'s' * (len(fields) != 1)}, {{}}"
            expected = f"at least {needed}, for {'a word and its tag' if tagged else 'a word'}"
        elif len(fields) != width:
            found, expected = f"{len(fields)} columns, {{}}", f"{width}, as in the first row"
        elif not fields[layout.word].strip(" "):
            found, expected = "an empty word, {}", "a word in every row"
        elif len(fields[layout.word]) > LONGEST_WORD:
            found, expected = "a word of too many characters, {}", f"words of at most {LONGEST_WORD:,}"
        elif tagged and not is_tag(fields[layout.tag]):
            row, found = fields[layout.tag], "{} as the tag"
            expected = "O, B-TYPE or I-TYPE; if the tag is in another column, say which: --tag-column, --word-column"
        else:
            continue
        yield Problem(name, number, found.format(shorten(row)), expected)


def no_columns(words: Sequence[str], tagged: bool = True) -> str:
    """Why a column file cannot hold the words. Empty if it can."""
    for word in words:
        if SEPARATORS.search(word):
            return f"the word {shorten(word)}, which has a tab, a line end or NUL in it"
        if word == DOCUMENT_START:
            return f"the word {DOCUMENT_START}, which columns set between documents"
        if not word.strip(" "):
            return "an empty word"
        if not tagged and " " in word:
            return f"the word {shorten(word)}, which without a tag cannot be told from two columns"
    return ""


def conll_block(words: Sequence[str], *columns: Sequence[str]) -> str:
    """The rows of one sentence, `word<TAB>tag`, and the empty line after it; nothing for a sentence without words."""
    why = no_columns(words, tagged=bool(columns))
    if why:
        raise SequstError(f"a column file cannot hold {why}; write JSON lines instead")
    return "\n".join(map("\t".join, zip(words, *columns, strict=True))) + "\n\n" if words else ""


def write_conll(path: str | Path, sentences: Iterable[Sentence]) -> None:
    def block(number: int, sentence: Sentence) -> str:
        try:
            return conll_block(sentence.words, *([] if sentence.tags is None else [sentence.tags]))
        except SequstError as error:
            raise SequstError(f"{path}: sentence {number}: {error}; nothing was written") from None

    with atomic_text(path) as file:
        file.writelines(with_mark(itertools.starmap(block, enumerate(sentences, 1))))


write = write_conll
