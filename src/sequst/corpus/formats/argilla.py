"""Argilla: a JSON list of records, as `dataset.records.to_json` writes them, with a question of spans.

Offsets are taken as Label Studio's and doccano's are: by what the words of the text say, code points where nothing speaks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Loss, Mark, mark_of, marks_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.offsets import Claim, Counted, counted_in, to_code_points
from sequst.corpus.formats.records import Ids, Malformed, Remark, each_of, objects_of_list, the_text
from sequst.corpus.sentence import Sentence, Source
from sequst.errors import shorten
from sequst.inputs import Input, Report

_SHAPES = 'records of Argilla 2, {"fields": {"text": "..."}, "responses": {"spans": [{"value": [...]}]}}'
_VALUE = '{"start": 0, "end": 5, "label": "..."}'
QUESTION = "spans"
NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for the user of a response, which Argilla asks for; put one of yours in its place before you import responses."""


def read_argilla(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Annotated]:
    objects = list(objects_of_list(source, _SHAPES, report))
    counted: Counted = "code points"
    if tag_use != "ignored":
        counted = counted_in(source.name, _claims([record for _, record in objects]), remark)
    yield from each_of(objects, functools.partial(_record, tag_use=tag_use, counted=counted), report)


def _claims(records: list[dict[str, Any]]) -> Iterator[Claim]:
    """The offsets that the file gives, where they are what they should be; the reader reports those that are not."""
    for record in records:
        try:
            text = the_text(record.get("fields"), "fields")
            for answers in _answers(record).values():
                for answer in answers:
                    for item in answer["value"] if _is_spans(answer["value"]) else []:
                        if type(item["start"]) is int and type(item["end"]) is int:
                            yield Claim(text, item["start"], item["end"])
        except (Malformed, KeyError, TypeError):
            continue


def _answers(record: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The responses to every question."""
    responses = record.get("responses") or {}
    whole = isinstance(responses, dict) and all(isinstance(answers, list) for answers in responses.values())
    if not whole or not all(isinstance(answer, dict) and "value" in answer for a in responses.values() for answer in a):
        raise Malformed(f"responses {shorten(responses)}", _SHAPES)
    return dict(responses)


def _is_spans(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and "rank" not in item for item in value)


def _record(record: dict[str, Any], ordinal: int, place: Source, ids: Ids, tag_use: TagUse, counted: Counted) -> Annotated:
    if "fields" not in record:
        raise Malformed(f"the keys {', '.join(map(shorten, record)) or 'none'}", _SHAPES)
    text = the_text(record["fields"], "fields")
    id_ = ids.of(record.get("id"), ordinal, place)
    if tag_use == "ignored":
        return Annotated(text, None, id_, place)
    losses: list[Loss] = []
    done: list[tuple[Mark, ...]] = []
    for question, answers in _answers(record).items():
        for answer in answers:
            if not _is_spans(answer["value"]):
                losses.append(Loss(f"an answer to the question {shorten(question)}, which is not of spans", "left out"))
            elif answer.get("status") in ("discarded", "draft"):
                losses.append(Loss(f"a response that is {answer['status']}", "left out"))
            else:
                done.append(tuple(_mark(item, text, counted) for item in answer["value"]))
    if len({frozenset(marks) for marks in done}) > 1:
        losses.append(Loss(f"{len(done)} responses that differ", "the first is kept"))
    if not done and record.get("suggestions"):
        losses.append(Loss("suggestions that nobody has looked at", "left out"))
    return Annotated(text, done[0] if done else None, id_, place, losses=tuple(losses))


def _mark(item: dict[str, Any], text: str, counted: Counted) -> Mark:
    start, end = item.get("start"), item.get("end")
    if counted != "code points" and type(start) is int and type(end) is int:
        start, end = to_code_points(text, start, end)
    return mark_of(text, start, end, item.get("label"))


def argilla_record(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A record with a response, or with a suggestion where its entities have scores."""
    text, marks = marks_of(sentence)
    value = [{"start": mark.start, "end": mark.end, "label": mark.type} for mark in marks]
    answered = sentence.tags is not None
    suggested = (
        {QUESTION: {"value": value, "score": list(scores), "agent": "sequst"}} if answered and scores is not None else {}
    )
    responded = {QUESTION: [{"value": value, "user_id": NOBODY}]} if answered and scores is None else {}
    record = {"fields": {"text": text}, "metadata": {}, "suggestions": suggested, "responses": responded, "vectors": {}}
    return record if sentence.id is None else {"id": sentence.id, **record}
