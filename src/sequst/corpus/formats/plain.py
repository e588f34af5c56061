"""Plain text: a sentence a line, cut into words by the rule in `words`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sequst.corpus.sentence import Sentence, Source
from sequst.corpus.words import split_words


def sentence_from_text(text: str, id: str | int | None = None, source: Source | None = None) -> Sentence:
    offsets = tuple(split_words(text))
    words = tuple(text[start:end] for start, end in offsets)
    return Sentence(words, None, id, source, text, offsets)


def read_text(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Sentence]:
    """A sentence for every line that is not empty; offsets count from the start of the line."""
    ordinal = 0
    for number, line in lines:
        if line.strip():
            ordinal += 1
            yield sentence_from_text(line, ordinal, Source(name, number))
