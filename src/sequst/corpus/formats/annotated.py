"""Records of annotation tools, and how their marks become IOB2 tags of words; what does not fit is reported, never dropped in
silence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.records import Malformed, require_text
from sequst.corpus.sentence import Offsets, Sentence, Source
from sequst.corpus.tags import Span, is_tag, spans, tags_of
from sequst.corpus.words import split_words
from sequst.errors import UsageError, nearest, shorten
from sequst.inputs import Report

Policy = Literal["error", "drop", "trim"]
POLICIES: tuple[str, ...] = get_args(Policy)
"""What to do with what does not fit: nothing at all is written; it is dropped; or it is made to fit where it can be."""

EXCERPT = 40


class Mark(NamedTuple):
    """A type and the characters it was given to, end exclusive."""

    type: str
    start: int
    end: int
    source: Source | None = None
    """Where it is said, if in a file of its own."""
    pieces: int = 1
    """Of how many it is the longest."""


class Loss(NamedTuple):
    """What a record has besides marks that fit, and what becomes of it where that is allowed."""

    what: str
    done: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Annotated:
    """A text and the marks on it, or none where nobody has annotated it yet."""

    text: str
    marks: tuple[Mark, ...] | None
    id: str | int
    source: Source
    words: Offsets | None = None
    """The tool's own words, where it has them; ours otherwise."""
    losses: tuple[Loss, ...] = ()
    left_out: bool = False
    """Whether the record as a whole is lost, and not only what `losses` names."""


class Misfit(NamedTuple):
    """Something that did not fit: where, in which text, what it was, and what was done."""

    source: Source
    text: str
    what: str
    done: str

    def __str__(self) -> str:
        return f"{self.source}: {shorten(self.text, EXCERPT)}: {self.what}; {self.done}"


Lost = Callable[[Misfit], None]
"""Takes what did not fit."""


def require_policy(name: str, flag: str) -> Policy:
    if name not in POLICIES:
        raise UsageError(f"{flag} {name}: {nearest(name, POLICIES)}")
    return name  # type: ignore[return-value]


def sentences_of(
    records: Iterable[Annotated], tag_use: TagUse, policy: Policy, report: Report, lost: Lost
) -> Iterator[Sentence]:
    """The records as sentences. Under `error` what does not fit is reported as malformed, and its record left out."""
    for record in records:
        misfits: list[Misfit] = []
        offsets = tuple(split_words(record.text)) if record.words is None else record.words
        words = tuple(record.text[start:end] for start, end in offsets)
        tags = None
        if tag_use != "ignored":
            misfits += [Misfit(loss.source or record.source, record.text, loss.what, loss.done) for loss in record.losses]
            if record.marks is not None and not record.left_out:
                tags = tags_of(fit(record, record.marks, offsets, policy, misfits.append), len(offsets))
        for misfit in misfits:
            if policy == "error":
                what_to_do = "; `sequst convert --on-conflict` can drop or trim it"
                report(misfit.source.problem(f"{misfit.what} in {shorten(record.text, EXCERPT)}", _FITTING + what_to_do))
            else:
                lost(misfit)
        if (misfits and policy == "error") or (record.left_out and tag_use != "ignored"):
            continue
        if not words and tag_use != "ignored":
            report(record.source.problem("no words", "at least one word in a text"))
        elif tags is None and tag_use == "required":
            report(record.source.problem(f"no annotation of {shorten(record.text, EXCERPT)}", "an annotated text"))
        else:
            yield Sentence(words, tags, record.id, record.source, record.text, offsets)


_FITTING = "what tags of words can hold: entities that begin and end with words and share none"


def fit(record: Annotated, marks: Iterable[Mark], offsets: Offsets, policy: Policy, lost: Lost) -> list[Span]:
    """Entities in words, none of which share one."""
    fitting: list[tuple[Mark, Span]] = []
    for mark in marks:
        span = _in_words(record, mark, offsets, policy, lost)
        if span is not None:
            fitting.append((mark, span))
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


def _in_words(record: Annotated, mark: Mark, offsets: Offsets, policy: Policy, lost: Lost) -> Span | None:
    """The words of a mark. One that cuts a word is dropped, or trimmed to the nearest edges: to the words that it covers at
    least half of, or else the one that it covers most of. White space at its ends counts for nothing."""
    source, type_ = mark.source or record.source, mark.type
    if not is_tag(f"B-{type_}"):
        type_ = "_".join(type_.split())
        done = f"written as {type_}" if policy == "trim" and type_ else "dropped"
        lost(Misfit(source, record.text, f"the type {shorten(mark.type)}, which has white space in it", done))
        if done == "dropped":
            return None
    covered = record.text[mark.start : mark.end]
    if mark.pieces > 1:
        done = "only that is kept" if policy == "trim" else "dropped"
        lost(Misfit(source, record.text, f"{_named(record, mark)}, the longest of {mark.pieces} pieces of an entity", done))
        if done == "dropped":
            return None
    start, end = mark.start + len(covered) - len(covered.lstrip()), mark.end - len(covered) + len(covered.rstrip())
    touched = [i for i, (begin, stop) in enumerate(offsets) if begin < end and stop > start]
    if not touched:
        lost(Misfit(source, record.text, f"{_named(record, mark)} covers no word", "dropped"))
        return None
    if offsets[touched[0]][0] == start and offsets[touched[-1]][1] == end:
        return Span(type_, touched[0], touched[-1] + 1)
    ends = dict.fromkeys((touched[0], touched[-1]))
    cut = [record.text[slice(*offsets[i])] for i in ends if _share(offsets[i], start, end) < 1]
    what = f"{_named(record, mark)} cuts {' and '.join(map(shorten, cut)) or 'no word, but begins or ends between words'}"
    if policy != "trim":
        lost(Misfit(source, record.text, what, "dropped"))
        return None
    kept = [i for i in touched if 2 * _share(offsets[i], start, end) >= 1]
    kept = kept or [max(touched, key=lambda i: _share(offsets[i], start, end))]
    text = record.text[offsets[kept[0]][0] : offsets[kept[-1]][1]]
    lost(Misfit(source, record.text, what, f"trimmed to {shorten(text)}"))
    return Span(type_, kept[0], kept[-1] + 1)


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
