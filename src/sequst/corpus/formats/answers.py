"""How the records of tools become annotated texts: a text, what people said of it, and what its offsets count.

Offsets are code points, as Python counts, or UTF-16 code units, of which an emoji has two. Label Studio counted UTF-16 units
until 2022 and counts code points since; doccano counts UTF-16 units in the browser unless a project is set to graphemes, and
passes on the code points of what was uploaded. No file says which, so the offsets themselves decide. We write code points.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sequst.corpus.formats.annotated import Annotated, Mark, Misfit, mark_of, sentences_of
from sequst.corpus.formats.records import Ids, each
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence, Source
from sequst.corpus.words import split_words
from sequst.errors import Malformed, shorten

LAST_OF_ONE_UNIT = "\uffff"


class Given(NamedTuple):
    """Offsets and type of a span as a file gives them, and what it says stands there, if it does."""

    start: Any
    end: Any
    type: Any
    said: str | None = None

    def has_numbers(self) -> bool:
        return type(self.start) is int and type(self.end) is int


@dataclass(frozen=True)
class Record:
    """A text with the id that its file gives it, and what people said of it."""

    text: str
    id: Any
    words: Offsets | None = None
    """The tool's own words."""
    answers: Sequence[list[Given]] = ()
    """The spans of each answer; none where nobody has answered yet."""
    lost: Sequence[tuple[str, str]] = ()
    """What else there is, and what is done with it."""
    left_out: bool = False
    """Whether the text is left out too."""
    called: str = "annotations"

    def needs_units(self) -> bool:
        """Whether some character has two UTF-16 code units."""
        return not self.text.isascii() and max(self.text) > LAST_OF_ONE_UNIT


def sentences_with_answers(
    objects: Iterable[tuple[Source, dict[str, Any]]],
    read: Callable[[dict[str, Any], bool], Record],
    request: Request,
    units_by: str = "",
) -> Iterator[Sentence]:
    """The sentences of objects, whose ids must differ. `read` is told whether tags are wanted.

    With `units_by`, what may count UTF-16 units, all are looked at before the first sentence is given.
    """
    with_tags = request.tag_use != "ignored"
    records: Iterable[tuple[Source, Record]]
    records = each(objects, lambda found, _, place: (place, read(found, with_tags)), request.report)
    utf16 = False
    if units_by and with_tags:
        records = list(records)
        utf16 = _counts_utf16([record for _, record in records], units_by, request)
    annotated = functools.partial(_annotated, ids=Ids(), utf16=utf16)
    return sentences_of(each(records, annotated, request.report), request)


def _annotated(record: Record, number: int, place: Source, ids: Ids, utf16: bool) -> Annotated:
    """The record with the marks of its first answer."""
    id_, lost = ids.of(record.id, number, place), list(record.lost)
    answers = [[_mark(record, given, utf16) for given in answer] for answer in record.answers]
    if any(set(marks) != set(answers[0]) for marks in answers):
        lost.append((f"{len(answers)} {record.called} that differ", "the first is kept"))
    misfits = tuple(Misfit(place, record.text, what, done) for what, done in lost)
    return Annotated(record.text, answers[0] if answers else None, id_, place, record.words, misfits, record.left_out)


def _mark(record: Record, given: Given, utf16: bool) -> Mark:
    text, (start, end, type_, said) = record.text, given
    if utf16 and given.has_numbers() and record.needs_units():
        places = _utf16_places(text)
        if start not in places or end not in places:
            past = max(start, end) > max(places)
            found = f"span {start} to {end}" + ("" if past else ", which cuts a character")
            raise Malformed(found, f"UTF-16 offsets from 0 to {max(places)}, of whole characters")
        start, end = places[start], places[end]
    mark = mark_of(text, start, end, type_)
    there = text[start:end]
    if said is not None and said.replace("\\n", " ").split() != there.replace("\\n", " ").split():
        raise Malformed(f"a region of {shorten(said)} where {shorten(there)} stands", "offsets of the text that it names")
    return mark


def _utf16_places(text: str) -> dict[int, int]:
    """The code point at every UTF-16 offset; the middle of a character has none."""
    places, at = {}, 0
    for place, character in enumerate(text):
        places[at] = place
        at += 2 if character > LAST_OF_ONE_UNIT else 1
    places[at] = len(text)
    return places


def _counts_utf16(records: list[Record], units_by: str, request: Request) -> bool:
    """Whether UTF-16 units explain more of the offsets that differ than code points do; it is told where nothing tells."""
    lead, differing = 0, 0
    for record in filter(Record.needs_units, records):
        places = _utf16_places(record.text)
        for given in (span for answer in record.answers for span in answer if span.has_numbers()):
            turned = given._replace(start=places.get(given.start, -1), end=places.get(given.end, -1))
            if turned != given:
                differing += 1
                lead += _explains(record.text, turned) - _explains(record.text, given)
    name = request.source.name
    if lead > 0:
        request.remark(f"{name}: offsets count UTF-16 code units, as {units_by} do")
    elif differing and lead == 0:
        doubt = "offsets may count code points or UTF-16 code units, and nothing tells which"
        request.remark(f"{name}: {doubt}; they are read as code points")
    return lead > 0


def _explains(text: str, given: Given) -> bool:
    """Whether the text has at these places what the file says, or else whole words."""
    if not 0 <= given.start < given.end <= len(text):
        return False
    if given.said is not None:
        return text[given.start : given.end] == given.said
    words = split_words(text)
    return given.start in {start for start, _ in words} and given.end in {end for _, end in words}
