"""JSON lines: an object a line, with `words` and `tags`, or `text` and `spans` in characters."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Lost, Policy, fit, mark_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.doccano import LABEL_KEYS
from sequst.corpus.formats.records import SEPARATORS, Malformed, id_of, parse_object, require_text
from sequst.corpus.sentence import Offsets, Sentence, Source
from sequst.corpus.tags import Span, is_tag, tags_of
from sequst.corpus.words import split_words
from sequst.errors import Problem, shorten
from sequst.inputs import Report

_SHAPES = '{"words": [...], "tags": [...]} or {"text": "...", "spans": [{"start": 0, "end": 5, "type": "..."}]}'


def read_jsonl(
    name: str, lines: Iterable[tuple[int, str]], tag_use: TagUse, report: Report, policy: Policy = "error",
    lost: Lost = lambda misfit: None,
) -> Iterator[Sentence]:  # fmt: skip
    """Sentences with their tags as written (the scheme is turned later). A malformed line is reported and left out; of spans
    that do not fit the words, the policy decides."""
    ordinal = 0
    for number, line in lines:
        if not line.strip():
            continue
        ordinal += 1
        try:
            yield _sentence(parse_object(line, _SHAPES), tag_use, ordinal, Source(name, number), policy, lost)
        except Malformed as bad:
            report(Problem(name, number, bad.found, bad.expected))


def _sentence(record: dict[str, Any], tag_use: TagUse, ordinal: int, source: Source, policy: Policy, lost: Lost) -> Sentence:
    id_ = id_of(record.get("id"), ordinal)
    tags: tuple[str, ...] | None
    text: str | None = None
    offsets: Offsets | None = None
    if "words" in record:
        words = _words(record["words"])
        tags = None if tag_use == "ignored" else _tags(record.get("tags"), len(words))
    elif "text" in record:
        text = record["text"]
        if not isinstance(text, str):
            raise Malformed(f"text {shorten(text)}", "a string as text")
        require_text(text)
        offsets = tuple(split_words(text))
        words = tuple(text[start:end] for start, end in offsets)
        foreign = next((key for key in LABEL_KEYS if isinstance(record.get(key), list) and record[key]), None)
        if foreign is not None and "spans" not in record and tag_use != "ignored":
            raise Malformed(f"the key {foreign}", "spans; or name the tool that wrote the file as its format, e.g. doccano")
        given = None if tag_use == "ignored" else record.get("spans")
        if policy != "error" and isinstance(given, list):
            marks = tuple(mark_of(text, *_values(item)) for item in given)
            tags = tags_of(fit(Annotated(text, marks, id_, source), marks, offsets, policy, lost), len(offsets))
        else:
            tags = _tags_from_spans(given, text, offsets)
    else:
        raise Malformed(f"the keys {', '.join(map(shorten, record)) or 'none'}", _SHAPES)
    if not words and tag_use != "ignored":
        raise Malformed("no words", "at least one word in a sentence")
    if tags is None and tag_use == "required":
        raise Malformed("no tags", f"a labelled sentence, {_SHAPES}")
    return Sentence(words, tags, id_, source, text, offsets)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Malformed(f"words {shorten(value)}", "a list of strings as words")
    for word in value:
        if not isinstance(word, str) or not word.strip(" ") or SEPARATORS.search(word):
            raise Malformed(f"{shorten(word)} among the words", "non-empty strings without tabs and line ends")
        require_text(word)
    return tuple(value)


def _tags(value: Any, length: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise Malformed(f"tags {shorten(value)}", "a list of strings as tags")
    if len(value) != length:
        raise Malformed(f"{length} words and {len(value)} tags", "a tag for every word")
    for tag in value:
        if not isinstance(tag, str) or not is_tag(tag):
            raise Malformed(f"{shorten(tag)} as a tag", "O, B-TYPE or I-TYPE")
        require_text(tag)
    return tuple(value)


def _tags_from_spans(value: Any, text: str, offsets: Offsets) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise Malformed(f"spans {shorten(value)}", "a list of spans")
    found = sorted((_span(item, text, offsets) for item in value), key=lambda span: span.start)
    for left, right in itertools.pairwise(found):
        if right.start < left.end:
            raise Malformed(
                f"overlapping spans, {left.type} and {right.type}",
                "spans that do not share a word; `sequst convert --on-conflict` drops or trims some",
            )
    return tags_of(found, len(offsets))


def _values(item: Any) -> tuple[Any, Any, Any]:
    if isinstance(item, dict):
        return item.get("start"), item.get("end"), item.get("type", item.get("label"))
    return tuple(item) if isinstance(item, list) and len(item) == 3 else (None, None, None)


def _span(item: Any, text: str, offsets: Offsets) -> Span:
    """A span in words, from {"start", "end", "type" or "label"} or [start, end, type] in characters, end exclusive."""
    start, end, type_ = _values(item)
    if type(start) is not int or type(end) is not int or not isinstance(type_, str) or not is_tag(f"B-{type_}"):
        raise Malformed(f"span {shorten(item)}", '{"start": 0, "end": 5, "type": "..."}, the type without spaces')
    require_text(type_)
    if not 0 <= start < end <= len(text):
        raise Malformed(f"span {start} to {end}", f"0 <= start < end <= {len(text)}, the length of the text")
    covered = text[start:end]
    start, end = start + len(covered) - len(covered.lstrip()), end - len(covered) + len(covered.rstrip())
    first = next((i for i, (at, _) in enumerate(offsets) if at == start), None)
    last = next((i for i, (_, to) in enumerate(offsets) if to == end), None)
    if first is None or last is None or last < first:
        around = [text[a:b] for a, b in offsets if b > start and a < end]
        raise Malformed(f"span {shorten(covered)}, which cuts a word of {around}", "spans that begin and end with words")
    return Span(type_, first, last + 1)
