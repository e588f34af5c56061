from __future__ import annotations

import asyncio
import json
import random
import threading
from typing import Any

import pytest
from tests.service.conftest import Answer, Capitals, MakeAsgi, expected

from sequst.corpus.sentence import Sentence
from sequst.tagger.prediction import as_sentences


def lines(answer: Answer) -> list[Any]:
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.decode().splitlines()]


def of_text(text: str, id_: int | str, **options: Any) -> dict[str, Any]:
    return {**expected(as_sentences(text)[0][0], **options), "id": id_}


@pytest.mark.parametrize("seed", range(5))
def test_lines_are_answered_in_order_however_they_are_cut(asgi: MakeAsgi, seed: int) -> None:
    rng = random.Random(seed)
    texts = [f"Line {i} " + "Ünï 東 " * rng.randrange(5) for i in range(1, 400)]
    body = "\n".join(json.dumps({"text": text}, ensure_ascii=rng.random() < 0.5) for text in texts).encode() + b"\n" * (
        seed % 2
    )
    cuts = sorted(rng.sample(range(len(body)), 60))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]

    async def main() -> None:
        answer = await asgi().post("/v1/stream", b"", pieces=pieces)
        assert lines(answer) == [of_text(text, i) for i, text in enumerate(texts, 1)]

    asyncio.run(main())


def test_a_line_that_cannot_be_tagged_is_told_in_its_place(asgi: MakeAsgi) -> None:
    body = b"""{"text": "First", "id": "a"}
nonsense

{"words": ["Two Words", "b"]}
"text"
{}
{"text": 1}
{"text": "\\ud800"}
\xff
{"words": ["a", ""]}
{"text": "LONG"}
{"text": "Last", "id": 7}""".replace(b"LONG", b"x" * 2000)
    messages = {
        1: "invalid JSON", 3: "expected an object", 4: "the keys none", 5: "a string as text", 6: "half a character",
        7: "invalid JSON", 8: "non-empty", 9: "shorter lines",
    }  # fmt: skip

    async def main() -> None:
        found = lines(await asgi(body_mb=0.001).post("/v1/stream?min_confidence=0", body))
        assert [each.get("line", each.get("id")) for each in found] == ["a", 2, 4, 5, 6, 7, 8, 9, 10, 11, 7]
        assert found[0] == of_text("First", "a", threshold=0.0)
        assert found[2] == expected(Sentence(("Two Words", "b"), None, 4), 0.0)
        for number, message in messages.items():
            assert message in found[number]["error"]

    asyncio.run(main())


def test_a_line_longer_than_a_body_is_left_out_and_never_held(asgi: MakeAsgi) -> None:
    pieces = [b'{"text": "First"}\n{"text": "', *[b"x" * 900] * 20, b'"}\n{"text": "Last"}']

    async def main() -> None:
        found = lines(await asgi(body_mb=0.001).post("/v1/stream", b"", pieces=pieces))
        assert [each.get("id") for each in found] == [1, None, 3]
        endless = lines(await asgi(body_mb=0.001).post("/v1/stream", b"", pieces=pieces[:-1]))
        assert [each.get("line") for each in endless] == [None, 2]

    asyncio.run(main())


def test_each_line_is_answered_as_soon_as_it_is_there(asgi: MakeAsgi) -> None:
    async def main() -> None:
        capitals, waits = Capitals(), asyncio.Semaphore(1)
        pieces = [f'{{"text": "Line {i}"}}\n'.encode() for i in range(3)]

        async def hurry() -> None:
            await waits.acquire()

        own = asgi(capitals.served)
        asked = asyncio.create_task(own.post("/v1/stream", b"", pieces=pieces, hurry=hurry))
        for i in range(3):
            while len(capitals.batches) <= i:
                await asyncio.sleep(0.005)
            waits.release()
        assert len(lines(await asked)) == 3

    asyncio.run(main())


def test_with_uncertainty_groups_do_not_depend_on_the_network(asgi: MakeAsgi) -> None:
    body = [f'{{"text": "Line {i}"}}\n'.encode() for i in range(300)]

    async def groups(pieces: list[bytes]) -> list[int]:
        capitals = Capitals()
        await asgi(capitals.served).post("/v1/stream?uncertainty=true", b"", pieces=pieces)
        return [len(batch) for batch in capitals.batches]

    assert asyncio.run(groups(body)) == asyncio.run(groups([b"".join(body)])) == [128, 128, 44]


def test_a_stream_waits_where_others_are_refused(asgi: MakeAsgi) -> None:
    async def main() -> None:
        opened = threading.Event()
        own = asgi(Capitals(lambda: bool(opened.wait(10)) and None).served, queue=1)
        others = [asyncio.create_task(own.post("/v1/predict", {"texts": ["a"]})) for _ in range(2)]
        await asyncio.sleep(0.05)
        asked = asyncio.create_task(own.post("/v1/stream", b'{"text": "Line"}'))
        await asyncio.sleep(0.1)
        opened.set()
        assert [each["id"] for each in lines(await asked)] == [1]
        assert {(await each).status for each in others} == {200}

    asyncio.run(main())


def test_a_stream_that_stops_ends(asgi: MakeAsgi) -> None:
    async def main() -> None:
        count = 0

        async def hurry() -> None:
            nonlocal count
            count += 1
            if count > 1:
                await asyncio.Event().wait()

        own = asgi(seconds=0.05)
        answer = await own.post("/v1/stream", b"", pieces=[b'{"text": "Line"}\n', b"never"], hurry=hurry)
        assert [each.get("id") for each in lines(answer)] == [1, None]
        assert "nothing more came within 0.05 seconds" in lines(answer)[1]["error"]
        assert lines(await own.post("/v1/stream", b"")) == []

        patient, opened = asgi(), asyncio.Event()
        asked = asyncio.create_task(patient.post("/v1/stream", b"", pieces=[b'{"text": "Line"}\n', b"never"], hurry=hurry))
        count = 0
        await asyncio.sleep(0.05)
        patient.service.stopping.set()
        assert [each.get("error") for each in lines(await asked)] == [None, "the server stops; the stream ends here"]
        assert not opened.is_set()

    asyncio.run(main())
