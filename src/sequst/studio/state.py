"""What the page shows: the state of a project as JSON."""

from __future__ import annotations

import json
import time
from sqlite3 import Row
from typing import Any

from sequst.annotation.agreement import agreement
from sequst.annotation.curve import TooFew, outlook
from sequst.corpus.tags import tags_of
from sequst.studio import jobs
from sequst.studio.desk import Given, labels_of
from sequst.studio.events import SKIP
from sequst.studio.project import Project, sentence_of
from sequst.version import __version__

WANTED = 10
"""Entities that a type needs to be learnt; fewer are shown as too few."""
MORE = 20
"""Labels of which the outlook speaks."""


def state_of(project: Project, told: dict[str, Any], present: set[str]) -> dict[str, Any]:
    """`told`: what the worker told last; `present`: who holds a sentence."""
    counts, models = project.counts(), _models(project)
    due = jobs.due_at(project)
    curve = [
        {"model": each["id"], "labels": each["labels"], "judged": each["f1"]["sentences"], "f1": each["f1"]["value"],
         "low": each["f1"]["low"], "high": each["f1"]["high"]}
        for each in models if each["f1"] is not None and each["kind"] == jobs.QUICK
    ]  # fmt: skip
    types = told_types(project)
    learnt = project.by_event("learnt", project.entities_to_learn)
    suspects = project.fact("suspects")
    left = project.database.reading.execute("SELECT count(*) FROM suspects").fetchone()[0]
    uncertain = project.database.reading.execute(
        "SELECT count(*) FROM uncertain CROSS JOIN sentences ON sentences.id = sentence WHERE status = 'raw'"
    ).fetchone()[0]
    return {
        "id": project.fact("id"),
        "project": project.name,
        "version": __version__,
        "demo": bool(project.fact("demo")),
        **counts,
        "types": types,
        "model": models[-1] if models else None,
        "training": _training(project, told),
        "problem": jobs.problem(project) or project.fact("trouble"),
        "next_training": None if due is None else {"at": due, "left": max(0, due - counts["labeled"])},
        "forecast": project.fact("forecast"),
        "f1": models[-1]["f1"] if models else None,
        "curve": curve,
        "outlook": _outlook(curve),
        "few": [
            {"type": each["name"], "entities": learnt.get(each["name"], 0), "wanted": WANTED}
            for each in types if learnt.get(each["name"], 0) < WANTED
        ],
        "people": _people(project, present),
        "agreement": project.by_event("agreement", lambda: _agreement(project)),
        "suspects": None if suspects is None else {**suspects, "count": left},
        "uncertain": uncertain,
        "settings": project.settings._asdict(),
    }  # fmt: skip


def told_sentence(project: Project, row: Row, given: Given | None = None) -> dict[str, Any]:
    """A sentence as the page takes it."""
    sentence = sentence_of(row)
    text, offsets = sentence.as_text()
    why = given.why if given is not None else ""
    return {
        "id": row["id"],
        "text": text,
        "words": list(sentence.words),
        "offsets": [list(each) for each in offsets],
        "suggestions": [] if given is None else given.suggestions,
        "why": why,
        "judging": bool(row["judging"]),
        "second": given is not None and given.second,
        "labels": None if row["entities"] is None or (given is not None and given.second) else labels_of(row["entities"]),
        "who": row["who"],
        "at": row["at"],
        "skipped": row["status"] == SKIP,
    }


def told_types(project: Project) -> list[dict[str, Any]]:
    return project.by_event("types", lambda: _told_types(project))


def _told_types(project: Project) -> list[dict[str, Any]]:
    rows = project.database.reading.execute(
        "SELECT json_extract(value, '$[0]') AS label, count(*) AS entities, count(DISTINCT sentences.id) AS sentences"
        " FROM sentences, json_each(entities) WHERE status = 'labels' GROUP BY label"
    )
    counted = {row["label"]: {"entities": row["entities"], "sentences": row["sentences"]} for row in rows}
    nothing = {"entities": 0, "sentences": 0}
    earlier = project.labeled_before_types()
    return [
        {**each._asdict(), **counted.get(each.name, nothing), "earlier": earlier.get(each.name, 0)} for each in project.types()
    ]


def _models(project: Project) -> list[dict[str, Any]]:
    rows = project.database.reading.execute(
        "SELECT id, at, kind, method, labels, f1, seconds FROM models ORDER BY id"
    ).fetchall()
    return [told_model(row, row is rows[-1]) for row in rows]


def told_model(row: Row, current: bool) -> dict[str, Any]:
    f1 = None if row["f1"] is None else json.loads(row["f1"])
    return {
        "id": row["id"],
        "at": row["at"],
        "kind": row["kind"],
        "method": row["method"],
        "labels": row["labels"],
        "judged": 0 if f1 is None else f1["sentences"],
        "f1": f1,
        "seconds": row["seconds"],
        "current": current,
        "folder": f"models/{row['id']:04d}",
    }


def _training(project: Project, told: dict[str, Any]) -> dict[str, Any] | None:
    job: Row | dict[str, Any] | None = jobs.under_way(project)
    if job is None:
        if told.get("job") != 0:
            return None
        job = {"id": 0, "kind": jobs.FIRST, "began": time.time(), "status": "running"}  # it chooses what to label next
    mine = told if told.get("job") == job["id"] else {}
    return {
        "job": job["id"],
        "kind": job["kind"],
        "phase": mine.get("phase", ""),
        "done": mine.get("done", 0),
        "total": mine.get("total", 0),
        "seconds": max(0.0, time.time() - (job["began"] or job["asked"])),
        "left": mine.get("left"),
        "waiting": job["status"] == "waiting",
    }


def _outlook(curve: list[dict[str, Any]]) -> dict[str, Any]:
    found = outlook([(each["labels"], each["f1"], each["low"], each["high"]) for each in curve], MORE)
    return {"too_few": found.reason} if isinstance(found, TooFew) else found._asdict()


def _people(project: Project, present: set[str]) -> list[dict[str, Any]]:
    rows = project.database.reading.execute(
        "SELECT who, sum(kind = 'labels') AS labeled FROM answers WHERE who NOT LIKE 'file %' GROUP BY who ORDER BY who"
    )
    labeled = {row["who"]: row["labeled"] for row in rows}
    return [{"name": who, "labeled": labeled.get(who, 0), "now": who in present} for who in sorted({*labeled, *present})]


def _agreement(project: Project) -> dict[str, Any] | None:
    """Of the first two people who labelled a sentence."""
    answers = project.first_answers()
    if not answers:
        return None
    pairs = []
    for sentence, (first, second, *_) in answers:
        length = len(sentence_of(project.row(sentence)))
        pairs.append((tags_of(first, length), tags_of(second, length)))
    found = agreement(pairs)
    return {"sentences": len(pairs), "words": found.words, "kappa": found.overall, "types": found.types}
