"""Helpers for readers of records: iteration, and checked values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sequst.corpus.formats.columns import SEPARATORS
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Sentence, Source, require_short, require_text
from sequst.corpus.tags import is_tag
from sequst.errors import Malformed, shorten
from sequst.inputs import Input, Report

T = TypeVar("T")
Item = TypeVar("Item")


def each(
    items: Iterable[tuple[Source, Item]], read: Callable[[Item, int, Source], T], report: Report
) -> Iterator[tuple[Source, T]]:
    """Every place and what `read` makes of the item there and its number; of one that is malformed the problem is reported."""
    for number, (place, item) in enumerate(items, 1):
        try:
            yield place, read(item, number, place)
        except Malformed as bad:
            report(place.problem(bad.found, bad.expected))


def numbered(source: Input, items: Iterable[T]) -> Iterator[tuple[Source, T]]:
    """Items that are the records of a file."""
    return ((Source(source.name, number, unit="record"), item) for number, item in enumerate(items, 1))


def objects_in_lines(request: Request, shapes: str) -> Iterator[tuple[Source, dict[str, Any]]]:
    """(where it stands, the object) for every line that is not empty."""

    def parse(line: str, *_: Any) -> dict[str, Any]:
        try:
            return _object(json.loads(line), shapes)
        except (ValueError, RecursionError) as error:
            raise Malformed(f"invalid JSON ({error})", f"one object a line, {shapes}") from None

    name = request.source.name
    lines = ((Source(name, number), line) for number, line in request.lines() if line.strip())
    return each(lines, parse, request.report)


def objects_in_list(request: Request, shapes: str) -> Iterator[tuple[Source, dict[str, Any]]]:
    """(which record it is, the object) for all of a file that is one JSON list."""
    name = request.source.name
    text = "\n".join(line for _, line in request.source.lines(request.report, whole=True))
    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = Source(name, getattr(error, "lineno", 1))
        request.report(place.problem(f"invalid JSON ({error})", f"a whole file, a list of {shapes}"))
        records = []
    if not isinstance(records, list):
        request.report(Source(name, 1).problem(shorten(records), f"a list of {shapes}"))
        records = []
    return each(numbered(request.source, records), lambda record, *_: _object(record, shapes), request.report)


def _object(value: Any, shapes: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(shorten(value), f"an object, {shapes}")
    return value


def text_of(value: Any, what: str = "text") -> str:
    if not isinstance(value, str):
        raise Malformed(f"{what} {shorten(value)}", f"a string as {what}")
    require_text(value)
    return value


def the_text(record: dict[str, Any], name: str, shapes: str) -> str:
    """The text among the named values that a record has under `name`: that called `text`, or else the only string."""
    if name not in record:
        raise Malformed(f"the keys {keys_of(record)}", shapes)
    fields = record[name]
    if not isinstance(fields, dict):
        raise Malformed(f"{name} {shorten(fields)}", f'an object as {name}, {{"text": "..."}}')
    if "text" in fields:
        return text_of(fields["text"])
    strings = [value for key, value in fields.items() if isinstance(value, str) and key != "id"]
    if len(strings) != 1:
        raise Malformed(f"{name} with the keys {keys_of(fields)}", "the text, under the key text")
    return text_of(strings[0])


def keys_of(record: dict[str, Any]) -> str:
    return ", ".join(map(shorten, record)) or "none"


def list_of(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed(f"{what} {shorten(value)}", f"a list as {what}")
    return value


def id_of(value: Any, otherwise: int) -> str | int:
    """The id of a record, or its number where it has none."""
    if value is None:
        return otherwise
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Malformed(f"id {shorten(value)}", "a string or a number as id")
    require_text(str(value))
    return value


def is_for_judging(record: Any) -> bool:
    """Whether a record has the mark `judging`. One where it is null has not, nor has what is no object."""
    value = record.get("judging") if isinstance(record, dict) else None
    if not isinstance(value, bool | None):
        raise Malformed(f"judging {shorten(value)}", "true or false as judging")
    return bool(value)


def mark_of(sentence: Sentence) -> dict[str, Any]:
    """The mark `judging` as a part of a record; nothing if the sentence has none."""
    return {"judging": True} if sentence.judging else {}


def is_small(id_: str | int | None) -> bool:
    """Whether it is a number that a file of numbers of 64 bits can hold, or none at all."""
    return not isinstance(id_, int) or abs(id_) < 2**63


class Ids:
    """The ids that a file gives, which must all be different; a record without has its number, which may be somebody's id."""

    def __init__(self) -> None:
        self._first: dict[str | int, Source] = {}

    def of(self, value: Any, number: int, place: Source) -> str | int:
        id_ = id_of(value, number)
        first = place if value is None else self._first.setdefault(id_, place)
        if first is not place:
            raise Malformed(f"the id {shorten(id_)} again", f"an id of its own: {first} has this one")
        return id_


def words_with_tags(words: Any, tags: Any, id_: str | int, place: Source, judging: bool = False) -> Sentence:
    """A sentence of words and tags as a record gives them, or without tags where they are None."""
    for word in list_of(words, "words"):
        if not isinstance(word, str) or not word.strip(" ") or SEPARATORS.search(word):
            raise Malformed(f"{shorten(word)} among the words", "non-empty strings without tabs and line ends")
        require_text(word)
    require_short(words)
    for tag in [] if tags is None else list_of(tags, "tags"):
        if not isinstance(tag, str) or not is_tag(tag):
            raise Malformed(f"{shorten(tag)} as a tag", "O, B-TYPE or I-TYPE")
        require_text(tag)
    if tags is not None and len(tags) != len(words):
        raise Malformed(f"{len(words)} words and {len(tags)} tags", "a tag for every word")
    return Sentence(tuple(words), None if tags is None else tuple(tags), id_, place, judging=judging)
