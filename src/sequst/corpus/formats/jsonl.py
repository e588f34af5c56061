"""JSON lines: an object a line, with `words` and `tags`, or `text` and `spans` in characters."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Mark, marks_of, sentences_of
from sequst.corpus.formats.records import (
    each,
    id_of,
    is_for_judging,
    keys_of,
    list_of,
    mark_of,
    objects_in_lines,
    text_of,
    words_with_tags,
)
from sequst.corpus.formats.registry import LABEL_KEYS, Request
from sequst.corpus.sentence import Sentence, Source
from sequst.errors import Malformed, shorten
from sequst.files import as_json, atomic_text

_SPAN = '{"start": 0, "end": 5, "type": "..."}'
_SHAPES = f'{{"words": [...], "tags": [...]}} or {{"text": "...", "spans": [{_SPAN}]}}'


def read(request: Request) -> Iterator[Sentence]:
    """Sentences with their tags as written (the scheme is turned later). Ids may come twice."""
    read = functools.partial(_record, with_tags=request.with_tags)
    records = each(objects_in_lines(request, _SHAPES), read, request.report)
    return sentences_of(records, request, unique_ids=False)


def _record(found: dict[str, Any], number: int, place: Source, with_tags: bool) -> Sentence | Annotated:
    id_, judging = id_of(found.get("id"), number), is_for_judging(found)
    if "words" in found:
        return words_with_tags(found["words"], found.get("tags") if with_tags else None, id_, place, judging)
    if "text" not in found:
        raise Malformed(f"the keys {keys_of(found)}", _SHAPES)
    text, given = text_of(found["text"]), found.get("spans")
    if with_tags and given is not None:
        return Annotated(text, id_, answers=[[_mark(item) for item in list_of(given, "spans")]], judging=judging)
    foreign = next((key for key in LABEL_KEYS if isinstance(found.get(key), list) and found[key]), None)
    if with_tags and foreign is not None and "spans" not in found:
        raise Malformed(f"the key {foreign}", "spans; or name the tool that wrote the file as its format, e.g. doccano")
    return Annotated(text, id_, judging=judging)


def _mark(item: Any) -> Mark:
    """From {"start", "end", "type" or "label"} or [start, end, type]."""
    if isinstance(item, dict):
        return Mark(item.get("start"), item.get("end"), item.get("type", item.get("label")))
    if isinstance(item, list) and len(item) == 3:
        return Mark(*item)
    raise Malformed(f"span {shorten(item)}", _SPAN)


def write_jsonl(path: str | Path, sentences: Iterable[Sentence]) -> None:
    """Write words and tags."""
    with atomic_text(path) as file:
        file.writelines(jsonl_line(sentence) for sentence in sentences)


def jsonl_line(sentence: Sentence) -> str:
    return _line(sentence, {"words": sentence.words}, {"tags": sentence.tags})


def write(path: Path, sentences: Iterable[Sentence]) -> None:
    """Write the text of a sentence where our rule cuts it into its words, or else the words."""
    with atomic_text(path) as file:
        for sentence in sentences:
            if sentence.text is None or not sentence.is_cut_by_rule():
                file.write(jsonl_line(sentence))
            else:
                text, marks = marks_of(sentence)
                spans = [{"start": mark.start, "end": mark.end, "type": mark.type} for mark in marks]
                file.write(_line(sentence, {"text": text}, {"spans": spans}))


def _line(sentence: Sentence, what: dict[str, Any], annotation: dict[str, Any]) -> str:
    id_ = {} if sentence.id is None else {"id": sentence.id}
    return as_json({**id_, **what, **({} if sentence.tags is None else annotation), **mark_of(sentence)}) + "\n"
