"""A sentence: words, tags or none, and its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sequst.corpus.words import split_words
from sequst.errors import Malformed, Problem, Unit, place, shorten
from sequst.files import HALVES

Offsets = tuple[tuple[int, int], ...]
LINE_BREAKS = str.maketrans("\r\n", "  ")


@dataclass(frozen=True, slots=True)
class Source:
    """The file and line (or record) a sentence begins at; column files have a line for each word."""

    file: str
    line: int
    line_per_word: bool = False
    unit: Unit = "line"

    def line_of(self, word: int) -> int:
        return self.line + word if self.line_per_word else self.line

    def __str__(self) -> str:
        return place(self.file, self.line, self.unit)

    def problem(self, found: str, expected: str, word: int = 0) -> Problem:
        """A problem at a word of the sentence."""
        return Problem(self.file, self.line_of(word), found, expected, self.unit)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with their IOB2 tags, or none. `text` and `offsets` are set where the words were cut from running text."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    id: str | int | None = None
    source: Source | None = None
    text: str | None = None
    offsets: Offsets | None = None
    judging: bool = False
    """Whether it was drawn at random to judge taggers by. Training does not learn it."""

    def __post_init__(self) -> None:
        if self.tags is not None and len(self.tags) != len(self.words):
            raise ValueError(f"{len(self.words)} words but {len(self.tags)} tags: every word needs one")

    def __len__(self) -> int:
        return len(self.words)

    def without_tags(self) -> Sentence:
        return replace(self, tags=None)

    def excerpt(self, start: int, end: int) -> str:
        """Words start to end (exclusive) as they stood in the text, or joined by spaces."""
        if self.text is not None and self.offsets is not None:
            return self.text[self.offsets[start][0] : self.offsets[end - 1][1]]
        return " ".join(self.words[start:end])

    def as_text(self) -> tuple[str, Offsets]:
        """(the text, the place of every word in it): that which the words were cut from, or the words joined by spaces."""
        if self.text is not None and self.offsets is not None:
            return self.text, self.offsets
        offsets, at = [], 0
        for word in self.words:
            offsets.append((at, at + len(word)))
            at += len(word) + 1
        return " ".join(self.words), tuple(offsets)

    def is_cut_by_rule(self) -> bool:
        """Whether our own rule cuts its text, or its words with spaces between, into these words."""
        text, offsets = self.as_text()
        return tuple(split_words(text)) == tuple(offsets)


def sentence_from_text(text: str, id: str | int | None = None, source: Source | None = None) -> Sentence:
    """The text cut into words by the rule in `words`."""
    offsets = tuple(split_words(text))
    return Sentence(tuple(text[start:end] for start, end in offsets), None, id, source, text, offsets)


LONGEST_WORD = 100_000
"""Characters. A file without spaces is no text, and would take gigabytes to be cut into sub-words."""


def require_short(words: Iterable[str]) -> None:
    """Raise an error if a word is longer than `LONGEST_WORD`."""
    if (longest := max(words, key=len, default="")) and len(longest) > LONGEST_WORD:
        raise Malformed(f"a word of {len(longest):,} characters, {shorten(longest)}", f"words of at most {LONGEST_WORD:,}")


def require_text(text: str) -> None:
    """Raise an error for NUL and lone surrogates, which JSON can contain."""
    if "\0" in text:
        raise Malformed(f"a NUL character in {shorten(text)}", "text without it")
    if not text.isascii() and HALVES.search(text):
        raise Malformed(f"half a character in {shorten(text)}", "whole characters: surrogates only in pairs")
