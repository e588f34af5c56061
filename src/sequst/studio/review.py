"""What people look at again: sentences, differences, labels that look wrong, models side by side."""

from __future__ import annotations

import json
from sqlite3 import Row
from typing import Any

from sequst.annotation.judged import compare
from sequst.corpus.tags import Span, tags_of
from sequst.evaluation.spans import SpanScores, score_spans
from sequst.studio.desk import labels_of, renamed
from sequst.studio.events import spans_of
from sequst.studio.project import Missing, Project, sentence_of
from sequst.studio.state import told_sentence
from sequst.studio.types import after

MOST_DIFFERENT = 50


def listed(project: Project, status: str, type_: str, text: str, before_type: str, offset: int, limit: int) -> dict[str, Any]:
    total, rows = project.listed(status, type_, text, before_type, offset, limit)
    return {"total": total, "sentences": [_with_others(project, row) for row in rows]}


def whole(project: Project, id_: int) -> dict[str, Any]:
    return {**_with_others(project, project.row(id_), always=True), "history": project.history(id_)}


def _with_others(project: Project, row: Row, always: bool = False) -> dict[str, Any]:
    """A sentence; where people differ, with the labels of each."""
    told = told_sentence(project, row)
    if row["differs"] or always:
        told["others"] = [{"who": each["who"], "entities": labels_of(each["entities"])} for each in project.answers(row["id"])]
    return told


def suspects(project: Project) -> dict[str, Any]:
    """The most doubtful first. Those whose labels have changed since are left out."""
    found = []
    ops_since: dict[int, list[dict[str, Any]]] = {}
    for row in project.database.reading.execute("SELECT * FROM suspects ORDER BY place").fetchall():
        sentence, data = project.row(row["sentence"]), json.loads(row["data"])
        ops = ops_since.setdefault(row["event"], project.since(row["event"]))
        given, other = (after([Span(*each)] if each else [], ops) for each in (data["given"], data["alternative"]))
        if sentence["entities"] is None or not _still_so(spans_of(sentence["entities"]), given, data, other):
            continue
        pair = {"given": given[0]._asdict() if given else None, "alternative": other[0]._asdict() if other else None}
        found.append({"sentence": told_sentence(project, sentence), **data, **pair})
    fact = project.fact("suspects") or {"at": None, "labels": 0}
    return {**fact, "suspects": found}


def _still_so(labels: list[Span], given: list[Span], data: dict[str, Any], other: list[Span]) -> bool:
    if data["given"]:
        return bool(given) and given[0] in labels
    return bool(other) and not any(span.start < data["end"] and span.end > data["start"] for span in labels)


def uncertain(project: Project) -> dict[str, Any]:
    rows = project.database.reading.execute(
        "SELECT uncertain.entity, uncertain.event AS known, sentences.* FROM uncertain CROSS JOIN sentences ON sentences.id ="
        " uncertain.sentence WHERE status = 'raw' AND NOT judging ORDER BY uncertain.place"
    ).fetchall()
    found = []
    for row in rows:
        entity = renamed([json.loads(row["entity"])], project, row["known"])
        if entity:
            found.append({"sentence": {**told_sentence(project, row), "suggestions": entity}, "entity": entity[0]})
    return {"entities": found}


def compared(project: Project, a: int, b: int) -> dict[str, Any]:
    """Two models on the judging sentences that both tagged."""
    models = {}
    for number in (a, b):
        row = project.database.reading.execute("SELECT * FROM models WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise Missing(f"there is no model {number}")
        ops = project.since(row["event"])
        models[number] = {
            int(id_): after([Span(*each) for each in found], ops) for id_, found in json.loads(row["judged"]).items()
        }
    rows = [project.row(id_) for id_ in sorted(models[a].keys() & models[b].keys())]
    rows = [row for row in rows if row["status"] == "labels"]
    scores = {number: _scores(rows, found) for number, found in models.items()}
    told: dict[str, Any] = {"sentences": len(rows)}
    for name, number in (("a", a), ("b", b)):
        total = scores[number]
        told[name] = {"f1": total.total.f1, "types": {type_: counts.f1 for type_, counts in total.types.items()}}
    if rows:
        difference = compare(scores[a].sentences, scores[b].sentences)
        told |= {"gain": difference.value, "low": difference.low, "high": difference.high}
    differ = [row for row in rows if models[a][row["id"]] != models[b][row["id"]]][:MOST_DIFFERENT]
    told["differ"] = [
        {"sentence": told_sentence(project, row), **{
            name: [span._asdict() for span in models[number][row["id"]]] for name, number in (("a", a), ("b", b))
        }}
        for row in differ
    ]  # fmt: skip
    return told


def _scores(rows: list[Row], found: dict[int, list[Span]]) -> SpanScores:
    lengths = [len(sentence_of(row)) for row in rows]
    gold = [tags_of(spans_of(row["entities"]), length) for row, length in zip(rows, lengths, strict=True)]
    return score_spans(gold, [tags_of(found[row["id"]], length) for row, length in zip(rows, lengths, strict=True)])


def told_op(project: Project, op: dict[str, Any], entities: int, sentences: int) -> str:
    """What an operation on types changes."""
    name = op["name"]
    concerned = f"{entities} entit{'y' if entities == 1 else 'ies'} in {sentences} sentence{'s' * (sentences != 1)}"
    labeled = project.counts()["labeled"]
    later = "The model learns it with the next training."
    if op["op"] == "add":
        before = f" {labeled} sentences were labelled before it existed: look at them again." if labeled else ""
        return f"The type {name} is new.{before}"
    if op["op"] == "rename":
        return f"{concerned} will be called {op.get('to')}. Suggestions follow at once."
    if op["op"] == "merge":
        return f"{concerned} will become {op.get('into')}. The type {name} goes. {later}"
    if op["op"] == "delete":
        return f"{concerned} will lose their label, and the type {name} goes. The history of each sentence keeps them. {later}"
    return f"The key of {name} is {op.get('key')}."
