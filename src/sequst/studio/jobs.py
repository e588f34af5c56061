"""What the worker is to do: asked for by people, or due because labels have come."""

from __future__ import annotations

import contextlib
import json
import math
import time
from sqlite3 import Row
from typing import Any, NamedTuple

from sequst.errors import SequstError
from sequst.files import as_json
from sequst.studio.project import Project

FIRST, QUICK, SUSPECTS, EXPORT = "first", "quick", "suspects", "export"
TRAINING = (QUICK, "default", "thorough")
FIRST_LABELS = 10
"""Labels at which the first model is trained."""
GROWTH = 1.25
"""The next one is trained when there are so many times the labels, and at least `FIRST_LABELS` more."""
MOST_TRIES = 3
"""Processes that a job may take with it before it counts as failed."""
_DIED = (
    f"the training process ended {MOST_TRIES} times in the middle of it, most likely for want of memory; "
    "close other programs, or choose a smaller encoder in a new project"
)


class Job(NamedTuple):
    id: int
    kind: str
    data: dict[str, Any]
    labels: int


class AlreadyAsked(SequstError):
    """Such a job waits or runs."""


def ask(project: Project, kind: str, data: dict[str, Any] | None = None) -> int:
    """Add a job. Only one of training and one of looking for wrong labels may wait or run."""
    labels = project.counts()["labeled"]
    alike = TRAINING if kind in TRAINING else (kind,)
    with project.database.writing() as connection:
        rows = connection.execute("SELECT id, kind, status FROM jobs WHERE status IN ('waiting', 'running')").fetchall()
        if kind != EXPORT and any(
            row["kind"] in alike and (row["status"] == "waiting" or row["kind"] != QUICK) for row in rows
        ):
            raise AlreadyAsked("this is under way already; wait for it, or stop it")
        added = connection.execute(
            "INSERT INTO jobs (kind, data, status, labels, asked) VALUES (?, ?, 'waiting', ?, ?)",
            (kind, as_json(data or {}), labels, time.time()),
        )
        return int(added.lastrowid or 0)


def take(project: Project) -> Job | None:
    """The job to do now: the one that a process left when it died, the first that waits, or training that is due."""
    if left := _where(project, "status = 'running' ORDER BY id LIMIT 1"):
        return _job(left[0])
    waiting = _where(project, "status = 'waiting' ORDER BY id LIMIT 1")
    if not waiting and (due := due_at(project)) is not None and project.counts()["labeled"] >= due:
        if _can_train(project):
            with contextlib.suppress(AlreadyAsked):  # somebody was faster
                ask(project, QUICK)
            waiting = _where(project, "status = 'waiting' ORDER BY id LIMIT 1")
    if not waiting:
        return None
    [row] = waiting
    with project.database.writing() as connection:
        taken = connection.execute(
            "UPDATE jobs SET status = 'running', began = ?, labels = ? WHERE id = ? AND status = 'waiting'",
            (time.time(), project.counts()["labeled"], row["id"]),
        ).rowcount
    if not taken:  # it was stopped meanwhile
        return None
    return _job(_where(project, "id = ?", row["id"])[0])


def begin(project: Project, job: int, labels: int) -> None:
    """The job learns so many labels, which decides when the next one is due."""
    with project.database.writing() as connection:
        connection.execute("UPDATE jobs SET labels = ? WHERE id = ?", (labels, job))


def end(project: Project, job: int, status: str, told: str | None = None) -> None:
    with project.database.writing() as connection:
        connection.execute("UPDATE jobs SET status = ?, told = ? WHERE id = ? AND status = 'running'", (status, told, job))


def stop_all(project: Project) -> None:
    """Nothing waits or runs any more; automatic training goes on with the labels to come."""
    with project.database.writing() as connection:
        connection.execute("UPDATE jobs SET status = 'stopped' WHERE status IN ('waiting', 'running')")


def died(project: Project) -> None:
    """The worker has died. The next one goes on with its job, but not for ever. A server that was killed does not count."""
    with project.database.writing() as connection:
        connection.execute("UPDATE jobs SET tries = tries + 1 WHERE status = 'running'")
        connection.execute(
            "UPDATE jobs SET status = 'failed', told = ? WHERE status = 'running' AND tries >= ?", (_DIED, MOST_TRIES)
        )


def unfinished(project: Project) -> list[int]:
    """The jobs that wait or run."""
    return [row["id"] for row in _where(project, "status IN ('waiting', 'running')")]


def under_way(project: Project) -> Row | None:
    """The job that runs, or the first that waits."""
    rows = _where(project, "status IN ('running', 'waiting') ORDER BY status = 'waiting', id LIMIT 1")
    return rows[0] if rows else None


def problem(project: Project) -> str | None:
    """Why the last training failed, if it did."""
    rows = _where(project, "status IN ('done', 'failed', 'stopped') ORDER BY id DESC LIMIT 1")
    return rows[0]["told"] if rows and rows[0]["status"] == "failed" else None


def due_at(project: Project) -> int | None:
    """Labels at which the next model is trained; None where people train when they want to."""
    if not project.settings.train:
        return None
    rows = _where(project, "kind IN ('quick', 'default', 'thorough') AND status != 'waiting' ORDER BY id DESC LIMIT 1")
    labels = rows[0]["labels"] if rows else 0
    return max(labels + FIRST_LABELS, math.ceil(GROWTH * labels))


def _can_train(project: Project) -> bool:
    """Whether there is an entity to learn."""
    learnt = "" if project.settings.learn_judging else " AND NOT judging"
    row = project.database.reading.execute(
        f"SELECT 1 FROM sentences WHERE status = 'labels' AND entities != '[]'{learnt} LIMIT 1"
    ).fetchone()
    return row is not None


def _where(project: Project, condition: str, *given: Any) -> list[Row]:
    return project.database.reading.execute(f"SELECT * FROM jobs WHERE {condition}", given).fetchall()


def _job(row: Row) -> Job:
    return Job(row["id"], row["kind"], json.loads(row["data"]), row["labels"])
