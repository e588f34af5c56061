"""Texts with marks on their characters, and how the marks become IOB2 tags of words; what does not fit is reported.

Offsets are code points, as Python counts, or UTF-16 code units, of which an emoji has two. Label Studio counted UTF-16 units
until 2022 and counts code points since; doccano counts UTF-16 units in the browser unless a project is set to graphemes, and
passes on the code points of what was uploaded. No file says which, so the offsets themselves decide. We write code points.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sequst.corpus.formats.columns import SEPARATORS
from sequst.corpus.formats.records import Ids, each, id_of
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence, Source, require_short, require_text
from sequst.corpus.tags import Span, spans, tags_of
from sequst.corpus.words import split_words
from sequst.errors import Malformed, shorten

EXCERPT = 40
LAST_OF_ONE_UNIT = "\uffff"
_FITTING = (
    "submitted labels of whole words, without overlaps and with types without spaces; "
    "`sequst convert --on-conflict` can drop or trim others"
)


class Mark(NamedTuple):
    """Characters, end exclusive, and their type, as a file gives them: `checked` tells whether they can be that."""

    start: Any
    end: Any
    type: Any
    said: str | None = None
    """What the file says stands there, if it does."""
    source: Source | None = None
    """Where it is said, if in a file of its own."""
    pieces: int = 1
    """Of how many it is the longest."""

    def has_numbers(self) -> bool:
        return type(self.start) is int and type(self.end) is int


class Lost(NamedTuple):
    """What a record has besides marks, what is done with it, and where it is said, if in a file of its own."""

    what: str
    done: str = "left out"
    source: Source | None = None


class Misfit(NamedTuple):
    """Something that did not fit: where, in which text, what it was, and what was done."""

    source: Source
    text: str
    what: str
    done: str

    def __str__(self) -> str:
        return f"{self.source}: {shorten(self.text, EXCERPT)}: {self.what}; {self.done}"


@dataclass(frozen=True)
class Annotated:
    """A text with the id that its file gives it, and what people said of it."""

    text: str
    id: Any
    words: Offsets | None = None
    """The tool's own words, where it has them; ours otherwise."""
    answers: Sequence[Sequence[Mark]] = ()
    """The marks of each answer; none where nobody has annotated it yet."""
    lost: Sequence[Lost] = ()
    left_out: bool = False
    """Whether the text is left out as well."""
    called: str = "annotations"
    judging: bool = False

    def needs_units(self) -> bool:
        """Whether some character has two UTF-16 code units."""
        return not self.text.isascii() and max(self.text) > LAST_OF_ONE_UNIT


def sentences_of(
    records: Iterable[tuple[Source, Annotated | Sentence]], request: Request, units_by: str = "", unique_ids: bool = True
) -> Iterator[Sentence]:
    """The records as sentences. Under the policy `error` what does not fit is malformed, and its record left out.

    With `units_by`, what may count UTF-16 units, all are looked at before the first is given.
    """
    utf16 = False
    if units_by and request.with_tags:
        records = list(records)
        utf16 = _counts_utf16([record for _, record in records if isinstance(record, Annotated)], units_by, request)
    read = functools.partial(_sentence, request=request, ids=Ids() if unique_ids else None, utf16=utf16)
    for place, sentence in each(records, read, request.report):
        if sentence is None:
            continue
        if not sentence.words and request.with_tags:
            request.report(place.problem("no words", "at least one word in a sentence"))
        elif sentence.tags is None and request.tag_use == "required":
            excerpt = shorten(sentence.as_text()[0], EXCERPT)
            request.report(place.problem(f"no tags for {excerpt}", "a sentence with tags, or spans that annotate it"))
        else:
            yield sentence


def _sentence(
    record: Annotated | Sentence, number: int, place: Source, request: Request, ids: Ids | None, utf16: bool
) -> Sentence | None:
    """The record with its tags, if they are wanted; None where it is left out."""
    if isinstance(record, Sentence):
        return record
    id_ = id_of(record.id, number) if ids is None else ids.of(record.id, number, place)
    offsets = tuple(split_words(record.text)) if record.words is None else record.words
    words = tuple(record.text[start:end] for start, end in offsets)
    require_short(words)
    if not request.with_tags:
        return Sentence(words, None, id_, place, record.text, offsets, record.judging)
    tags, misfits = _tags(record, place, offsets, request.policy == "trim", utf16)
    for misfit in misfits:
        if request.policy == "error":
            request.report(misfit.source.problem(f"{misfit.what} in {shorten(record.text, EXCERPT)}", _FITTING))
        else:
            request.lost(misfit)
    if record.left_out or (misfits and request.policy == "error"):
        return None
    return Sentence(words, tags, id_, place, record.text, offsets, record.judging)


def _tags(
    record: Annotated, place: Source, offsets: Offsets, trim: bool, utf16: bool
) -> tuple[tuple[str, ...] | None, list[Misfit]]:
    """(tags of the first answer, or none; what does not fit)."""
    text, lost = record.text, list(record.lost)
    answers = [[checked(mark, text, utf16 and record.needs_units()) for mark in answer] for answer in record.answers]
    if any(set(marks) != set(answers[0]) for marks in answers):
        lost.append(Lost(f"{len(answers)} {record.called} that differ", "the first is kept"))
    misfits = [Misfit(source or place, text, what, done) for what, done, source in lost]
    if not answers:
        return None, misfits
    found, changed = _fit(text, answers[0], offsets, trim)
    misfits += [Misfit(mark.source or place, text, what, done) for mark, what, done in changed]
    return tags_of(found, len(offsets)), misfits


def _fit(text: str, marks: Iterable[Mark], offsets: Offsets, trim: bool) -> tuple[list[Span], list[tuple[Mark, str, str]]]:
    """(entities in words, none of which share one; every mark that did not fit, what it does, and what was done)."""
    changed: list[tuple[Mark, str, str]] = []
    fitting: list[tuple[Mark, Span]] = []
    for mark in marks:
        span, changes = _in_words(text, mark, offsets)
        changed += [(mark, what, done if trim else "dropped") for what, done in (changes if trim else changes[:1])]
        if span is not None and (trim or not changes):
            fitting.append((mark, span))
    # of two that overlap the one that comes first here is kept: the longer to trim, else the one that begins first
    fitting.sort(key=lambda item: (item[0].start - item[0].end if trim else item[1].start, item[0].start))
    kept: list[Span] = []
    owners: dict[int, Mark] = {}  # of words
    for mark, (type_, start, end) in fitting:
        other = next((owners[word] for word in range(start, end) if word in owners), None)
        if other is None:
            kept.append(Span(type_, start, end))
            owners.update(dict.fromkeys(range(start, end), mark))
        else:
            changed.append((mark, f"{_named(text, mark)} overlaps {_named(text, other)}", "dropped, the other is kept"))
    return kept, changed


def _in_words(text: str, mark: Mark, offsets: Offsets) -> tuple[Span | None, list[tuple[str, str]]]:
    """(the words of a mark, everything that had to be changed and how). White space at its ends counts for nothing.

    Of a mark that cuts words, those are taken that it covers at least half of, or else the one that it covers most of.
    """
    named, type_ = _named(text, mark), "_".join(mark.type.split())
    changes: list[tuple[str, str]] = []
    if type_ != mark.type:
        changes.append((f"the type {shorten(mark.type)}, which has white space in it", f"written as {type_}"))
    if mark.pieces > 1:
        changes.append((f"{named}, the longest of {mark.pieces} pieces of an entity", "only that is kept"))
    start, end = _stripped(text, mark.start, mark.end)
    touched = range(bisect_right(offsets, start, key=lambda word: word[1]), bisect_left(offsets, end, key=lambda word: word[0]))
    if not touched:
        return None, [*changes, (f"{named} covers no word", "dropped")]
    first, last = touched[0], touched[-1]
    if _stripped(text, offsets[first][0], offsets[last][1]) != (start, end):
        what = f"{named} cuts {shorten(text[offsets[first][0] : offsets[last][1]])}"
        shares = {i: _share(offsets[i], start, end) for i in touched}
        kept = [i for i in touched if 2 * shares[i] >= 1] or [max(touched, key=shares.__getitem__)]
        first, last = kept[0], kept[-1]
        changes.append((what, f"trimmed to {shorten(text[offsets[first][0] : offsets[last][1]])}"))
    return Span(type_, first, last + 1), changes


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The place without white space at its ends."""
    covered = text[start:end]
    return end - len(covered.lstrip()), start + len(covered.rstrip())


def _share(word: tuple[int, int], start: int, end: int) -> float:
    """The number of characters of a word between two positions."""
    return (min(word[1], end) - max(word[0], start)) / (word[1] - word[0])


def _named(text: str, mark: Mark) -> str:
    return f"{mark.type} {shorten(text[mark.start : mark.end])}"


def words_of(text: str, tokens: Iterable[tuple[int, int]]) -> Offsets:
    """The tokens of a tool, without those of white space."""
    words = tuple(place for place in tokens if text[slice(*place)].strip())
    for start, end in words:
        if SEPARATORS.search(text, start, end):
            raise Malformed(f"token {shorten(text[start:end])}", "tokens without tabs and line ends in them")
    return words


def checked(mark: Mark, text: str, utf16: bool = False) -> Mark:
    """The mark in code points, if it can be one: numbers within the text, one after the other, and a type."""
    start, end, type_, said, *_ = mark
    if not mark.has_numbers():
        raise Malformed(f"span {shorten(start)} to {shorten(end)}", "whole numbers, of characters from the start of the text")
    if utf16:
        places = _utf16_places(text)
        if start not in places or end not in places:
            most = next(reversed(places))
            past = max(start, end) > most
            found = f"span {start} to {end}" + ("" if past else ", which cuts a character")
            raise Malformed(found, f"UTF-16 offsets from 0 to {most}, of whole characters")
        start, end = places[start], places[end]
    if not isinstance(type_, str) or not type_.strip():
        raise Malformed(f"{shorten(type_)} as the type of span {start} to {end}", "a string as type")
    require_text(type_)
    if not 0 <= start < end <= len(text):
        raise Malformed(f"span {start} to {end}", f"0 <= start < end <= {len(text)}, the length of the text")
    there = text[start:end]
    if said is not None and said.replace("\\n", " ").split() != there.replace("\\n", " ").split():
        raise Malformed(f"a region of {shorten(said)} where {shorten(there)} stands", "offsets of the text that it names")
    return mark if said is None and not utf16 else mark._replace(start=start, end=end, said=None)


@functools.lru_cache(maxsize=2)
def _utf16_places(text: str) -> dict[int, int]:
    """The code point at every UTF-16 offset; the middle of a character has none."""
    places, at = {}, 0
    for place, character in enumerate(text):
        places[at] = place
        at += 2 if character > LAST_OF_ONE_UNIT else 1
    places[at] = len(text)
    return places


def _counts_utf16(records: list[Annotated], units_by: str, request: Request) -> bool:
    """Whether UTF-16 units explain more of the offsets that differ than code points do; it is told where nothing tells."""
    lead, differing = 0, 0
    for record in filter(Annotated.needs_units, records):
        places = _utf16_places(record.text)
        for mark in (mark for answer in record.answers for mark in answer if mark.has_numbers()):
            turned = mark._replace(start=places.get(mark.start, -1), end=places.get(mark.end, -1))
            if turned != mark:
                differing += 1
                lead += _explains(record.text, turned) - _explains(record.text, mark)
    name = request.source.name
    if lead > 0:
        request.remark(f"{name}: offsets count UTF-16 code units, as {units_by} do")
    elif differing and lead == 0:
        doubt = "offsets may count code points or UTF-16 code units, and nothing tells which"
        request.remark(f"{name}: {doubt}; they are read as code points")
    return lead > 0


def _explains(text: str, mark: Mark) -> bool:
    """Whether the text has at these places what the file says, or else whole words."""
    if not 0 <= mark.start < mark.end <= len(text):
        return False
    if mark.said is not None:
        return text[mark.start : mark.end] == mark.said
    starts, ends = _edges(text)
    return mark.start in starts and mark.end in ends


@functools.lru_cache(maxsize=2)
def _edges(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Where words begin, and where they end."""
    words = split_words(text)
    return frozenset(start for start, _ in words), frozenset(end for _, end in words)


def recut(sentence: Sentence, offsets: Offsets, trim: bool) -> tuple[Sentence, list[tuple[str, str]]]:
    """(the sentence as its text is read back in these words, everything that does not fit and what was done)."""
    text, marks = marks_of(sentence)
    found, changed = _fit(text, marks, offsets, trim)
    words = tuple(text[start:end] for start, end in offsets)
    tags = None if sentence.tags is None else tags_of(found, len(words))
    return replace(sentence, words=words, tags=tags, text=text, offsets=offsets), [(what, done) for _, what, done in changed]


def marks_of(sentence: Sentence) -> tuple[str, list[Mark]]:
    """(the text of a sentence, its entities in characters)."""
    text, offsets = sentence.as_text()
    return text, [Mark(offsets[start][0], offsets[end - 1][1], type_) for type_, start, end in spans(sentence.tags or ())]
