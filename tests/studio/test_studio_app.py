from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import sequst
from sequst.corpus.formats.registry import FORMATS
from sequst.studio import schemas
from sequst.studio.project import Project

from .conftest import TEXTS, ask, entities, ids

SENTENCE = {"id", "text", "words", "offsets", "suggestions", "why", "judging", "second", "labels", "who", "at", "skipped"}
STATE = {
    "id", "project", "version", "demo", "labeled", "judging", "skipped", "raw", "sentences", "types", "model", "training",
    "problem", "next_training", "forecast", "f1", "curve", "outlook", "few", "people", "agreement", "differences", "suspects",
    "uncertain", "settings",
}  # fmt: skip


def test_a_sentence_is_given_labelled_and_counted(client: TestClient, project: Project) -> None:
    given = client.get("/api/next").json()
    assert given.keys() == SENTENCE
    assert client.get("/api/next").json() == given
    answer = client.post(f"/api/sentences/{given['id']}/labels", json=entities(("person", 0, 1)))
    assert answer.json() == {"saved": True, "labeled": 1}
    state = client.get("/api/state").json()
    assert state.keys() == STATE
    assert (state["labeled"], state["judging"], state["raw"], state["skipped"]) == (1, 1, 5, 0)
    assert client.get("/api/next").json()["id"] != given["id"]


def test_nothing_is_left(client: TestClient) -> None:
    while (given := client.get("/api/next").json())["id"] is not None:
        client.post(f"/api/sentences/{given['id']}/skip", json={})
    assert given == {"id": None, "why": "every sentence is labelled or skipped; add text to go on"}
    assert client.get("/api/state").json()["skipped"] == len(TEXTS)


def test_undo_gives_the_sentence_back_to_the_tab(client: TestClient) -> None:
    given = client.get("/api/next", headers={"X-Tab": "1"}).json()
    client.post(f"/api/sentences/{given['id']}/labels", json=entities(("place", 0, 1)))
    later = client.get("/api/next", headers={"X-Tab": "1"}).json()
    undone = client.post("/api/undo", json={}, headers={"X-Tab": "1"}).json()
    assert undone["undone"] == "labels"
    assert undone["sentence"]["id"] == given["id"]
    assert undone["sentence"]["labels"] == [{"type": "place", "start": 0, "end": 1}]
    assert client.get("/api/next", headers={"X-Tab": "1"}).json()["id"] == given["id"] != later["id"]
    client.post("/api/undo", json={})
    assert client.post("/api/undo", json={}).json() == {"undone": None, "sentence": None}


def test_names_of_people_may_be_of_any_script(client: TestClient, project: Project) -> None:
    headers = {"X-Annotator": quote("Zoë 王")}
    client.post(f"/api/sentences/{ids(project)[TEXTS[0]]}/labels", json=entities(), headers=headers)
    assert client.get("/api/state").json()["people"] == [{"name": "Zoë 王", "labeled": 1, "now": False}]


def test_offsets_are_code_points_of_the_text(client: TestClient, project: Project) -> None:
    for text in TEXTS:
        told = client.get(f"/api/sentences/{ids(project)[text]}").json()
        assert [told["text"][start:end] for start, end in told["offsets"]] == told["words"]
        assert told["text"] == text


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"entities": [{"type": "person", "start": 0}]}, 422, "entities[0].end"),
        ({"entities": [{"type": "person", "start": "0", "end": 1}]}, 422, "entities[0].start"),
        ({"entities": [{"type": "person", "start": -1, "end": 1}]}, 422, "entities[0].start"),
        ({"entities": [{"type": "god", "start": 0, "end": 1}]}, 422, "unknown type 'god'"),
        ({"entities": [{"type": "person", "start": 0, "end": 99}]}, 422, "the sentence has the words"),
        ({"labels": []}, 422, "entities"),
        ([], 422, "valid dict"),
    ],
)
def test_labels_that_are_refused(client: TestClient, project: Project, body: Any, status: int, message: str) -> None:
    answer = client.post(f"/api/sentences/{ids(project)[TEXTS[0]]}/labels", json=body)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    assert project.counts()["labeled"] == 0


def test_sentences_that_are_not_there(client: TestClient) -> None:
    for method, path in (("POST", "99/labels"), ("POST", "99/skip"), ("GET", "99")):
        answer = client.request(method, f"/api/sentences/{path}", json=None if method == "GET" else {"entities": []})
        assert (answer.status_code, answer.json()) == (404, {"error": "there is no sentence 99"})
    for path in ("/api/models/1/report", "/api/exports/0001-onnx", "/api/exports/..%2F..%2Fstudio.db"):
        assert client.get(path).status_code == 404


# Who may ask


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)
def test_pages_of_other_sites_change_nothing(client: TestClient, project: Project, headers: dict[str, str]) -> None:
    answer = client.post(f"/api/sentences/{ids(project)[TEXTS[0]]}/labels", json=entities(), headers=headers)
    assert answer.status_code == 403
    assert project.counts()["labeled"] == 0


def test_forms_change_nothing(client: TestClient, project: Project) -> None:
    """A page may send a form anywhere without asking, but no JSON."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        for path in (
            f"/api/sentences/{ids(project)[TEXTS[0]]}/skip",
            "/api/undo",
            "/api/train",
            "/api/train/stop",
            "/api/settings",
        ):
            assert client.post(path, content="{}", headers={"content-type": kind}).status_code in (415, 422)
        assert client.put("/api/text", content="one", headers={"content-type": kind}).status_code == 415
    assert project.counts()["raw"] == len(TEXTS)


def test_its_own_page_may(client: TestClient, project: Project) -> None:
    headers = {"origin": "http://127.0.0.1:8080", "sec-fetch-site": "same-origin"}
    assert client.post(f"/api/sentences/{ids(project)[TEXTS[0]]}/skip", json={}, headers=headers).status_code == 200


def test_other_names_of_this_machine_are_refused(client: TestClient) -> None:
    assert client.get("/api/state", headers={"host": "rebound.example"}).status_code == 421


def test_with_a_token(project: Project, tmp_path: Path) -> None:
    token = "a" * 32
    (tmp_path / "token").write_text(token)
    client = ask(project, tmp_path / "token")
    assert client.get("/api/state").status_code == 401
    assert client.get("/").status_code == 200  # which asks for it
    assert client.post("/api/login", json={"token": "b" * 32}).status_code == 401
    assert client.get("/?token=wrong", follow_redirects=False).headers.get("set-cookie") is None
    assert client.get("/api/state", headers={"authorization": f"Bearer {token}"}).status_code == 200
    answer = client.get(f"/?token={token}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict"} <= set(answer.headers["set-cookie"].split("; "))
    assert client.get("/api/state").status_code == 200  # by the cookie
    other = ask(project, tmp_path / "token")
    assert other.post("/api/login", json={"token": token}).status_code == 200
    assert other.get("/api/state").status_code == 200
    assert other.post("/api/undo", json={}, headers={"origin": "http://evil.example"}).status_code == 403


def test_the_page_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    for path in ("/studio.css", "/main.js", "/icon.svg"):
        file = client.get(path)
        assert file.status_code == 200
        assert file.headers["x-content-type-options"] == "nosniff"
        assert "http://" not in file.text.replace("http://www.w3.org/", "")
        assert "https://" not in file.text
    assert client.get("/%2e%2e/project.py").status_code == 404
    assert client.get("/nothing").json() == {"error": "Not Found"}


# Files


def test_files_come_in(client: TestClient, project: Project) -> None:
    headers = {"content-type": "application/octet-stream"}
    answer = client.put("/api/text?name=more.txt", content="Lima is far\nAda flew to Oslo.\n\n", headers=headers)
    assert answer.json() == {"added": 1, "known": 1, "types": ["person", "place"], "notes": answer.json()["notes"]}
    labeled = b"Bern\tB-city\nsleeps\tO\n\n"
    assert client.put("/api/labeled?name=x.conll", content=labeled, headers=headers).json()["types"][-1] == "city"
    assert project.counts() | {"sentences": 8, "labeled": 1} == project.counts()
    bad = client.put("/api/labeled?name=x.conll", content=b"Bern\tI-city\nsleeps\tB\n\n", headers=headers)
    assert bad.status_code == 422
    assert "x.conll:2" in bad.json()["error"]
    assert client.put("/api/text?name=../../../etc/x.txt", content=b"far away", headers=headers).json()["added"] == 1
    assert client.put("/api/text", content=b" \n", headers=headers).status_code == 422
    assert client.put("/api/text", content=b"\xff\xfe\x00", headers=headers).status_code == 422


def test_long_lines_are_cut_into_sentences(client: TestClient, project: Project) -> None:
    headers, sentence = {"content-type": "application/octet-stream"}, "Then they all went to the city of {} and slept. "
    line = "".join(sentence.format(city) for city in ("Oslo", "Lima", "Bern", "Rome", "Kyiv"))
    told = client.put(
        "/api/text?name=book.txt", content=f"{line}\nA short line. It stays one.\n".encode(), headers=headers
    ).json()
    assert told["added"] == 6
    assert told["notes"][-1] == "book.txt: lines of more than 40 words were cut, 2 into 6 sentences"
    assert client.get("/api/sentences?status=raw&q=Bern").json()["sentences"][0]["text"] == sentence.format("Bern").strip()


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "text"])
def test_labels_go_out_in_every_format(format: str, client: TestClient, project: Project, tmp_path: Path) -> None:
    if format == "spacy":
        pytest.importorskip("spacy")
    if format == "datasets":
        pytest.importorskip("datasets")
    for text, found in ((TEXTS[0], [("person", 0, 1), ("place", 3, 4)]), (TEXTS[3], []), (TEXTS[5], [("place", 1, 2)])):
        project.label(ids(project)[text], "ann", found)
    answer = client.get(f"/api/export?format={format}")
    assert answer.status_code == 200, answer.text
    name = answer.headers["content-disposition"].partition('filename="')[2].rstrip('"')
    place = tmp_path / name
    place.write_bytes(answer.content)
    if name.endswith(".zip"):
        zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path)
        [place] = tmp_path.glob("*.ann")
    read = sequst.read(place, format=format)
    assert [(each.words, each.tags) for each in read] == [(each.words, each.tags) for each in project.labeled()]


def test_an_export_of_nothing_says_so(client: TestClient) -> None:
    answer = client.get("/api/export?only=judging")
    assert (answer.status_code, answer.json()) == (422, {"error": "there are no such sentences yet; label some first"})
    assert client.get("/api/export?format=docx").status_code == 422


# Review


def test_sentences_are_found(client: TestClient, project: Project) -> None:
    numbers = ids(project)
    project.label(numbers[TEXTS[0]], "ann", [("person", 0, 1), ("place", 3, 4)])
    project.label(numbers[TEXTS[3]], "ann", [])
    project.skip(numbers[TEXTS[4]], "ann")
    project.change_types({"op": "add", "name": "work"}, "ann")
    project.label(numbers[TEXTS[1]], "ann", [("place", 0, 1)])
    project.label(numbers[TEXTS[1]], "bob", [("person", 0, 1)])

    def found(query: str) -> list[str]:
        told = client.get(f"/api/sentences?{query}").json()
        assert told["total"] == len(told["sentences"])
        return [each["text"] for each in told["sentences"]]

    assert found("status=labeled") == [TEXTS[1], TEXTS[3], TEXTS[0]]
    assert found("status=labeled&type=person") == [TEXTS[1], TEXTS[0]]
    assert found("status=skipped") == [TEXTS[4]]
    assert found("status=raw&q=%25") == []
    assert found("status=all&q=OSLO") == [TEXTS[0], TEXTS[1], TEXTS[5]]
    assert found("status=labeled&before_type=work") == [TEXTS[3], TEXTS[0]]
    assert found("status=differ") == [TEXTS[1]]
    [differ] = client.get("/api/sentences?status=differ").json()["sentences"]
    assert [each["who"] for each in differ["others"]] == ["ann", "bob"]
    client.post(f"/api/sentences/{differ['id']}/labels", json={**entities(("place", 0, 1)), "decides": True})
    assert found("status=differ") == []
    assert client.get("/api/sentences?status=gone").status_code == 422
    assert client.get("/api/sentences?limit=0").status_code == 422


def test_agreement_of_two_people(client: TestClient, project: Project) -> None:
    numbers = ids(project)
    for text, one, other in ((TEXTS[0], [("person", 0, 1)], [("person", 0, 1)]), (TEXTS[1], [("place", 0, 1)], [])):
        project.label(numbers[text], "ann", one)
        project.label(numbers[text], "bob", other)
    told = client.get("/api/state").json()["agreement"]
    # 12 words: 1 person and 10 others alike, 1 place that only ann sees
    expected = (10 * 11 + 1) / 144
    assert told["sentences"] == 2
    assert told["kappa"] == pytest.approx((11 / 12 - expected) / (1 - expected))
    assert told["types"]["person"] == pytest.approx(1.0)
    assert told["types"]["place"] == pytest.approx(0.0)


def test_types_over_http(client: TestClient, project: Project) -> None:
    project.label(ids(project)[TEXTS[0]], "ann", [("person", 0, 1), ("place", 3, 4)])
    op = {"op": "rename", "name": "person", "to": "human"}
    told = client.post("/api/types", json={**op, "dry_run": True}).json()
    assert (told["entities"], told["sentences"]) == (1, 1)
    assert told["told"] == "1 entity in 1 sentence will be called human. Suggestions follow at once."
    assert [each["name"] for each in told["types"]] == ["person", "place"]
    client.post("/api/types", json=op)
    assert client.get("/api/types").json()["types"][0] == {
        "name": "human",
        "key": "1",
        "color": 0,
        "entities": 1,
        "sentences": 1,
        "earlier": 0,
    }
    assert client.post("/api/types", json={"op": "rename", "name": "human"}).status_code == 422
    assert client.post("/api/types", json={"op": "explode", "name": "human"}).status_code == 422


def test_the_api_is_documented(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {
        "/api/next", "/api/sentences/{id}/labels", "/api/sentences/{id}/skip", "/api/undo", "/api/state", "/api/events",
        "/api/train", "/api/export", "/api/suspects", "/api/types",
    } <= paths.keys()  # fmt: skip
    assert all(operation["description"] for each in paths.values() for operation in each.values())
    json.dumps(paths)


def test_answers_are_as_documented(client: TestClient, project: Project) -> None:
    """No key more, no key less, and each of its type."""
    numbers = ids(project)
    project.label(numbers[TEXTS[1]], "bob", [("place", 0, 1)])
    project.label(numbers[TEXTS[1]], "ann", [])
    schemas.SentenceAnswer.model_validate(client.get("/api/next").json())
    labels = client.post(f"/api/sentences/{numbers[TEXTS[0]]}/labels", json=entities(("person", 0, 1)))
    schemas.SavedAnswer.model_validate(labels.json())
    schemas.UndoneAnswer.model_validate(client.post("/api/undo", json={}).json())
    schemas.JobAnswer.model_validate(client.post("/api/train", json={"effort": "quick"}).json())
    schemas.StateAnswer.model_validate(client.get("/api/state").json())
    schemas.SentencesAnswer.model_validate(client.get("/api/sentences?status=all").json())
    schemas.TypesAnswer.model_validate(client.get("/api/types").json())
    schemas.TypesAnswer.model_validate(client.post("/api/types", json={"op": "add", "name": "work"}).json())
    headers = {"content-type": "application/octet-stream"}
    schemas.AddedAnswer.model_validate(client.put("/api/text?name=x.txt", content=b"one more", headers=headers).json())
    documented = client.get("/openapi.json").json()["components"]["schemas"]
    assert {"SentenceAnswer", "StateAnswer", "TypesAnswer"} <= documented.keys()


def test_training_is_asked_for_once(client: TestClient) -> None:
    assert client.post("/api/train", json={"effort": "default"}).status_code == 202
    again = client.post("/api/train", json={"effort": "default"})
    assert (again.status_code, again.json()) == (409, {"error": "this is under way already; wait for it, or stop it"})
    assert client.post("/api/train", json={"effort": "long"}).status_code == 422
    training = client.get("/api/state").json()["training"]
    assert (training["kind"], training["waiting"]) == ("default", True)
