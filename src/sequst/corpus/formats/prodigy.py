"""Prodigy: JSON lines of `text`, its `tokens`, the `spans` on them and the `answer`. Offsets are code points."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Lost, Mark, marks_of, sentences_of, words_of
from sequst.corpus.formats.records import each, is_for_judging, list_of, mark_of, objects_in_lines, text_of
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Offsets, Sentence
from sequst.corpus.tags import spans
from sequst.errors import Malformed, shorten

_SPAN = '{"start": 0, "end": 5, "label": "..."}'
_LEFT_OUT = {"reject": "a rejected answer", "ignore": "an answer that was skipped"}


def read(request: Request) -> Iterator[Sentence]:
    objects = objects_in_lines(request, f'{{"text": "...", "spans": [{_SPAN}], "answer": "accept"}}')
    read = functools.partial(_record, with_tags=request.with_tags)
    return sentences_of(each(objects, read, request.report), request)


def _record(found: dict[str, Any], *_: Any, with_tags: bool) -> Annotated:
    text, meta, tokens, answer = text_of(found.get("text")), found.get("meta"), found.get("tokens"), found.get("answer")
    meta = meta if isinstance(meta, dict) else {}
    places = None if tokens is None else _tokens(list_of(tokens, "tokens"), text)
    offsets = None if places is None else words_of(text, places)
    record = Annotated(text, meta.get("id"), offsets, judging=is_for_judging(meta))
    if not with_tags or (answer is None and found.get("spans") is None):
        return record
    if answer not in (None, "accept", *_LEFT_OUT):
        raise Malformed(f"answer {shorten(answer)}", f"one of accept, {', '.join(_LEFT_OUT)}")
    if answer in _LEFT_OUT:
        return replace(record, lost=[Lost(_LEFT_OUT[answer], "the text is left out")], left_out=True)
    if answer is None and "score" in meta:  # as `task` writes what was predicted
        return replace(record, lost=[Lost("predictions that nobody has looked at")])
    marks = [_mark(item, places) for item in list_of(found.get("spans") or [], "spans")]
    relations = list_of(found.get("relations") or [], "relations")
    return replace(record, answers=[marks], lost=[Lost("a relation")] * len(relations))


def _tokens(given: list[Any], text: str) -> Offsets:
    """The places of the tokens, which must be in order and hold all of the text but white space."""
    tokens: list[tuple[int, int]] = []
    at = 0
    for token in given:
        start, end = (token.get("start"), token.get("end")) if isinstance(token, dict) else (None, None)
        if type(start) is not int or type(end) is not int:
            raise Malformed(f"token {shorten(token)}", "tokens with text, start and end")
        if not at <= start < end <= len(text) or text[start:end] != token.get("text"):
            raise Malformed(f"token {shorten(token)}", "tokens in order, as they stand in the text")
        _require_blank(text[at:start])
        tokens.append((start, end))
        at = end
    _require_blank(text[at:])
    return tuple(tokens)


def _require_blank(between: str) -> None:
    if between.strip():
        raise Malformed(f"{shorten(between.strip())} in no token", "tokens for all of the text but white space")


def _mark(item: Any, tokens: Offsets | None) -> Mark:
    if not isinstance(item, dict):
        raise Malformed(f"span {shorten(item)}", _SPAN)
    start, end, first, last = (item.get(key) for key in ("start", "end", "token_start", "token_end"))
    if tokens is not None and type(first) is int and type(last) is int:
        if not 0 <= first <= last < len(tokens) or (tokens[first][0], tokens[last][1]) != (start, end):
            what = f"span {shorten(start)} to {shorten(end)} on tokens {first} to {last}"
            raise Malformed(what, "the same place in characters and tokens")
    return Mark(start, end, item.get("label"))


def task(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """An accepted task, or one to look at, without an answer, where there are no tags or they are predicted."""
    text, marks = marks_of(sentence)
    _, offsets = sentence.as_text()
    record: dict[str, Any] = {
        "text": text,
        "tokens": [
            {"text": word, "start": start, "end": end, "id": number, "ws": text[end : end + 1] == " "}
            for number, (word, (start, end)) in enumerate(zip(sentence.words, offsets, strict=True))
        ],
    }
    if sentence.id is not None or sentence.judging:
        record["meta"] = {**({} if sentence.id is None else {"id": sentence.id}), **mark_of(sentence)}
    if sentence.tags is None:
        return record
    record["spans"] = [
        {"start": mark.start, "end": mark.end, "token_start": span.start, "token_end": span.end - 1, "label": mark.type}
        for mark, span in zip(marks, spans(sentence.tags), strict=True)
    ]
    if scores is None:
        return {**record, "answer": "accept"}
    for span, score in zip(record["spans"], scores, strict=True):
        span["score"] = score
    return {**record, "meta": {**record.get("meta", {}), "score": min(scores, default=1.0)}}
