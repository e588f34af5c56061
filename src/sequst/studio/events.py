"""What happens to a project: a row of `events` each time, and what the events come to.

Each function works within the transaction of its connection.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from sqlite3 import Connection, Row
from typing import Any

from sequst.corpus.tags import Span
from sequst.files import as_json
from sequst.studio.types import Type, after, changed

LABELS, SKIP = "labels", "skip"
NOT_UNDONE = (
    "NOT EXISTS (SELECT 1 FROM events AS undo WHERE undo.kind = 'undo' AND json_extract(undo.data, '$.event') = events.id)"
)
"""Condition on `events`."""


def spans_of(entities: str | None) -> list[Span]:
    return [Span(*each) for each in json.loads(entities or "[]")]


def append(connection: Connection, who: str, kind: str, sentence: int | None, data: dict[str, Any]) -> int:
    added = connection.execute(
        "INSERT INTO events (at, who, kind, sentence, data) VALUES (?, ?, ?, ?, ?)",
        (time.time(), who, kind, sentence, as_json(data)),
    )
    return int(added.lastrowid or 0)


def mark(connection: Connection, sentence: int) -> None:
    """Draw the sentence for judging."""
    append(connection, "", "judging", sentence, {})
    connection.execute("UPDATE sentences SET judging = 1 WHERE id = ?", (sentence,))


def answer(connection: Connection, sentence: int, who: str, kind: str, entities: Sequence[Span], decides: bool) -> None:
    """Append it, unless the person has said just this."""
    given = as_json(list(entities))
    before = connection.execute("SELECT * FROM answers WHERE sentence = ? AND who = ?", (sentence, who)).fetchone()
    if before is not None and (before["kind"], before["entities"]) == (kind, given) and before["decides"] >= decides:
        return
    event = append(connection, who, kind, sentence, {"entities": list(entities)} | ({"decides": True} if decides else {}))
    connection.execute(
        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
        (sentence, who, event, time.time(), kind, given, decides),
    )
    _settle(connection, sentence)


def recall(connection: Connection, sentence: int, who: str) -> None:
    """Make the person's last answer that was not undone the one that counts."""
    connection.execute("DELETE FROM answers WHERE sentence = ? AND who = ?", (sentence, who))
    row = connection.execute(
        f"SELECT * FROM events WHERE sentence = ? AND who = ? AND kind IN ('labels', 'skip') AND {NOT_UNDONE}"
        " ORDER BY id DESC LIMIT 1",
        (sentence, who),
    ).fetchone()
    if row is not None:
        decides = bool(json.loads(row["data"]).get("decides"))
        entities = as_json(entities_of(connection, row))
        connection.execute(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
            (sentence, who, row["id"], row["at"], row["kind"], entities, decides),
        )
    _settle(connection, sentence)


def _settle(connection: Connection, sentence: int) -> None:
    """Say at the sentence what its answers come to: the last labels count. They differ unless somebody has decided since."""
    answers = connection.execute("SELECT * FROM answers WHERE sentence = ? ORDER BY event", (sentence,)).fetchall()
    labels = [each for each in answers if each["kind"] == LABELS]
    last = labels[-1] if labels else answers[-1] if answers else None
    if last is None:
        given: tuple[Any, ...] = ("raw", None, None, None, None, 0)
    else:
        differs = len({each["entities"] for each in labels}) > 1 and not last["decides"]
        entities = last["entities"] if labels else None
        given = (last["kind"], entities, last["who"], last["at"], last["event"], differs)
    connection.execute(
        "UPDATE sentences SET status = ?, entities = ?, who = ?, at = ?, event = ?, differs = ? WHERE id = ?",
        (*given, sentence),
    )


def types_of_project(connection: Connection) -> list[Type]:
    return [Type(*row) for row in connection.execute("SELECT name, key, color FROM types ORDER BY place")]


def change_types(connection: Connection, op: dict[str, Any], who: str) -> list[Type]:
    types = changed(types_of_project(connection), op)
    append(connection, who, "types", None, op)
    connection.execute("DELETE FROM types")
    for place, each in enumerate(types):
        connection.execute("INSERT INTO types VALUES (?, ?, ?, ?)", (*each, place))
    if op["op"] in ("rename", "merge", "delete"):
        for sentence, _ in entities_of_type(connection, op["name"]):
            for row in connection.execute("SELECT who, entities FROM answers WHERE sentence = ?", (sentence,)).fetchall():
                entities = as_json(after(spans_of(row["entities"]), [op]))
                connection.execute(
                    "UPDATE answers SET entities = ? WHERE sentence = ? AND who = ?", (entities, sentence, row["who"])
                )
            _settle(connection, sentence)
    return types


def entities_of_type(connection: Connection, name: str) -> list[tuple[int, list[Span]]]:
    """(sentence, its entities) of every sentence that somebody has labelled with the type."""
    rows = connection.execute(
        "SELECT DISTINCT answers.sentence, sentences.entities FROM answers JOIN sentences ON sentences.id = answers.sentence,"
        " json_each(answers.entities) WHERE json_extract(json_each.value, '$[0]') = ?",
        (name,),
    ).fetchall()
    return [(row["sentence"], spans_of(row["entities"])) for row in rows]


def entities_of(connection: Connection, event: Row) -> list[Span]:
    """The entities of an event as they are called now."""
    given = [Span(*each) for each in json.loads(event["data"]).get("entities", ())]
    return after(given, ops_after(connection, event["id"]))


def ops_after(connection: Connection, event: int) -> list[dict[str, Any]]:
    rows = connection.execute("SELECT data FROM events WHERE kind = 'types' AND id > ? ORDER BY id", (event,))
    return [json.loads(row["data"]) for row in rows]
