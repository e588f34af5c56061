"""Label Studio: a JSON list of tasks, each with its data, the annotations of people and the predictions of models."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sequst.corpus.formats.annotated import Annotated, Loss, Mark, mark_of, marks_of
from sequst.corpus.formats.columns import TagUse
from sequst.corpus.formats.offsets import Claim, Counted, counted_in, to_code_points
from sequst.corpus.formats.records import Ids, Malformed, Remark, each_of, list_of, objects_of_list, the_text
from sequst.corpus.sentence import Sentence, Source
from sequst.errors import shorten
from sequst.inputs import Input, Report

_SHAPES = 'tasks, {"data": {"text": "..."}, "annotations": [{"result": [...]}]}, as the export JSON (not JSON-MIN) has them'
_REGION = '{"type": "labels", "value": {"start": 0, "end": 5, "labels": ["..."]}}'
FROM_NAME, TO_NAME = "label", "text"
"""Names of the tags Labels and Text in the labelling interface that Label Studio offers for named entities."""


def read_labelstudio(source: Input, tag_use: TagUse, report: Report, remark: Remark) -> Iterator[Annotated]:
    objects = list(objects_of_list(source, _SHAPES, report))
    counted: Counted = "code points"
    if tag_use != "ignored":
        claims = _claims([task for _, task in objects])
        counted = counted_in(source.name, claims, remark, ", as older versions of Label Studio do")
    by_data = _are_ids([task for _, task in objects])
    yield from each_of(objects, functools.partial(_record, tag_use=tag_use, counted=counted, by_data=by_data), report)


def _claims(tasks: list[dict[str, Any]]) -> Iterator[Claim]:
    """The offsets that the file gives, where they are what they should be; the reader reports those that are not."""
    for task in tasks:
        try:
            text = the_text(task.get("data"), "data")
            for annotation in _annotations(task):
                for region in list_of(annotation.get("result"), "result"):
                    value = region["value"]
                    covered = value.get("text")
                    mark = Claim(text, value["start"], value["end"], covered if isinstance(covered, str) else None)
                    if type(mark.start) is int and type(mark.end) is int:
                        yield mark
        except (Malformed, AttributeError, KeyError, TypeError):
            continue


def _are_ids(tasks: list[dict[str, Any]]) -> bool:
    """Whether the ids among the data, where `convert` puts ours, tell tasks apart; else they are of something that tasks share,
    such as a document, and the tasks have their own."""
    given = [str(task["data"].get("id")) for task in tasks if isinstance(task.get("data"), dict) and "id" in task["data"]]
    own = [str(task["id"]) for task in tasks if "id" in task]
    return len(set(given)) == len(given) or len(own) < len(tasks) or len(set(own)) < len(own)


def _record(
    task: dict[str, Any], ordinal: int, place: Source, ids: Ids, tag_use: TagUse, counted: Counted, by_data: bool
) -> Annotated:
    if "data" not in task:
        raise Malformed(f"the keys {', '.join(map(shorten, task)) or 'none'}", _SHAPES)
    text = the_text(task["data"], "data")
    id_ = ids.of(task["data"].get("id", task.get("id")) if by_data else task.get("id"), ordinal, place)
    if tag_use == "ignored":
        return Annotated(text, None, id_, place)
    losses: list[Loss] = []
    done: list[tuple[Mark, ...]] = []
    for annotation in _annotations(task):
        if not isinstance(annotation, dict):
            raise Malformed(f"annotation {shorten(annotation)}", '{"result": [...]}')
        if annotation.get("was_cancelled"):
            losses.append(Loss("an annotation that was skipped", "left out"))
        else:
            done.append(_marks(annotation.get("result"), text, counted, losses))
    if len({frozenset(marks) for marks in done}) > 1:
        losses.append(Loss(f"{len(done)} annotations that differ", "the first is kept"))
    if not done and task.get("predictions"):
        losses.append(Loss("predictions that nobody has looked at", "left out"))
    return Annotated(text, done[0] if done else None, id_, place, losses=tuple(losses))


def _annotations(task: dict[str, Any]) -> list[Any]:
    """What people have said of a task; older versions call it completions."""
    name = "annotations" if "annotations" in task else "completions"
    return list_of(task.get(name) or [], name)


def _marks(result: Any, text: str, counted: Counted, losses: list[Loss]) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for region in list_of(result, "result"):
        if not isinstance(region, dict):
            raise Malformed(f"region {shorten(region)}", _REGION)
        if region.get("type") == "relation":
            losses.append(Loss("a relation", "left out"))
            continue
        if region.get("type") != "labels":
            losses.append(Loss(f"an answer of the type {shorten(region.get('type'))}", "left out"))
            continue
        value = region.get("value")
        labels = value.get("labels") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(labels, list) or not labels:
            raise Malformed(f"region {shorten(region)}", _REGION)
        start, end = value.get("start"), value.get("end")
        if counted != "code points" and type(start) is int and type(end) is int:
            start, end = to_code_points(text, start, end)
        mark = mark_of(text, start, end, labels[0])
        said, there = value.get("text"), text[mark.start : mark.end]
        if isinstance(said, str) and said.replace("\\n", " ").split() != there.replace("\\n", " ").split():
            raise Malformed(f"a region of {shorten(said)} where {shorten(there)} stands", "offsets of the text that it names")
        marks.append(mark)
        if len(labels) > 1:
            losses.append(Loss(f"a span of several types, {', '.join(map(str, labels))}", f"only {labels[0]} is kept"))
    return tuple(marks)


def labelstudio_task(sentence: Sentence, scores: Sequence[float] | None = None) -> dict[str, Any]:
    """A task with an annotation, or with a prediction where its entities have scores; offsets in code points."""
    text, marks = marks_of(sentence)
    task: dict[str, Any] = {"data": {"text": text} if sentence.id is None else {"text": text, "id": sentence.id}}
    if sentence.tags is None:
        return task
    result: list[dict[str, Any]] = [
        {
            "id": f"e{number}",
            "from_name": FROM_NAME,
            "to_name": TO_NAME,
            "type": "labels",
            "value": {"start": mark.start, "end": mark.end, "text": text[mark.start : mark.end], "labels": [mark.type]},
        }
        for number, mark in enumerate(marks, 1)
    ]
    if scores is None:
        return {**task, "annotations": [{"result": result}]}
    for region, score in zip(result, scores, strict=True):
        region["score"] = score
    # the score of the task sorts them: the least certain entity is what an annotator should look at first
    return {**task, "predictions": [{"model_version": "sequst", "score": min(scores, default=1.0), "result": result}]}
