"""Plain text: one sentence a line, cut into words by the rule in `words`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Sentence, Source, require_short, sentence_from_text
from sequst.errors import Malformed
from sequst.files import atomic_text, with_mark


def read(request: Request) -> Iterator[Sentence]:
    """A sentence for every line that is not empty; offsets count from the start of the line."""
    lines = ((number, line) for number, line in request.lines() if line.strip())
    for ordinal, (number, line) in enumerate(lines, 1):
        place = Source(request.source.name, number)
        sentence = sentence_from_text(line, ordinal, place)
        try:
            require_short(sentence.words)
        except Malformed as bad:
            request.report(place.problem(bad.found, bad.expected))
        else:
            yield sentence


def write(path: Path, sentences: Iterable[Sentence]) -> None:
    with atomic_text(path) as file:
        file.writelines(with_mark(sentence.as_text()[0] + "\n" for sentence in sentences))
