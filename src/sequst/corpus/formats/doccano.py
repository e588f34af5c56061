"""doccano: JSON lines of `text` with `label`, a list of [start, end, type], or with `entities` and `relations`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Loss, Mark, mark_of, marks_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.offsets import Claim, Counted, counted_in, to_code_points
from sequst.corpus.formats.records import Ids, Malformed, Remark, each_of, list_of, objects_of_lines, text_of
from sequst.corpus.sentence import Sentence, Source
from sequst.errors import shorten
from sequst.inputs import Input, Report

_SHAPES = '{"text": "...", "label": [[0, 5, "..."]]}'
LABEL_KEYS = ("label", "labels", "entities", "annotations")
"""Of different versions."""


def read_doccano(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Annotated]:
    objects: Iterable[tuple[Source, dict[str, Any]]] = objects_of_lines(source, _SHAPES, report)
    counted: Counted = "code points"
    if tag_use != "ignored":
        objects = list(objects)
        claims = _claims(record for _, record in objects)
        counted = counted_in(source.name, claims, remark, ", as doccano does in the browser")
    yield from each_of(objects, functools.partial(_record, tag_use=tag_use, counted=counted), report)


def _claims(records: Iterable[dict[str, Any]]) -> Iterator[Claim]:
    """The offsets that the file gives, where they are what they should be; the reader reports those that are not."""
    for record in records:
        text = record.get("text")
        for item in _items(record) or []:
            try:
                start, end, _ = _parts(item)
            except Malformed:
                continue
            if isinstance(text, str) and type(start) is int and type(end) is int:
                yield Claim(text, start, end)


def _items(record: dict[str, Any]) -> list[Any] | None:
    """All that is labelled, under whichever key; None where there is none of them."""
    found = [record[key] for key in LABEL_KEYS if record.get(key) is not None]
    return [item for value in found for item in (value if isinstance(value, list) else [value])] if found else None


def _parts(item: Any) -> tuple[Any, Any, Any]:
    if isinstance(item, list) and len(item) == 3:
        return item[0], item[1], item[2]
    if isinstance(item, dict) and "start_offset" in item:
        return item["start_offset"], item.get("end_offset"), item.get("label")
    expected = '[0, 5, "..."] or {"start_offset": 0, "end_offset": 5, "label": "..."}, of a project for sequence labeling'
    raise Malformed(f"label {shorten(item)}", expected)


def _record(record: dict[str, Any], ordinal: int, place: Source, ids: Ids, tag_use: TagUse, counted: Counted) -> Annotated:
    text = text_of(record.get("text"))
    id_ = ids.of(record.get("id"), ordinal, place)
    items = None if tag_use == "ignored" else _items(record)
    if items is None:
        return Annotated(text, None, id_, place)
    marks: list[Mark] = []
    for start, end, type_ in map(_parts, items):
        if counted != "code points" and type(start) is int and type(end) is int:
            start, end = to_code_points(text, start, end)
        marks.append(mark_of(text, start, end, type_))
    relations = list_of(record.get("relations") or [], "relations")
    return Annotated(text, tuple(marks), id_, place, losses=(Loss("a relation", "left out"),) * len(relations))


def doccano_record(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A line of a file to import, offsets in code points; it has no place for scores."""
    text, marks = marks_of(sentence)
    record: dict[str, Any] = {"text": text} if sentence.id is None else {"id": sentence.id, "text": text}
    return record if sentence.tags is None else {**record, "label": [[mark.start, mark.end, mark.type] for mark in marks]}
