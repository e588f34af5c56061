from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import Any

import pytest
from tests.service.conftest import CALIBRATION, Answer, Asgi, Capitals, MakeAsgi, expected

from sequst.corpus.sentence import Sentence
from sequst.service import guard, schemas
from sequst.service.model import ServedModel
from sequst.tagger.prediction import as_sentences

TEXTS = ["Can Sydney conduct NASA in verona?", "", "nothing here", "\U0001f600 Émile Met 東京"]


def records(texts: list[str], **options: Any) -> list[dict[str, Any]]:
    return [{**expected(as_sentences(text)[0][0], **options), "id": number} for number, text in enumerate(texts, 1)]


def ask(asgi: MakeAsgi, body: object, path: str = "/v1/predict", **options: Any) -> Answer:
    async def main() -> Answer:
        return await asgi().post(path, body, **options)

    return asyncio.run(main())


def test_texts_and_sentences_get_the_records_of_predict(asgi: MakeAsgi) -> None:
    found = ask(asgi, {"texts": TEXTS})
    assert found.status == 200
    assert found.json == {"predictions": records(TEXTS)}
    assert any(record["left_out"] for record in found.json["predictions"])
    found = ask(asgi, {"sentences": [["Two Words", "b"], []]})
    assert found.json == {"predictions": [expected(Sentence(("Two Words", "b"), None, 1)), expected(Sentence((), None, 2))]}


@pytest.mark.parametrize("cut", [0, 0.2, 1])
def test_each_request_has_its_confidence_cut(asgi: MakeAsgi, cut: float) -> None:
    assert ask(asgi, {"texts": TEXTS, "min_confidence": cut}).json == {"predictions": records(TEXTS, threshold=float(cut))}


def test_probabilities_come_with_what_makes_confidences_of_them(asgi: MakeAsgi) -> None:
    found = ask(asgi, {"texts": ["Abc NASA"], "probabilities": True}).json
    assert found["predictions"][0]["probabilities"] == pytest.approx([1 - 1 / 3, 1.0])
    assert found["entity_calibration"] == CALIBRATION.to_dict()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Invalid JSON"),
        (b"{", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON: recursion limit"),
        (b'{"texts": ["\\ud800"]}', "Invalid JSON"),
        (b'{"texts": ["\\u0000"]}', r"texts\[0\]: found a NUL character"),
        (b'{"texts": NaN}', "texts: "),
        (b"[]", "the body: |Input should be an object"),
        ({}, "give either texts or sentences"),
        ({"texts": ["a"], "sentences": [["a"]]}, "give either texts or sentences"),
        ({"texts": "a"}, "texts: Input should be a valid array"),
        ({"texts": ["a", 1]}, r"texts\[1\]: Input should be a valid string"),
        ({"sentences": [["a", ""]]}, r"sentences\[0\]\[1\]: String should have at least 1"),
        ({"texts": ["a"], "min_confidence": 1.5}, "min_confidence: Input should be less than or equal to 1"),
        ({"texts": ["a"], "uncertainty": "yes"}, "uncertainty: Input should be a valid boolean"),
        ({"texts": ["a"], "path": "/etc/passwd"}, "path: Extra inputs are not permitted"),
        ({"texts": ["a"] * (schemas.MOST_TEXTS + 1)}, "texts: List should have at most 10000 items"),
        ({"texts": ["a " * 20_000] * 5 + ["a"]}, "100,001 words; at most 100,000 in a request"),
        ({"texts": ["", "a " * 20_001]}, r"texts\[1\]: found 20,001 words; expected at most 20,000 in a text; cut it"),
        ({"texts": ["x" * 99_999] * 11}, "1,099,989 characters; at most 1,000,000 in a request"),
        ({"texts": ["a " * (schemas.MOST_UNCERTAIN + 1)], "uncertainty": True}, "2,001 words; at most 2,000"),
        ({"texts": ["a", "x" * 100_001]}, r"texts\[1\]: found a word of 100,001 characters"),
    ],
)  # fmt: skip
def test_a_request_that_is_wrong_is_told_where(asgi: MakeAsgi, body: object, message: str) -> None:
    found = ask(asgi, body)
    assert found.status == 422
    assert re.search(message, found.error), found.error
    assert len(found.error) < 2000


def test_an_export_has_no_uncertainty(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi(lambda: Capitals().served(uncertainty=False))
        for path, body in (("/v1/predict", {"texts": ["a"], "uncertainty": True}), ("/v1/stream?uncertainty=true", b"")):
            found = await own.post(path, body)
            assert (found.status, "ONNX export" in found.error) == (422, True)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_web_page_could_send_elsewhere_is_refused(asgi: MakeAsgi, kind: str) -> None:
    assert ask(asgi, {"texts": ["a"]}, headers={"content-type": kind}).status == 415


def test_compressed_bodies_are_refused(asgi: MakeAsgi) -> None:
    assert ask(asgi, {"texts": ["a"]}, headers={"content-encoding": "gzip"}).status == 415


def test_large_bodies_are_refused_before_they_are_read(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi(body_mb=0.001)
        found = await own.post("/v1/predict", b"x" * 10, headers={"content-length": "1001"})
        assert found.status == 413
        found = await own.post("/v1/predict", b"", pieces=[b"x" * 600] * 50)
        assert found.status == 413
        assert own.app._held == 0
        texts = {"texts": ["a"] * 180}
        assert (await own.post("/v1/predict", texts)).status == 200

    asyncio.run(main())


def test_bodies_of_all_requests_together_are_limited(asgi: MakeAsgi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_HELD", 1500)

    async def main() -> None:
        own, more = asgi(), asyncio.Event()
        body = json.dumps({"texts": ["a" * 970]}).encode()
        pieces = iter([None, more])

        async def hurry() -> None:
            if (event := next(pieces)) is not None:
                await event.wait()

        slow = asyncio.create_task(own.post("/v1/predict", b"", pieces=[body, b""], hurry=hurry))
        await asyncio.sleep(0.01)  # it has sent all, but not said so
        assert own.app._held == len(body)
        refused = await own.post("/v1/predict", body)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        more.set()
        assert (await slow).status == 200
        assert own.app._held == 0
        assert (await own.post("/v1/predict", body)).status == 200

    asyncio.run(main())


def test_a_body_that_does_not_come_is_not_waited_for(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi(seconds=0.05)
        found = await own.post("/v1/predict", b"", pieces=[b"{", b"}"], hurry=asyncio.Event().wait)
        assert (found.status, found.error) == (408, "the body did not arrive within 0.05 seconds")

    asyncio.run(main())


def test_an_answer_that_takes_too_long_and_a_full_queue_are_told_apart(asgi: MakeAsgi) -> None:
    async def main() -> None:
        opened = threading.Event()
        own = asgi(Capitals(lambda: bool(opened.wait(10)) and None).served, seconds=0.3, queue=1)
        tasks = [asyncio.create_task(own.post("/v1/predict", {"texts": ["a"]})) for _ in range(3)]
        found = sorted([await each for each in tasks], key=lambda each: each.status)
        assert [each.status for each in found] == [503, 504, 504]
        assert found[0].headers["retry-after"] == "1"
        assert "within 0.3 seconds" in found[1].error
        opened.set()

    asyncio.run(main())


def test_a_client_that_hangs_up_costs_nothing_more(asgi: MakeAsgi) -> None:
    async def main() -> None:
        opened, gone = threading.Event(), asyncio.Event()
        capitals = Capitals(lambda: bool(opened.wait(10)) and None)
        own = asgi(capitals.served)
        first = asyncio.create_task(own.post("/v1/predict", {"texts": ["First"]}))
        while not capitals.batches:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(own.post("/v1/predict", {"texts": ["Second"]}, gone=gone))
        while not own.service.batcher.waiting:
            await asyncio.sleep(0.01)
        gone.set()
        assert (await second).status == 499
        assert own.service.batcher.waiting == 0
        opened.set()
        assert (await first).status == 200
        assert capitals.batches == [[("First",)]]

    asyncio.run(main())


TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN}", 200), ("Basic dXNlcjowMTIzNDU2Nzg5YWJjZGVm", 200), (None, 401),
        ("Bearer", 401), (f"Bearer {TOKEN}0", 401), (f"Bearer {TOKEN[:-1]}", 401), (f"Token {TOKEN}", 401), ("Basic ???", 401),
        ("Bearer \xff\xfe", 401), (TOKEN, 401),
    ],
)  # fmt: skip
def test_a_token_is_needed_for_all_that_says_something(asgi: MakeAsgi, given: str | None, status: int) -> None:
    async def main() -> None:
        own = asgi(token=TOKEN)
        headers = {} if given is None else {"authorization": given}
        for method, path in (("GET", "/v1/model"), ("GET", "/metrics"), ("POST", "/v1/predict"), ("POST", "/v1/stream")):
            body = {"texts": ["a"]} if path == "/v1/predict" else b""
            found = await own.ask(method, path, body, headers=headers)
            assert found.status == status, (path, found.body)
            assert status == 200 or found.headers["www-authenticate"] == "Bearer"
        assert (await own.get("/docs/../v1/model")).status == 404
        for path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/docs/static/swagger-ui.css"):
            assert (await own.get(path)).status == 200

    asyncio.run(main())


def test_without_a_token_other_names_than_its_own_are_refused(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi()
        for host in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1"):
            assert (await own.get("/v1/model", headers={"host": host})).status == 200
        for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8000"):
            assert (await own.get("/v1/model", headers={"host": host})).status == 421
        assert (await asgi(token=TOKEN).get("/healthz", headers={"host": "behind.example"})).status == 200

    asyncio.run(main())


def test_reloading_switches_or_says_why_not(asgi: MakeAsgi) -> None:
    async def main() -> None:
        found: list[ServedModel | Exception] = [Capitals().served(), RuntimeError("broken"), Capitals().served()]

        def load() -> ServedModel:
            model = found.pop(0)
            if isinstance(model, Exception):
                from sequst.errors import SequstError

                raise SequstError(str(model))
            return model

        own = asgi(load, token=TOKEN)
        headers = {"authorization": f"Bearer {TOKEN}"}
        before = own.service.model
        broken = await own.post("/v1/reload", b"", headers=headers)
        assert (broken.status, broken.error) == (409, "the old model stays: broken")
        assert own.service.model is before
        assert (await own.post("/v1/predict", {"texts": ["a"]}, headers=headers)).status == 200
        assert (await own.post("/v1/reload", b"", headers=headers)).json["types"] == ["name"]
        assert own.service.model is not before
        shown = (await own.get("/metrics", headers=headers)).body.decode()
        assert 'sequst_reloads_total{result="failed"} 1.0' in shown
        assert 'sequst_reloads_total{result="loaded"} 1.0' in shown
        assert (await asgi().post("/v1/reload", b"")).status == 403

    asyncio.run(main())


def test_metrics_count_what_happened(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi()
        await own.post("/v1/predict", {"texts": ["a b c", "d"]})
        await own.post("/v1/predict", b"{")
        await own.get("/never/heard/of")
        shown = (await own.get("/metrics")).body.decode().splitlines()
        for line in (
            'sequst_requests_total{path="/v1/predict",status="200"} 1.0',
            'sequst_requests_total{path="/v1/predict",status="422"} 1.0',
            'sequst_requests_total{path="other",status="404"} 1.0',
            'sequst_errors_total{status="404"} 1.0',
            "sequst_words_total 4.0",
            "sequst_sentences_total 2.0",
            "sequst_queue_requests 0.0",
            "sequst_batch_words_sum 4.0",
        ):
            assert line in shown

    asyncio.run(main())


def test_a_fault_of_ours_is_told_apart_and_harms_no_other(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi()
        with pytest.raises(ValueError, match="poisoned"):  # the server's log has it
            await own.post("/v1/predict", {"texts": ["poison"]})
        assert (await own.post("/v1/predict", {"texts": ["fine"]})).status == 200

    asyncio.run(main())


def test_the_service_describes_itself(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own = asgi()
        described = (await own.get("/openapi.json")).json
        assert set(described["paths"]) == {
            "/v1/predict", "/v1/stream", "/v1/model", "/v1/reload", "/healthz", "/readyz", "/metrics",
        }  # fmt: skip
        body = described["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["$ref"].removeprefix("#/components/schemas/") in described["components"]["schemas"]
        page = (await own.get("/docs")).body.decode()
        assert "://" not in page.replace("http://www.w3.org", "")  # it works without a network
        assert (await own.get("/docs/static/swagger-ui-bundle.js")).status == 200
        model = (await own.get("/v1/model")).json
        assert model["types"] == ["name"]
        own.service.stopping.set()
        assert (await own.get("/readyz")).status == 503

    asyncio.run(main())


def test_unknown_paths_and_methods_are_errors_as_all_others(asgi: MakeAsgi) -> None:
    async def main() -> None:
        own: Asgi = asgi()
        assert (await own.get("/nothing")).json == {"error": "Not Found"}
        refused = await own.get("/v1/predict")
        assert (refused.status, refused.headers["allow"]) == (405, "POST")

    asyncio.run(main())
