"""How the records of tools become annotated texts: of each a text, what people said of it, and what its offsets count.

Offsets are code points, as Python counts, or UTF-16 code units, of which an emoji has two. Label Studio counted UTF-16 units
until 2022 and counts code points since; doccano counts UTF-16 units in the browser unless a project is set to graphemes, and
passes on the code points of what was uploaded. No file says which, so the offsets themselves decide. We write code points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sequst.corpus.formats.annotated import Annotated, Mark, Misfit, mark_of, sentences_of
from sequst.corpus.formats.records import Ids, each
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence, Source
from sequst.corpus.words import split_words
from sequst.errors import Malformed, shorten

_LAST_OF_ONE_UNIT = "\uffff"


class Given(NamedTuple):
    """Offsets and type of a span as a file gives them, and what it says stands there, if it does."""

    start: Any
    end: Any
    type: Any
    said: str | None = None


class Text(NamedTuple):
    """The text of a record, its id as given, and the words of the tool."""

    text: str
    id: Any
    words: Offsets | None = None


@dataclass(frozen=True)
class Answers:
    """What people said of a text."""

    given: list[list[Given]] = field(default_factory=list)
    """The spans of each answer; none where nobody has answered yet."""
    lost: list[tuple[str, str]] = field(default_factory=list)
    """What else there is, and what is done with it."""
    left_out: bool = False
    """Whether the text is left out too."""
    called: str = "annotations"


Object = dict[str, Any]


class _Record(NamedTuple):
    place: Source
    id: str | int
    text: Text
    answers: Answers


def sentences_with_answers(
    objects: Iterable[tuple[Source, Object]],
    text: Callable[[Object], Text],
    answers: Callable[[Object, Text], Answers],
    request: Request,
    units_by: str | None = None,
) -> Iterator[Sentence]:
    """The sentences of records that have different ids.

    With `units_by`, what may count UTF-16 units, all are looked at before the first is given. `answers` is asked where tags
    are wanted.
    """
    ids, with_tags = Ids(), request.tag_use != "ignored"

    def parse(object_: Object, number: int, place: Source) -> _Record:
        found = text(object_)
        id_ = ids.of(found.id, number, place)
        return _Record(place, id_, found, answers(object_, found) if with_tags else Answers())

    records: Iterable[_Record] = each(objects, parse, request.report)
    utf16 = False
    if units_by is not None and with_tags:
        records = list(records)
        utf16 = _counts_utf16(records, units_by, request)
    placed = ((record.place, record) for record in records)
    return sentences_of(each(placed, lambda record, *_: _annotated(record, utf16), request.report), request)


def _annotated(record: _Record, utf16: bool) -> Annotated:
    """The record with the marks of its first answer."""
    text, lost = record.text.text, list(record.answers.lost)
    answers = [[_mark(text, given, utf16) for given in answer] for answer in record.answers.given]
    if len({frozenset(marks) for marks in answers}) > 1:
        lost.append((f"{len(answers)} {record.answers.called} that differ", "the first is kept"))
    misfits = tuple(Misfit(record.place, text, what, done) for what, done in lost)
    marks = answers[0] if answers else None
    return Annotated(text, marks, record.id, record.place, record.text.words, misfits, record.answers.left_out)


def _mark(text: str, given: Given, utf16: bool) -> Mark:
    start, end, type_, said = given
    if utf16 and _are_numbers(given) and _has_pairs(text):
        start, end = _to_code_points(text, start, end)
    mark = mark_of(text, start, end, type_)
    there = text[start:end]
    if said is not None and said.replace("\\n", " ").split() != there.replace("\\n", " ").split():
        raise Malformed(f"a region of {shorten(said)} where {shorten(there)} stands", "offsets of the text that it names")
    return mark


def _are_numbers(given: Given) -> bool:
    return type(given.start) is int and type(given.end) is int


def _counts_utf16(records: Iterable[_Record], units_by: str, request: Request) -> bool:
    """Whether UTF-16 units explain more of the offsets that differ than code points do; it is told where nothing tells."""
    lead, differing = 0, 0
    for text, answers in ((record.text.text, record.answers) for record in records if _has_pairs(record.text.text)):
        places = _utf16_places(text)
        for given in (span for answer in answers.given for span in answer if _are_numbers(span)):
            turned = places.get(given.start), places.get(given.end)
            if turned != (given.start, given.end):
                differing += 1
                lead += _explains(text, given, *turned) - _explains(text, given, given.start, given.end)
    name = request.source.name
    if lead > 0:
        request.remark(f"{name}: offsets count UTF-16 code units, as {units_by} do")
    elif differing and lead == 0:
        doubt = "offsets may count code points or UTF-16 code units, and nothing tells which"
        request.remark(f"{name}: {doubt}; they are read as code points")
    return lead > 0


def _has_pairs(text: str) -> bool:
    """Whether some character has two UTF-16 code units."""
    return not text.isascii() and max(text) > _LAST_OF_ONE_UNIT


def _utf16_places(text: str) -> dict[int, int]:
    """The code point at every UTF-16 offset; the middle of a character has none."""
    places, at = {}, 0
    for place, character in enumerate(text):
        places[at] = place
        at += 2 if character > _LAST_OF_ONE_UNIT else 1
    places[at] = len(text)
    return places


def _to_code_points(text: str, start: int, end: int) -> tuple[int, int]:
    """Offsets in UTF-16 code units as code points."""
    places = _utf16_places(text)
    if start not in places or end not in places:
        past = max(start, end) > max(places)
        found = f"span {start} to {end}" + ("" if past else ", which cuts a character")
        raise Malformed(found, f"UTF-16 offsets from 0 to {max(places)}, of whole characters")
    return places[start], places[end]


def _explains(text: str, given: Given, start: int | None, end: int | None) -> bool:
    """Whether the text has between these places what the file says, or else whole words."""
    if start is None or end is None or not 0 <= start < end <= len(text):
        return False
    if given.said is not None:
        return text[start:end] == given.said
    words = split_words(text)
    return any(begin == start for begin, _ in words) and any(stop == end for _, stop in words)
