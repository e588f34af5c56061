"""The requests in the folder label_studio are those of Label Studio 1.23.2, recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import Answer, Asgi, Capitals, MakeAsgi

from sequst.corpus.formats.read import read
from sequst.errors import SequstError
from sequst.service import collected as module
from sequst.service.collected import Collected
from sequst.service.labelstudio import Interface, add_label_studio, interface_for

RECORDED = Path(__file__).parent / "label_studio"
TYPES = ["name", "person", "place"]


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return found


class Backend:
    """A service with Label Studio's routes; `person` is the type that its model finds."""

    def __init__(self, asgi: MakeAsgi, folder: Path) -> None:
        capitals = Capitals()
        from dataclasses import replace

        def served() -> Any:
            model = capitals.served()

            def annotate(sentences: Any, alone: bool) -> Any:
                found = [capitals.prediction(sentence) for sentence in sentences]
                return [replace(each, tags=tuple(tag.replace("name", "person") for tag in each.tags)) for each in found]

            return replace(model, types=["company", "person"], annotate=annotate)

        self.collected: Collected | None = None

        def add(app: Any, service: Any) -> None:
            self.collected = Collected(folder)
            add_label_studio(app, service, self.collected)

        self.own: Asgi = asgi(served, add=add)

    async def send(self, name: str, change: Callable[[dict[str, Any]], None] = lambda body: None) -> Answer:
        request = recorded(name)
        change(request.get("body") or {})
        return await self.own.ask(request["method"], request["path"], request.get("body") or b"")

    def close(self) -> None:
        assert self.collected is not None
        self.collected._lock.close()


def test_a_project_is_set_up_and_gets_suggestions(asgi: MakeAsgi, tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path / "labels")
        assert (await backend.send("health")).json["status"] == "UP"
        assert (await backend.send("setup")).json == {"model_version": "capitals-1"}
        assert (await backend.send("setup_extra_params_from_ui")).status == 200
        assert (await backend.send("versions")).json == {"versions": ["capitals-1"]}
        drawing = (await backend.send("predict_interactive_ui")).json["results"]
        assert drawing == [{"result": [], "model_version": "capitals-1"}]  # or each region would be there twice
        for name in ("predict", "predict_batch"):
            answer = await backend.send(name)
            tasks = recorded(name)["body"]["tasks"]
            results = answer.json["results"]
            assert len(results) == len(tasks)
            for task, result in zip(tasks, results, strict=True):
                assert result["model_version"] == "capitals-1"
                text = task["data"]["text"]
                for region in result["result"]:
                    value = region["value"]
                    assert (region["from_name"], region["to_name"], region["type"]) == ("label", "text", "labels")
                    assert value["labels"] == ["person"]
                    assert text[value["start"] : value["end"]] == value["text"]
                    assert value["text"][0].isupper()
                scores = [region["score"] for region in result["result"]]
                assert result["score"] == min(scores, default=1.0)
        first = (await backend.send("predict")).json["results"][0]["result"]
        assert [region["value"]["text"] for region in first] == []  # "Marie" is capital by a fifth: below the cut
        backend.close()

    asyncio.run(main())


def test_an_interface_that_does_not_fit_is_refused(asgi: MakeAsgi, tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path / "labels")
        answer = await backend.send("setup_other_names")
        assert (answer.status, answer.error) == (422, "none of its labels (PER, LOC) is a type of the model (company, person)")
        assert "no <Labels" in (await backend.send("setup_with_other_types")).error
        backend.close()

    asyncio.run(main())


def test_a_task_that_cannot_be_tagged_spoils_no_other(asgi: MakeAsgi, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path / "labels")

        def spoil(body: dict[str, Any]) -> None:
            body["tasks"] = tasks = [{**body["tasks"][0], "id": i, "data": {"text": "NASA"}} for i in range(4)]
            tasks[0]["data"] = {}
            tasks[1]["data"]["text"] = "a\0"
            tasks[2]["data"]["text"] = 5

        results = (await backend.send("predict_batch", spoil)).json["results"]
        assert len(results) == 4
        assert results[:2] == [[], []]
        assert [len(each["result"]) for each in results[2:]] == [0, 1]
        assert all(each["model_version"] for each in results[2:])
        assert sum("no suggestions for task" in message for message in caplog.messages) == 2
        backend.close()

    asyncio.run(main())


def test_labels_are_matched_by_name_whatever_their_case() -> None:
    config = """<View><Choices name="c" toName="t"/><Labels name="l" toName="t"><Label value="PERSON"/>
      <Label value="Ort" alias="place"/></Labels><Text name="t" value="$body"/></View>"""
    assert Interface.read(config, TYPES) == Interface("l", "t", "body", {"person": "PERSON", "place": "place"})
    made = Interface.read(interface_for(["a<b", 'c"d']), ["a<b", 'c"d'])
    assert made == Interface("label", "text", "text", {"a<b": "a<b", 'c"d': 'c"d'})


@pytest.mark.parametrize(
    "config",
    [
        "", "<View>", '<!DOCTYPE a [<!ENTITY b "c">]><View/>', "<View/>", '<View><Labels name="l" toName="t"/></View>',
        '<View><Labels toName="t"><Label value="name"/></Labels><Text name="t" value="fixed"/></View>', "\ud800",
    ],
)  # fmt: skip
def test_an_interface_without_labels_is_an_error(config: str) -> None:
    with pytest.raises(SequstError):
        Interface.read(config, TYPES)


def tasks_in(folder: Path, project: int = 1) -> dict[int, list[tuple[int, list[tuple[int, int]]]]]:
    """Number of each task -> its annotations, their numbers and regions."""
    found = json.loads((folder / f"project-{project}.json").read_text(encoding="utf-8"))
    return {
        task["id"]: [
            (each["id"], [(region["value"]["start"], region["value"]["end"]) for region in each["result"]])
            for each in task["annotations"]
        ]
        for task in found
    }


def test_what_people_submit_change_and_delete_is_collected(asgi: MakeAsgi, tmp_path: Path) -> None:
    folder = tmp_path / "labels"

    async def main() -> None:
        backend = Backend(asgi, folder)
        for name in ("webhook_annotation_created", "webhook_annotation_created_emoji", "webhook_annotation_created_skipped"):
            assert (await backend.send(name)).status == 200
        assert tasks_in(folder) == {1: [(1, [(0, 11), (22, 27)])], 3: [(2, [(30, 34)])], 4: [(3, [])]}
        await backend.send("webhook_annotation_updated")
        await backend.send("webhook_annotation_updated")
        assert tasks_in(folder)[1] == [(1, [(0, 11)])]
        await backend.send("webhook_annotations_deleted")
        assert set(tasks_in(folder)) == {1, 4}
        await backend.send("webhook_annotations_created")
        assert {number: [id_ for id_, _ in each] for number, each in tasks_in(folder).items()} == {
            1: [1, 4], 2: [5], 3: [6], 4: [3, 7], 5: [8], 6: [9],
        }  # fmt: skip
        await backend.send("webhook_tasks_deleted")
        assert set(tasks_in(folder)) == {1, 2, 3, 4, 5}
        for name in ("webhook_no_payload", "webhook_project_updated", "webhook_start_training", "webhook_tasks_created"):
            assert (await backend.send(name)).status == 200
        backend.close()
        again = Backend(asgi, folder)  # another process goes on where this one was
        await again.send("webhook_annotation_created_emoji")
        assert tasks_in(folder)[3] == [(2, [(30, 34)]), (6, [(2, 4), (11, 16), (21, 24), (30, 34)])]
        again.close()

    asyncio.run(main())


def test_training_reads_what_was_collected(asgi: MakeAsgi, tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path)
        for name in ("webhook_annotation_created", "webhook_annotation_created_ui_emoji"):
            await backend.send(name)
        backend.close()

    asyncio.run(main())
    every = [sentence for path in tmp_path.glob("project-*.json") for sentence in read(path)]
    found = {sentence.excerpt(0, len(sentence)): sentence for sentence in every}
    assert found["Marie Curie worked in Paris."].tags == ("B-person", "I-person", "O", "O", "B-place", "O")
    [emoji] = [sentence for text, sentence in found.items() if "Bob" in text]
    tagged = {word for word, tag in zip(emoji.words, emoji.tags or (), strict=True) if tag != "O"}
    assert {"Alice", "Bob", "in"} <= tagged


def test_a_text_with_line_ends_is_read_by_its_places(asgi: MakeAsgi, tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path)
        await backend.send("webhook_annotation_created_ui_crlf")
        backend.close()

    asyncio.run(main())
    [path] = tmp_path.glob("project-*.json")
    [sentence] = read(path)
    tagged = {word for word, tag in zip(sentence.words, sentence.tags or (), strict=True) if tag != "O"}
    assert tagged == {"Carl", "then", "Emil"}


def test_labels_that_cannot_be_written_are_told_and_kept(
    asgi: MakeAsgi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY", 0.05)
    full = True
    write = module._write

    def refuse(path: Path, text: str) -> None:
        if full:
            raise SequstError(f"cannot write {path}: the disk is full or a quota is reached")
        write(path, text)

    monkeypatch.setattr(module, "_write", refuse)

    async def main() -> None:
        nonlocal full
        backend = Backend(asgi, tmp_path)
        for name in ("webhook_annotation_created", "webhook_annotation_created_emoji"):
            answer = await backend.send(name)
            assert answer.status == 507
            assert "the disk is full" in answer.error
        assert not (tmp_path / "project-1.json").exists()
        full = False
        for _ in range(100):
            await asyncio.sleep(0.02)
            if (tmp_path / "project-1.json").exists():
                break
        assert set(tasks_in(tmp_path)) == {1, 3}
        assert (await backend.send("webhook_annotation_updated")).status == 200
        backend.close()

    asyncio.run(main())


def test_events_at_the_same_time_are_all_there(asgi: MakeAsgi, tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path)

        def numbered(number: int) -> Callable[[dict[str, Any]], None]:
            def change(body: dict[str, Any]) -> None:
                body["annotation"].update(id=number, task=number)
                body["task"]["id"] = number

            return change

        await asyncio.gather(*(backend.send("webhook_annotation_created", numbered(i)) for i in range(1, 60)))
        assert set(tasks_in(tmp_path)) == set(range(1, 60))
        backend.close()

    asyncio.run(main())


def test_a_number_is_a_text_and_a_task_is_one_task(asgi: MakeAsgi, tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path)
        await backend.send("webhook_annotation_created", lambda body: body["task"]["data"].update(text=5, id=7))
        assert json.loads((tmp_path / "project-1.json").read_text())[0]["data"] == {"text": "5", "id": 7}
        other = await backend.send("webhook_annotation_updated", lambda body: body["task"].update(created_at="2001"))
        assert (other.status, "another Label Studio needs another --labels folder" in other.error) == (422, True)
        assert (await backend.send("webhook_annotation_updated")).status == 200
        backend.close()

    asyncio.run(main())


def test_what_is_not_written_at_the_end_is_written_or_told(
    asgi: MakeAsgi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = module._write

    def refuse(path: Path, text: str) -> None:
        raise SequstError("the disk is full")

    async def main() -> None:
        for room in (True, False):
            backend = Backend(asgi, tmp_path / str(room))
            monkeypatch.setattr(module, "_write", refuse)
            assert (await backend.send("webhook_annotation_created")).status == 507
            monkeypatch.setattr(module, "_write", write if room else refuse)
            await backend.own.service.at_end[0]()
            assert (tmp_path / str(room) / "project-1.json").exists() == room
        assert "labels of project 1 are lost here; export them from Label Studio: the disk is full" in caplog.messages

    asyncio.run(main())


def test_refusals_are_logged_for_who_does_not_see_them(asgi: MakeAsgi, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        own = asgi(token="0123456789abcdef", body_mb=0.001)
        own.app.large = ("/webhook",)
        for _ in range(3):
            assert (await own.post("/webhook", {"action": "x"})).status == 401
        headers = {"authorization": "Bearer 0123456789abcdef"}
        assert (await own.post("/webhook", b" " * 9_999, headers=headers)).status == 404
        assert (await own.post("/webhook", b" " * 10_001, headers=headers)).status == 413
        assert (await own.post("/v1/predict", {"texts": []})).status == 401
        told = [message for message in caplog.messages if "was refused" in message]
        assert [message.split(":")[0] for message in told] == [
            f"/webhook was refused with {status}" for status in (401, 404, 413)
        ]
        assert "0123456789abcdef" not in "".join(caplog.messages)

    asyncio.run(main())


@pytest.mark.parametrize("content", ["{}", "[1]", '[{"id": "a"}]', '[{"id": 1, "data": 2, "annotations": []}]', "no JSON"])
def test_a_file_of_others_is_not_overwritten(tmp_path: Path, content: str) -> None:
    (tmp_path / "project-1.json").write_text(content, encoding="utf-8")
    with pytest.raises(SequstError, match=r"project-1\.json"):
        Collected(tmp_path)


def test_two_servers_do_not_collect_into_one_folder(tmp_path: Path) -> None:
    first = Collected(tmp_path)
    with pytest.raises(SequstError, match="another server collects labels there"):
        Collected(tmp_path)
    first._lock.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["annotation"].pop("id"), lambda body: body["annotation"].update(task="1"),
        lambda body: body["task"].pop("data"), lambda body: body["task"].update(id=99), lambda body: body.pop("action"),
        lambda body: body["annotation"].update(result=[1]), lambda body: body["annotation"].update(task=[1]),
        lambda body: body["task"].update(id=[1]), lambda body: body["project"].update(id=10**40),
        lambda body: body["annotation"].update(result=[{"value": {"start": float("nan")}}]),
    ],
)  # fmt: skip
def test_an_event_that_is_no_event_changes_nothing(asgi: MakeAsgi, tmp_path: Path, change: Any) -> None:
    async def main() -> None:
        backend = Backend(asgi, tmp_path)
        assert (await backend.send("webhook_annotation_created", change)).status == 422
        assert not list(tmp_path.glob("project-*"))
        backend.close()

    asyncio.run(main())
