"""Texts with marks on their characters, and how the marks become IOB2 tags of words; what does not fit is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence, Source, require_text
from sequst.corpus.tags import Span, is_tag, spans, tags_of
from sequst.corpus.words import split_words
from sequst.errors import Malformed, shorten

POLICIES = ("error", "drop", "trim")
"""What to do with what does not fit: nothing at all is written; it is dropped; or it is made to fit where it can be."""

EXCERPT = 40
_FITTING = (
    "what tags of words can hold: types without spaces, entities that begin and end with words and share none; "
    "`sequst convert --on-conflict` can drop or trim it"
)


class Mark(NamedTuple):
    """A type and the characters it was given to, end exclusive."""

    type: str
    start: int
    end: int
    source: Source | None = None
    """Where it is said, if in a file of its own."""
    pieces: int = 1
    """Of how many it is the longest."""


class Misfit(NamedTuple):
    """Something that did not fit: where, in which text, what it was, and what was done."""

    source: Source
    text: str
    what: str
    done: str

    def __str__(self) -> str:
        return f"{self.source}: {shorten(self.text, EXCERPT)}: {self.what}; {self.done}"


@dataclass(frozen=True, slots=True)
class Annotated:
    """A text and the marks on it, or none where nobody has annotated it yet."""

    text: str
    marks: Iterable[Mark] | None
    id: str | int
    source: Source
    words: Offsets | None = None
    """The tool's own words, where it has them; ours otherwise. White space is none."""
    misfits: tuple[Misfit, ...] = ()
    """What it has besides marks."""
    left_out: bool = False
    """Whether the record as a whole is lost, and not only what `misfits` names."""


def sentences_of(records: Iterable[Annotated | Sentence], request: Request) -> Iterator[Sentence]:
    """The records as sentences. Under the policy `error` what does not fit is malformed, and its record left out."""
    for record in records:
        sentence = record if isinstance(record, Sentence) else _sentence(record, request)
        if sentence is None:
            continue
        assert sentence.source is not None
        if not sentence.words and request.tag_use != "ignored":
            request.report(sentence.source.problem("no words", "at least one word in a sentence"))
        elif sentence.tags is None and request.tag_use == "required":
            excerpt = shorten(sentence.as_text()[0], EXCERPT)
            request.report(sentence.source.problem(f"no tags for {excerpt}", "a sentence with tags, or spans that annotate it"))
        else:
            yield sentence


def _sentence(record: Annotated, request: Request) -> Sentence | None:
    """The record with its tags, if they are wanted; None where it is left out."""
    given = split_words(record.text) if record.words is None else record.words
    offsets = tuple(place for place in given if record.words is None or record.text[slice(*place)].strip())
    words = tuple(record.text[start:end] for start, end in offsets)
    tags = None
    if request.tag_use != "ignored":
        misfits = list(record.misfits)
        if record.marks is not None and not record.left_out:
            tags = tags_of(_fit(record, record.marks, offsets, request.policy, misfits.append), len(offsets))
        for misfit in misfits:
            if request.policy == "error":
                request.report(misfit.source.problem(f"{misfit.what} in {shorten(record.text, EXCERPT)}", _FITTING))
            else:
                request.lost(misfit)
        if record.left_out or (misfits and request.policy == "error"):
            return None
    return Sentence(words, tags, record.id, record.source, record.text, offsets)


def _fit(record: Annotated, marks: Iterable[Mark], offsets: Offsets, policy: str, lost: Callable[[Misfit], None]) -> list[Span]:
    """Entities in words, none of which share one: of two the longer is kept to trim, else the one that begins first."""
    fitting = [(mark, span) for mark in marks if (span := _in_words(record, mark, offsets, policy == "trim", lost))]
    if policy == "trim":
        fitting.sort(key=lambda item: (item[0].start - item[0].end, item[0].start))
    else:
        fitting.sort(key=lambda item: (item[1].start, item[0].start))
    kept: list[tuple[Mark, Span]] = []
    for mark, span in fitting:
        other = next((m for m, s in kept if s.start < span.end and span.start < s.end), None)
        if other is None:
            kept.append((mark, span))
        else:
            what = f"{_named(record, mark)} overlaps {_named(record, other)}"
            lost(Misfit(mark.source or record.source, record.text, what, "dropped, the other is kept"))
    return sorted((span for _, span in kept), key=lambda span: span.start)


def _in_words(record: Annotated, mark: Mark, offsets: Offsets, trim: bool, lost: Callable[[Misfit], None]) -> Span | None:
    """The words of a mark; None where it is dropped. White space at its ends counts for nothing."""

    def is_lost(what: str, trimmed: str | None = None) -> bool:
        """Tell what does not fit, and what becomes of it."""
        done = trimmed if trim and trimmed is not None else "dropped"
        lost(Misfit(mark.source or record.source, record.text, what, done))
        return done == "dropped"

    covered = record.text[mark.start : mark.end]
    type_, named = mark.type, f"{mark.type} {shorten(covered)}"
    if not is_tag(f"B-{type_}"):
        type_ = "_".join(type_.split())
        if is_lost(f"the type {shorten(mark.type)}, which has white space in it", f"written as {type_}"):
            return None
    if mark.pieces > 1 and is_lost(f"{named}, the longest of {mark.pieces} pieces of an entity", "only that is kept"):
        return None
    start, end = mark.end - len(covered.lstrip()), mark.start + len(covered.rstrip())
    touched = [i for i, (begin, stop) in enumerate(offsets) if begin < end and stop > start]
    if not touched:
        is_lost(f"{named} covers no word")
        return None
    first, last = touched[0], touched[-1]
    if (offsets[first][0], offsets[last][1]) != (start, end):
        cut = [shorten(record.text[slice(*offsets[i])]) for i in sorted({first, last}) if _share(offsets[i], start, end) < 1]
        first, last = _nearest(touched, offsets, start, end)
        text = shorten(record.text[offsets[first][0] : offsets[last][1]])
        what = f"{named} cuts {' and '.join(cut) or 'no word, but begins or ends between words'}"
        if is_lost(what, f"trimmed to {text}"):
            return None
    return Span(type_, first, last + 1)


def _nearest(touched: list[int], offsets: Offsets, start: int, end: int) -> tuple[int, int]:
    """(first, last) of the words that a mark covers at least half of, or else the one that it covers most of."""
    shares = {word: _share(offsets[word], start, end) for word in touched}
    kept = [word for word in touched if 2 * shares[word] >= 1] or [max(touched, key=shares.__getitem__)]
    return kept[0], kept[-1]


def _share(word: tuple[int, int], start: int, end: int) -> float:
    """How much of a word lies between two places."""
    return (min(word[1], end) - max(word[0], start)) / (word[1] - word[0])


def _named(record: Annotated, mark: Mark) -> str:
    return f"{mark.type} {shorten(record.text[mark.start : mark.end])}"


def mark_of(text: str, start: Any, end: Any, type_: Any, source: Source | None = None) -> Mark:
    """A mark, if the values can be one: numbers within the text, one after the other, and a type."""
    if type(start) is not int or type(end) is not int:
        raise Malformed(f"span {shorten(start)} to {shorten(end)}", "whole numbers, of characters from the start of the text")
    if not isinstance(type_, str) or not type_.strip():
        raise Malformed(f"{shorten(type_)} as the type of span {start} to {end}", "a string as type")
    require_text(type_)
    if not 0 <= start < end <= len(text):
        raise Malformed(f"span {start} to {end}", f"0 <= start < end <= {len(text)}, the length of the text")
    return Mark(type_, start, end, source)


def marks_of(sentence: Sentence) -> tuple[str, list[Mark]]:
    """(the text of a sentence, its entities in characters)."""
    text, offsets = sentence.as_text()
    return text, [Mark(type_, offsets[start][0], offsets[end - 1][1]) for type_, start, end in spans(sentence.tags or ())]
