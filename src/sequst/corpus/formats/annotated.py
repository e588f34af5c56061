"""Texts with marks on their characters, and how the marks become IOB2 tags of words; what does not fit is reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sequst.corpus.formats.columns import SEPARATORS
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence, Source, require_text
from sequst.corpus.tags import Span, spans, tags_of
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
    """The tool's own words, where it has them; ours otherwise."""
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
    offsets = tuple(split_words(record.text)) if record.words is None else record.words
    words = tuple(record.text[start:end] for start, end in offsets)
    if request.tag_use == "ignored":
        return Sentence(words, None, record.id, record.source, record.text, offsets)
    tags, misfits = None, list(record.misfits)
    if record.marks is not None and not record.left_out:
        found, lost = _fit(record, record.marks, offsets, request.policy == "trim")
        tags, misfits = tags_of(found, len(offsets)), [*misfits, *lost]
    for misfit in misfits:
        if request.policy == "error":
            request.report(misfit.source.problem(f"{misfit.what} in {shorten(record.text, EXCERPT)}", _FITTING))
        else:
            request.lost(misfit)
    if record.left_out or (misfits and request.policy == "error"):
        return None
    return Sentence(words, tags, record.id, record.source, record.text, offsets)


def _fit(record: Annotated, marks: Iterable[Mark], offsets: Offsets, trim: bool) -> tuple[list[Span], list[Misfit]]:
    """(entities in words, none of which share one; what did not fit)."""
    misfits: list[Misfit] = []

    def lose(mark: Mark, what: str, done: str) -> None:
        misfits.append(Misfit(mark.source or record.source, record.text, what, done))

    fitting: list[tuple[Mark, Span]] = []
    for mark in marks:
        span, changes = _in_words(record.text, mark, offsets)
        for what, done in changes if trim else changes[:1]:
            lose(mark, what, done if trim else "dropped")
        if span is not None and (trim or not changes):
            fitting.append((mark, span))
    # of two that overlap the one that comes first here is kept: the longer to trim, else the one that begins first
    fitting.sort(key=lambda item: (item[0].start - item[0].end if trim else item[1].start, item[0].start))
    kept: list[tuple[Mark, Span]] = []
    for mark, span in fitting:
        other = next((m for m, s in kept if s.start < span.end and span.start < s.end), None)
        if other is None:
            kept.append((mark, span))
        else:
            what = f"{_named(record.text, mark)} overlaps {_named(record.text, other)}"
            lose(mark, what, "dropped, the other is kept")
    return sorted((span for _, span in kept), key=lambda span: span.start), misfits


def _in_words(text: str, mark: Mark, offsets: Offsets) -> tuple[Span | None, list[tuple[str, str]]]:
    """(the words of a mark, everything that had to be changed and how). White space at its ends counts for nothing.

    Of a mark that cuts words, those are taken that it covers at least half of, or else the one that it covers most of.
    """
    named, covered, type_ = _named(text, mark), text[mark.start : mark.end], "_".join(mark.type.split())
    changes: list[tuple[str, str]] = []
    if type_ != mark.type:
        changes.append((f"the type {shorten(mark.type)}, which has white space in it", f"written as {type_}"))
    if mark.pieces > 1:
        changes.append((f"{named}, the longest of {mark.pieces} pieces of an entity", "only that is kept"))
    start, end = mark.end - len(covered.lstrip()), mark.start + len(covered.rstrip())
    touched = [i for i, (begin, stop) in enumerate(offsets) if begin < end and stop > start]
    if not touched:
        return None, [*changes, (f"{named} covers no word", "dropped")]
    first, last = touched[0], touched[-1]
    if (offsets[first][0], offsets[last][1]) != (start, end):
        what = f"{named} cuts {shorten(text[offsets[first][0] : offsets[last][1]])}"
        shares = {i: _share(offsets[i], start, end) for i in touched}
        kept = [i for i in touched if 2 * shares[i] >= 1] or [max(touched, key=shares.__getitem__)]
        first, last = kept[0], kept[-1]
        changes.append((what, f"trimmed to {shorten(text[offsets[first][0] : offsets[last][1]])}"))
    return Span(type_, first, last + 1), changes


def _share(word: tuple[int, int], start: int, end: int) -> float:
    """How much of a word lies between two places."""
    return (min(word[1], end) - max(word[0], start)) / (word[1] - word[0])


def _named(text: str, mark: Mark) -> str:
    return f"{mark.type} {shorten(text[mark.start : mark.end])}"


def words_of(text: str, tokens: Iterable[tuple[int, int]]) -> Offsets:
    """The tokens of a tool that are more than white space."""
    words = tuple(place for place in tokens if text[slice(*place)].strip())
    for start, end in words:
        if SEPARATORS.search(text, start, end):
            raise Malformed(f"token {shorten(text[start:end])}", "tokens without tabs and line ends in them")
    return words


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
