"""Label Studio: a JSON list of tasks, each with its data, the annotations of people and the predictions of models."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Lost, Mark, marks_of, sentences_of
from sequst.corpus.formats.records import each, is_for_judging, list_of, mark_of, objects_in_list, the_text
from sequst.corpus.formats.registry import Request
from sequst.corpus.sentence import Sentence
from sequst.errors import Malformed, shorten

_SHAPES = 'tasks, {"data": {"text": "..."}, "annotations": [{"result": [...]}]}, as the export JSON (not JSON-MIN) has them'
_REGION = '{"type": "labels", "value": {"start": 0, "end": 5, "labels": ["..."]}}'
FROM_NAME, TO_NAME = "label", "text"
"""Names of the tags Labels and Text in the labelling interface that Label Studio offers for named entities."""


def read(request: Request) -> Iterator[Sentence]:
    objects = list(objects_in_list(request, _SHAPES))
    by_data = _are_ids([task for _, task in objects])
    read = functools.partial(_record, with_tags=request.with_tags, by_data=by_data)
    return sentences_of(each(objects, read, request.report), request, units_by="older versions of Label Studio")


def _are_ids(tasks: list[dict[str, Any]]) -> bool:
    """Whether the ids among the data, where `convert` puts ours, tell tasks apart; else they are of something that tasks share,
    such as a document, and the tasks have their own."""
    given = [str(task["data"].get("id")) for task in tasks if isinstance(task.get("data"), dict) and "id" in task["data"]]
    own = [str(task["id"]) for task in tasks if "id" in task]
    return len(set(given)) == len(given) or len(own) < len(tasks) or len(set(own)) < len(own)


def _record(task: dict[str, Any], *_: Any, with_tags: bool, by_data: bool) -> Annotated:
    text = the_text(task, "data", _SHAPES)
    id_ = task["data"].get("id", task.get("id")) if by_data else task.get("id")
    lost: list[Lost] = []
    done: list[list[Mark]] = []
    name = "annotations" if "annotations" in task else "completions"  # as older versions call them
    for annotation in list_of(task.get(name) or [], name) if with_tags else []:
        if not isinstance(annotation, dict):
            raise Malformed(f"annotation {shorten(annotation)}", '{"result": [...]}')
        if annotation.get("was_cancelled"):
            lost.append(Lost("an annotation that was skipped"))
        else:
            regions = [_mark(region, lost) for region in list_of(annotation.get("result"), "result")]
            done.append([mark for mark in regions if mark is not None])
    if not done and task.get("predictions"):
        lost.append(Lost("predictions that nobody has looked at"))
    return Annotated(text, id_, answers=done, lost=lost, judging=is_for_judging(task["data"]))


def _mark(region: Any, lost: list[Lost]) -> Mark | None:
    """The span of a region; None where it is no span, which is added to what is lost."""
    if not isinstance(region, dict):
        raise Malformed(f"region {shorten(region)}", _REGION)
    kind = region.get("type")
    if kind != "labels":
        lost.append(Lost("a relation" if kind == "relation" else f"an answer of the type {shorten(kind)}"))
        return None
    value = region.get("value")
    labels = value.get("labels") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(labels, list) or not labels:
        raise Malformed(f"region {shorten(region)}", _REGION)
    if len(labels) > 1:
        lost.append(Lost(f"a span of several types, {', '.join(map(str, labels))}", f"only {labels[0]} is kept"))
    said = value.get("text")
    return Mark(value.get("start"), value.get("end"), labels[0], said if isinstance(said, str) else None)


def task(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A task with an annotation, or with a prediction where its entities have scores; offsets in code points."""
    text, marks = marks_of(sentence)
    id_ = {} if sentence.id is None else {"id": sentence.id}
    task: dict[str, Any] = {"data": {"text": text, **id_, **mark_of(sentence)}}
    if sentence.tags is None:
        return task
    result: list[dict[str, Any]] = [
        {"id": f"e{number}", **region(text, mark.start, mark.end, mark.type)} for number, mark in enumerate(marks, 1)
    ]
    if scores is None:
        return {**task, "annotations": [{"result": result}]}
    return {**task, "predictions": [prediction(result, scores, "sequst")]}


def region(text: str, start: int, end: int, label: str, from_name: str = FROM_NAME, to_name: str = TO_NAME) -> dict[str, Any]:
    """A span; the names are those of the tags Labels and Text in the labelling interface."""
    value = {"start": start, "end": end, "text": text[start:end], "labels": [label]}
    return {"from_name": from_name, "to_name": to_name, "type": "labels", "value": value}


def prediction(regions: Sequence[dict[str, Any]], scores: Sequence[float], version: str) -> dict[str, Any]:
    """Regions with their scores. That of the task sorts tasks: the least certain entity is what to look at first."""
    result = [{**each, "score": score} for each, score in zip(regions, scores, strict=True)]
    return {"model_version": version, "score": min(scores, default=1.0), "result": result}
