"""Argilla: a JSON list of records, as `dataset.records.to_json` writes them, with a question of spans."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Lost, Mark, marks_of, sentences_of
from sequst.corpus.formats.records import each, is_for_judging, mark_of, objects_in_list, the_text
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Sentence
from sequst.errors import Malformed, shorten

_SHAPES = 'records of Argilla 2, {"fields": {"text": "..."}, "responses": {"spans": [{"value": [...]}]}}'
QUESTION = "spans"
NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for the user of a response, which Argilla asks for; put one of yours in its place before you import responses."""


def read(request: Request) -> Iterator[Sentence]:
    objects = objects_in_list(request, _SHAPES)
    read = functools.partial(_record, with_tags=request.with_tags)
    return sentences_of(each(objects, read, request.report), request, units_by="browsers")


def _record(found: dict[str, Any], *_: Any, with_tags: bool) -> Annotated:
    lost: list[Lost] = []
    done: list[list[Mark]] = []
    for question, response in _responses(found) if with_tags else []:
        value = response["value"]
        if not isinstance(value, list) or not all(isinstance(item, dict) and "rank" not in item for item in value):
            lost.append(Lost(f"an answer to the question {shorten(question)}, which is not of spans"))
        elif response.get("status") in ("discarded", "draft"):
            lost.append(Lost(f"a response that is {response['status']}"))
        else:
            done.append([Mark(item.get("start"), item.get("end"), item.get("label")) for item in value])
    if not done and found.get("suggestions"):
        lost.append(Lost("suggestions that nobody has looked at"))
    text = the_text(found, "fields", _SHAPES)
    judging = is_for_judging(found.get("metadata"))
    return Annotated(text, found.get("id"), answers=done, lost=lost, called="responses", judging=judging)


def _responses(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(question, response) of every response."""
    responses = record.get("responses") or {}
    if not isinstance(responses, dict) or not all(isinstance(each, list) for each in responses.values()):
        raise Malformed(f"responses {shorten(responses)}", _SHAPES)
    found = [(question, response) for question, each in responses.items() for response in each]
    if not all(isinstance(response, dict) and "value" in response for _, response in found):
        raise Malformed(f"responses {shorten(responses)}", _SHAPES)
    return found


def task(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A record with a response, or with a suggestion if its entities have scores."""
    text, marks = marks_of(sentence)
    value = [{"start": mark.start, "end": mark.end, "label": mark.type} for mark in marks]
    suggested: dict[str, Any] = {}
    responded: dict[str, Any] = {}
    if sentence.tags is not None and scores is not None:
        suggested = {QUESTION: {"value": value, "score": list(scores), "agent": "sequst"}}
    elif sentence.tags is not None:
        responded = {QUESTION: [{"value": value, "user_id": NOBODY}]}
    fields, metadata = {"text": text}, mark_of(sentence)
    record = {"fields": fields, "metadata": metadata, "suggestions": suggested, "responses": responded, "vectors": {}}
    return record if sentence.id is None else {"id": sentence.id, **record}
