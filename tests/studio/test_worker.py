from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sequst.corpus.generated import generate
from sequst.corpus.tags import spans
from sequst.studio import jobs
from sequst.studio.project import Project
from sequst.tagger.tagger import Tagger

from .conftest import Process, entities

GOLD = {sentence.words: [list(span) for span in spans(sentence.tags or ())] for sentence in generate().pool}


@pytest.fixture
def project(tmp_path: Path, tiny_encoder: str) -> Project:
    """Generated text, and an encoder that learns in seconds."""
    made = Project(tmp_path / "project")
    made.add_text([sentence.without_tags() for sentence in generate().pool[:300]], "generated")
    for name in ("company", "date", "person", "place", "work"):
        made.change_types({"op": "add", "name": name}, "")
    made.change_settings({"encoder": tiny_encoder}, "")
    return made


def label(studio: Process, count: int) -> None:
    for _ in range(count):
        given = studio.http.get("/api/next").json()
        found = entities(*GOLD[tuple(given["words"])])
        assert studio.http.post(f"/api/sentences/{given['id']}/labels", json=found).json()["saved"]


@pytest.mark.timeout(280)
def test_models_come_as_labels_do(project: Project, start: Callable[..., Process]) -> None:
    studio = start(project.folder)
    label(studio, 9)
    assert studio.state()["next_training"] == {"at": 10, "left": 1}
    assert studio.state()["model"] is None
    label(studio, 3)
    state = studio.wait_until(lambda state: state["model"] is not None and state["training"] is None)
    assert state["problem"] is None
    model = state["model"]
    assert (model["id"], model["kind"]) == (1, "quick")
    assert 10 <= model["labels"] <= 12  # the worker may have chosen the first sentences meanwhile
    assert state["next_training"]["at"] == model["labels"] + 10
    assert state["f1"]["low"] <= state["f1"]["value"] <= state["f1"]["high"]
    assert state["f1"]["sentences"] == model["judged"] >= 2
    assert set(state["forecast"]) == {"quick", "default", "thorough"}
    tagger = Tagger.load(project.folder / model["folder"])
    learnt = list(project.labeled(judging=False))
    assert set(tagger.types) <= {span.type for sentence in learnt for span in spans(sentence.tags or ())}
    rows = project.database.reading.execute("SELECT * FROM queue").fetchall()
    assert len(rows) >= 20
    chosen = [studio.http.get("/api/next", headers={"X-Tab": str(tab)}).json() for tab in range(8)]
    assert any(each["why"].startswith(("The model is unsure", "The passes")) for each in chosen)
    assert studio.http.get("/api/models/1/report").status_code == 200
    [told] = studio.http.get("/api/models").json()["models"]
    assert told["current"]
    assert studio.stop() == 0
    again = start(project.folder)  # it is where it was
    assert again.state()["model"] == model
    assert again.state()["training"] is None


@pytest.mark.timeout(280)
def test_a_worker_that_is_killed_goes_on(project: Project, start: Callable[..., Process]) -> None:
    studio = start(project.folder)
    label(studio, 10)
    studio.wait_until(lambda state: (state["training"] or {}).get("phase") == "teacher")
    [worker] = studio.worker()
    os.kill(worker, signal.SIGKILL)
    label(studio, 2)  # meanwhile
    state = studio.wait_until(lambda state: state["model"] is not None and state["training"] is None)
    assert state["model"]["labels"] == 10  # those it began with
    assert state["labeled"] == 12
    rows = project.database.reading.execute("SELECT kind, tries FROM jobs WHERE status = 'done'").fetchall()
    assert [tuple(row) for row in rows] == [("quick", 1)]


@pytest.mark.timeout(280)
def test_the_worker_ends_with_the_server(project: Project, start: Callable[..., Process]) -> None:
    studio = start(project.folder)
    label(studio, 2)
    [worker] = studio.worker()
    studio.kill()
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists():
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the worker is still there")
    again = start(project.folder)
    assert again.state()["labeled"] == 2


def test_an_encoder_that_cannot_be_loaded_is_told_at_once(project: Project, start: Callable[..., Process]) -> None:
    gone = project.folder.parent / "gone"
    shutil.copytree(project.settings.encoder, gone)
    project.change_settings({"encoder": str(gone)}, "")
    shutil.rmtree(gone)
    state = start(project.folder).wait_until(lambda state: state["problem"] is not None)
    assert state["problem"].startswith("The next sentences come at random: the encoder")
    assert "there is no such folder; name one" in state["problem"]
    assert project.raw(1)


def test_a_job_that_kills_its_process_is_given_up(project: Project) -> None:
    jobs.ask(project, "default")
    for _ in range(jobs.MOST_TRIES):
        job = jobs.take(project)
        assert job is not None
        assert job.kind == "default"
        assert jobs.problem(project) is None
        jobs.died(project)
    assert jobs.take(project) is None
    told = jobs.problem(project)
    assert told is not None
    assert "ended 3 times" in told


def test_training_is_due_after_a_number_of_labels_that_grows(project: Project) -> None:
    due = []
    rows = project.database.reading.execute("SELECT id FROM sentences LIMIT 130").fetchall()
    for labelled, row in enumerate(rows, 1):
        project.label(row["id"], "ann", [("person", 0, 1)])
        if (job := jobs.take(project)) is not None:
            jobs.end(project, job.id, "failed" if len(due) == 2 else "done", "no reason")
            due.append(labelled)
    assert due == [10, 20, 30, 40, 50, 63, 79, 99, 124]
    project.change_settings({"train": False}, "ann")
    assert jobs.due_at(project) is None


def test_nothing_is_learnt_from_sentences_without_entities(project: Project) -> None:
    for row in project.database.reading.execute("SELECT id FROM sentences LIMIT 12").fetchall():
        project.label(row["id"], "ann", [])
    assert jobs.take(project) is None


@pytest.mark.timeout(280)
def test_events_tell_the_page(project: Project, start: Callable[..., Process]) -> None:
    studio = start(project.folder)
    seen: list[Any] = []
    with studio.http.stream("GET", "/api/events") as events:
        lines = events.iter_lines()
        for line in lines:
            if line.startswith("data: "):
                seen.append(json.loads(line[6:])["labeled"])
                if len(seen) == 1:
                    label(studio, 1)
                elif seen[-1] == 1:
                    break
    assert seen[0] == 0
    assert studio.stop() == 0


def test_a_worker_at_rest_has_no_torch() -> None:
    """Neither has the server: both are small, and start at once."""
    for module in ("sequst.studio.worker", "sequst.studio.app", "sequst.cli.studio"):
        code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
