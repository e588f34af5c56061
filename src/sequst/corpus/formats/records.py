"""What the readers of JSON share: one object a line or a list of them, and values that must be what they should."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sequst.corpus.sentence import Source
from sequst.errors import shorten
from sequst.inputs import Input, Report

SEPARATORS = re.compile("[\t\r\n\0]")
"""What no word may hold: a column file could not."""

_HALVES = re.compile("[\ud800-\udfff]")

T = TypeVar("T")

Remark = Callable[[str], None]
"""Takes something that a reader has decided, for the user to see."""


class Malformed(Exception):
    """A record that cannot be read; its reader knows where it stands."""

    def __init__(self, found: str, expected: str) -> None:
        self.found, self.expected = found, expected


def parse_object(text: str, shapes: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"invalid JSON ({error})", f"one object a line, {shapes}") from None
    if not isinstance(record, dict):
        raise Malformed(shorten(record), f"an object, {shapes}")
    return record


def objects_of_lines(source: Input, shapes: str, report: Report) -> Iterator[tuple[Source, dict[str, Any]]]:
    """(where it stands, the object) for every line that is not empty; malformed ones are reported and left out."""
    for number, line in source.lines(report):
        if line.strip():
            place = Source(source.name, number)
            try:
                yield place, parse_object(line, shapes)
            except Malformed as bad:
                report(place.problem(bad.found, bad.expected))


def objects_of_list(source: Input, shapes: str, report: Report) -> Iterator[tuple[Source, dict[str, Any]]]:
    """(which record it is, the object) for all of a file that is one JSON list."""
    text = "\n".join(line for _, line in source.lines(report))
    try:
        records = json.loads(text)
    except json.JSONDecodeError as error:
        report(Source(source.name, error.lineno).problem(f"invalid JSON ({error})", f"a whole file, a list of {shapes}"))
        return
    except (ValueError, RecursionError) as error:
        report(Source(source.name, 1).problem(f"invalid JSON ({error})", f"a list of {shapes}"))
        return
    if not isinstance(records, list):
        report(Source(source.name, 1).problem(shorten(records), f"a list of {shapes}"))
        return
    for number, record in enumerate(records, 1):
        place = Source(source.name, number, unit="record")
        if isinstance(record, dict):
            yield place, record
        else:
            report(place.problem(shorten(record), shapes))


def require_text(text: str) -> None:
    """JSON can escape halves of characters and NUL, which are no text."""
    if "\0" in text:
        raise Malformed(f"a NUL character in {shorten(text)}", "text without it")
    if not text.isascii() and _HALVES.search(text):
        raise Malformed(f"half a character in {shorten(text)}", "whole characters: surrogates only in pairs")


def text_of(value: Any, what: str = "text") -> str:
    if not isinstance(value, str):
        raise Malformed(f"{what} {shorten(value)}", f"a string as {what}")
    require_text(value)
    return value


def the_text(fields: Any, what: str) -> str:
    """The text among named values: that called `text`, or else the only one that is a string."""
    if not isinstance(fields, dict):
        raise Malformed(f"{what} {shorten(fields)}", f'an object as {what}, {{"text": "..."}}')
    if "text" in fields:
        return text_of(fields["text"])
    strings = [value for name, value in fields.items() if isinstance(value, str) and name != "id"]
    if len(strings) != 1:
        raise Malformed(f"{what} with the keys {', '.join(map(shorten, fields)) or 'none'}", "the text, under the key text")
    return text_of(strings[0])


def id_of(value: Any, otherwise: int) -> str | int:
    """The id of a record, or its number where it has none."""
    if value is None:
        return otherwise
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Malformed(f"id {shorten(value)}", "a string or a number as id")
    require_text(str(value))
    return value


def list_of(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed(f"{what} {shorten(value)}", f"a list as {what}")
    return value


def is_small(id_: str | int | None) -> bool:
    """Whether it is a number that a file of numbers of 64 bits can hold, or none at all."""
    return not isinstance(id_, int) or abs(id_) < 2**63


class Ids:
    """The ids that a file gives, which must all be different; a record without has its number, which may be somebody's id."""

    def __init__(self) -> None:
        self._first: dict[str | int, Source] = {}

    def of(self, value: Any, ordinal: int, place: Source) -> str | int:
        id_ = id_of(value, ordinal)
        first = place if value is None else self._first.setdefault(id_, place)
        if first is not place:
            raise Malformed(f"the id {shorten(id_)} again", f"an id of its own: {first} has this one")
        return id_


def each_of(
    objects: Iterable[tuple[Source, dict[str, Any]]], read: Callable[[dict[str, Any], int, Source, Ids], T], report: Report
) -> Iterator[T]:
    """What `read` makes of every object, its number and its place; of one that is malformed the problem is reported."""
    ids = Ids()
    for ordinal, (place, record) in enumerate(objects, 1):
        try:
            yield read(record, ordinal, place, ids)
        except Malformed as bad:
            report(place.problem(bad.found, bad.expected))
