"""doccano: JSON lines of `text` with `label`, a list of [start, end, type], or with `entities` and `relations`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Lost, Mark, marks_of, sentences_of
from sequst.corpus.formats.records import each, is_for_judging, list_of, mark_of, objects_in_lines, text_of
from sequst.corpus.formats.registry import LABEL_KEYS, Request
from sequst.corpus.sentence import Sentence
from sequst.errors import Malformed, shorten


def read(request: Request) -> Iterator[Sentence]:
    objects = objects_in_lines(request, '{"text": "...", "label": [[0, 5, "..."]]}')
    read = functools.partial(_record, with_tags=request.with_tags)
    return sentences_of(each(objects, read, request.report), request, units_by="browsers")


def _record(found: dict[str, Any], *_: Any, with_tags: bool) -> Annotated:
    """All that is labelled, under whichever key; no answer where there is none of them."""
    text, id_ = text_of(found.get("text")), found.get("id")
    # doccano keeps columns that it does not know; some versions export them within meta or metadata
    judging = any(is_for_judging(each) for each in (found, found.get("meta"), found.get("metadata")))
    labelled = [found[key] for key in LABEL_KEYS if found.get(key) is not None]
    if not with_tags or not labelled:
        return Annotated(text, id_, judging=judging)
    marks = [_mark(item) for value in labelled for item in (value if isinstance(value, list) else [value])]
    relations = list_of(found.get("relations") or [], "relations")
    return Annotated(text, id_, answers=[marks], lost=[Lost("a relation")] * len(relations), judging=judging)


def _mark(item: Any) -> Mark:
    if isinstance(item, list) and len(item) == 3:
        return Mark(*item)
    if isinstance(item, dict) and "start_offset" in item:
        return Mark(item["start_offset"], item.get("end_offset"), item.get("label"))
    expected = '[0, 5, "..."] or {"start_offset": 0, "end_offset": 5, "label": "..."}, of a project for sequence labeling'
    raise Malformed(f"label {shorten(item)}", expected)


def task(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A line of a file to import, offsets in code points; it has no place for scores."""
    text, marks = marks_of(sentence)
    record: dict[str, Any] = {"text": text} if sentence.id is None else {"id": sentence.id, "text": text}
    record |= mark_of(sentence)
    return record if sentence.tags is None else {**record, "label": [[mark.start, mark.end, mark.type] for mark in marks]}
