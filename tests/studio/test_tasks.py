from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import sequst
from sequst.corpus.generated import generate
from sequst.corpus.sentence import sentence_from_text
from sequst.corpus.tags import spans
from sequst.evaluation.spans import score_spans
from sequst.inputs import read_json
from sequst.studio import jobs, tasks
from sequst.studio.project import Project, sentence_of
from sequst.studio.schemas import StateAnswer
from sequst.studio.worker import Told
from sequst.training.configure import load_settings

from .conftest import ask

POOL = list({sentence.words: sentence for sentence in generate().pool}.values())[:120]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: str) -> Path:
    """Of a project with forty labels, ten of them for judging, and two trainings."""
    made = Project(tmp_path_factory.mktemp("tasks") / "project")
    made.add_text([sentence.without_tags() for sentence in POOL], "generated")
    for name in ("company", "date", "person", "place", "work"):
        made.change_types({"op": "add", "name": name}, "")
    made.change_settings({"encoder": tiny_encoder}, "")
    for _ in range(10):
        id_ = made.draw_judging()
        assert id_ is not None
        label(made, id_)
    for row in made.database.reading.execute("SELECT id FROM sentences WHERE status = 'raw' LIMIT 30").fetchall():
        label(made, row["id"])
    for _ in range(2):
        run(made, "quick")
    return made.folder


@pytest.fixture
def trained(folder: Path) -> Project:
    return Project(folder)


def label(project: Project, id_: int) -> None:
    gold = {sentence.words: sentence.tags for sentence in POOL}
    project.label(id_, "ann", spans(gold[sentence_of(project.row(id_)).words] or ()))


def run(project: Project, kind: str, **data: object) -> None:
    jobs.ask(project, kind, data)
    job = jobs.take(project)
    assert job is not None
    tasks.TASKS[job.kind](project, job, Told(job))
    jobs.end(project, job.id, "done")


def test_the_f1_that_is_told_is_that_of_the_judging_sentences(trained: Project) -> None:
    """By the library alone: the model in its folder, on the sentences that are marked."""
    told = ask(trained).get("/api/models").json()["models"][0]
    tagger = sequst.Tagger.load(trained.folder / told["folder"], min_confidence=0.0)
    judging = list(trained.labeled(judging=True))
    assert len(judging) == told["judged"] == 10
    scores = score_spans([each.tags or () for each in judging], [each.tags for each in tasks.judge(tagger, judging)])
    assert told["f1"]["value"] == pytest.approx(scores.total.f1)


def test_what_is_found_in_a_sentence_does_not_depend_on_its_own_labels(trained: Project) -> None:
    """Else the F1 would be flattered: the cut is fitted to labels."""
    judging = list(trained.labeled(judging=True))
    wrong = replace(judging[3], tags=("B-work",) * len(judging[3]))
    found = [
        tasks.judge(sequst.Tagger.load(trained.folder / "models/0002"), each)[3].to_dict()
        for each in (judging, [*judging[:3], wrong, *judging[4:]])
    ]
    assert found[0]["tags"] == found[1]["tags"]


def test_judging_sentences_are_not_learnt(trained: Project) -> None:
    facts = read_json(trained.folder / "models/0001/sequst.json")
    assert facts["labeled_sentences"] == 30
    assert facts["dev_set"].startswith("10 sentences marked for judging")


def test_the_state_with_models_is_as_documented(trained: Project) -> None:
    state = StateAnswer.model_validate(ask(trained).get("/api/state").json())
    assert state.model is not None
    assert len(state.curve) >= 2


def test_a_model_is_compared_with_another(trained: Project) -> None:
    told = ask(trained).get("/api/models/compare?a=2&b=1").json()
    assert told["sentences"] == 10
    assert told["gain"] == pytest.approx(told["a"]["f1"] - told["b"]["f1"])
    assert told["low"] <= told["gain"] <= told["high"]
    same = ask(trained).get("/api/models/compare?a=2&b=2").json()
    assert (same["gain"], same["differ"]) == (0, [])
    assert ask(trained).get("/api/models/compare?a=2&b=9").status_code == 404


def test_labels_that_look_wrong(trained: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    short = load_settings(None, ["teacher.min_steps=20"], effort="quick", encoder=trained.settings.encoder)
    monkeypatch.setattr(tasks, "_settings", lambda project, effort: short)
    run(trained, "suspects")
    client = ask(trained)
    found = client.get("/api/suspects").json()
    assert found["labels"] == 40
    assert found["suspects"], "a tagger that has learnt nothing agrees with everything"
    first = found["suspects"][0]
    id_ = first["sentence"]["id"]
    client.post(f"/api/sentences/{id_}/fine", json={"start": first["start"], "end": first["end"]})
    assert first not in client.get("/api/suspects").json()["suspects"]
    run(trained, "suspects")  # and it is not found again
    again = client.get("/api/suspects").json()["suspects"]
    assert (id_, first["start"], first["end"]) not in [(each["sentence"]["id"], each["start"], each["end"]) for each in again]


def test_entities_it_is_least_sure_of(trained: Project) -> None:
    found = ask(trained).get("/api/uncertain").json()["entities"]
    sure = [each["entity"]["confidence"] for each in found]
    assert sure == sorted(sure)
    assert all(each["sentence"]["labels"] is None for each in found)


@pytest.mark.parametrize("kind", ["folder", "onnx", "spacy"])
def test_models_are_exported(trained: Project, kind: str, tmp_path: Path) -> None:
    pytest.importorskip({"onnx": "onnxruntime", "spacy": "spacy"}.get(kind, "json"))
    client = ask(trained)
    asked = client.post("/api/models/2/export", json={"as": kind})
    assert asked.status_code == 202
    job = jobs.take(trained)
    assert job is not None
    tasks.TASKS[job.kind](trained, job, Told(job))
    jobs.end(trained, job.id, "done")
    exports = {each["as"]: each for each in client.get("/api/models").json()["models"][0]["exports"]}
    answer = client.get(f"/api/exports/{exports[kind]['name']}")
    zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path)
    place = tmp_path / exports[kind]["name"]
    text = "Can Jordan conduct The Planets in Paris on Friday?"
    expected = [(each.type, each.text) for each in sequst.Tagger.load(trained.folder / "models/0002").predict(text).entities]
    if kind == "folder":
        found = [(each.type, each.text) for each in sequst.Tagger.load(place).predict(text).entities]
    elif kind == "onnx":
        from sequst.integrations.onnx.tagger import OnnxTagger

        [prediction] = OnnxTagger.load(place).annotate([sentence_from_text(text)])
        found = [(each.type, each.text) for each in prediction.entities]
    else:
        import spacy

        found = [(each.label_, each.text) for each in spacy.load(place)(text).ents]
        assert isinstance(found, list)  # spaCy's own words
        return
    assert found == expected


def test_the_studio_serves_its_newest_model(trained: Project) -> None:
    text = "Can Jordan conduct The Planets in Paris on Friday?"
    with ask(trained) as client:
        found = client.post("/v1/predict", json={"texts": [text]}).json()["predictions"][0]
    prediction = sequst.Tagger.load(trained.folder / "models/0002").predict(text)
    assert found["tags"] == prediction.to_dict()["tags"]


def test_without_a_model_nothing_is_served(tmp_path: Path) -> None:
    answer = ask(Project(tmp_path / "new")).post("/v1/predict", json={"texts": ["x"]})
    assert (answer.status_code, answer.json()["error"]) == (409, "there is no model yet; label some sentences first")


def test_old_quick_models_leave_their_scores(folder: Path, trained: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "KEPT", 2)
    run(trained, "quick")
    assert not (trained.folder / "models/0001/config.json").exists()
    client = ask(trained)
    assert client.get("/api/models/1/report").status_code == 200
    answer = client.post("/api/models/1/export", json={"as": "folder"})
    assert answer.status_code == 404
    assert "removed to save room" in answer.json()["error"]
    assert len(client.get("/api/state").json()["curve"]) == 3


def test_learning_from_judging_sentences_ends_the_judging(trained: Project) -> None:
    trained.change_settings({"learn_judging": True}, "ann")
    run(trained, "quick")
    state = ask(trained).get("/api/state").json()
    assert state["f1"] is None
    assert state["model"]["judged"] == 0
