"""Prodigy: JSON lines of `text`, its `tokens`, the `spans` on them and the `answer`. Offsets are code points."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Loss, Mark, mark_of, marks_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.records import SEPARATORS, Ids, Malformed, Remark, each_of, list_of, objects_of_lines, text_of
from sequst.corpus.sentence import Offsets, Sentence, Source
from sequst.corpus.tags import spans
from sequst.errors import shorten
from sequst.inputs import Input, Report

_SHAPES = '{"text": "...", "spans": [{"start": 0, "end": 5, "label": "..."}], "answer": "accept"}'
_ANSWERS = ("accept", "reject", "ignore")


def read_prodigy(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Annotated]:
    yield from each_of(objects_of_lines(source, _SHAPES, report), functools.partial(_record, tag_use=tag_use), report)


def _record(record: dict[str, Any], ordinal: int, place: Source, ids: Ids, tag_use: TagUse) -> Annotated:
    text = text_of(record.get("text"))
    meta = record.get("meta")
    id_ = ids.of(meta.get("id") if isinstance(meta, dict) else None, ordinal, place)
    given = record.get("tokens")
    tokens = None if given is None else _tokens(list_of(given, "tokens"), text)
    words = None if tokens is None else tuple(token for token in tokens if text[slice(*token)].strip())
    if tag_use == "ignored":
        return Annotated(text, None, id_, place, words)
    answer = record.get("answer")
    if answer is not None and answer not in _ANSWERS:
        raise Malformed(f"answer {shorten(answer)}", f"one of {', '.join(_ANSWERS)}")
    if answer in ("reject", "ignore"):
        done = Loss("a rejected answer" if answer == "reject" else "an answer that was skipped", "the text is left out")
        return Annotated(text, None, id_, place, words, (done,), left_out=True)
    if record.get("spans") is None and answer is None:
        return Annotated(text, None, id_, place, words)
    if answer is None and isinstance(meta, dict) and "score" in meta:  # as `prodigy_record` writes what was predicted
        return Annotated(text, None, id_, place, words, (Loss("predictions that nobody has looked at", "left out"),))
    marks = tuple(_mark(item, text, tokens) for item in list_of(record.get("spans") or [], "spans"))
    relations = list_of(record.get("relations") or [], "relations")
    return Annotated(text, marks, id_, place, words, (Loss("a relation", "left out"),) * len(relations))


def _tokens(given: list[Any], text: str) -> Offsets:
    tokens: list[tuple[int, int]] = []
    for token in given:
        start, end = (token.get("start"), token.get("end")) if isinstance(token, dict) else (None, None)
        if type(start) is not int or type(end) is not int:
            raise Malformed(f"token {shorten(token)}", "tokens with text, start and end")
        covered = text[start:end]
        if not (tokens[-1][1] if tokens else 0) <= start < end <= len(text) or covered != token.get("text"):
            raise Malformed(f"token {shorten(token)}", "tokens in order, as they stand in the text")
        if covered.strip() and SEPARATORS.search(covered):
            raise Malformed(f"token {shorten(token)}", "tokens without tabs and line ends in them")
        tokens.append((start, end))
    between = [text[end:start] for (_, end), (start, _) in itertools.pairwise([(0, 0), *tokens, (len(text), len(text))])]
    for left_out in between:
        if left_out.strip():
            raise Malformed(f"{shorten(left_out.strip())} in no token", "tokens for all of the text but white space")
    return tuple(tokens)


def _mark(item: Any, text: str, tokens: Offsets | None) -> Mark:
    if not isinstance(item, dict):
        raise Malformed(f"span {shorten(item)}", '{"start": 0, "end": 5, "label": "..."}')
    mark = mark_of(text, item.get("start"), item.get("end"), item.get("label"))
    first, last = item.get("token_start"), item.get("token_end")
    if tokens is not None and type(first) is int and type(last) is int:
        if not 0 <= first <= last < len(tokens) or (tokens[first][0], tokens[last][1]) != (mark.start, mark.end):
            raise Malformed(
                f"span {mark.start} to {mark.end} on tokens {first} to {last}", "the same place in characters and tokens"
            )
    return mark


def prodigy_record(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
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
    if sentence.id is not None:
        record["meta"] = {"id": sentence.id}
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
