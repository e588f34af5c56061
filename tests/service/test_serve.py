"""`sequst serve` as a process, with a tiny model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.service.conftest import Process, make_model

from sequst.corpus.generated import generate
from sequst.errors import SequstError
from sequst.service import server as module
from sequst.tagger.tagger import Tagger

TEXTS = ["Can Sydney conduct The Planets in Verona on Friday?", "Nothing.", "Is ACME in Oslo?"]
TOKEN = "0123456789abcdef"
Done = subprocess.CompletedProcess[str]


def test_it_answers_as_the_tagger_does_reloads_and_stops(
    serve: Callable[..., Process], model: Path, tiny_encoder: str, tmp_path: Path
) -> None:
    own = tmp_path / "model"
    shutil.copytree(model, own)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    server = serve(own, "--token-file", token, token=TOKEN)
    assert "can be read by other users; chmod 600 it" in "".join(server.said)
    old = [each.to_dict() for each in Tagger.load(own, "cpu").predict(TEXTS)]

    def served() -> list[Any]:
        return [each.to_dict() for each in server.client.predict(TEXTS)]  # type: ignore[union-attr]

    def near(found: list[Any], wanted: list[Any]) -> bool:
        return json.dumps(_rounded(found)) == json.dumps(_rounded(wanted))

    assert near(served(), old)
    sentences = [sentence.without_tags() for sentence in generate().test[:300]]
    assert [each.sentence for each in server.client.annotate(sentences)] == sentences

    weights = (own / "model.safetensors").read_bytes()
    (own / "model.safetensors").write_bytes(weights[:1000])
    server.process.send_signal(signal.SIGHUP)
    assert "cannot load the model" in server.wait_for("the old model stays")
    with pytest.raises(SequstError, match="answers 409: the old model stays"):
        server.client.reload()
    assert near(served(), old)

    shutil.rmtree(own)
    make_model(tiny_encoder, own, ("place", "company"), 4)
    assert server.client.reload()["types"] == ["company", "place"]
    assert near(served(), [each.to_dict() for each in Tagger.load(own, "cpu").predict(TEXTS)])
    assert not near(served(), old)
    token.write_text("fedcba9876543210")
    server.process.send_signal(signal.SIGHUP)
    refused = ""
    while not refused:  # the test's time limit ends it
        try:
            server.client.predict("a")
            time.sleep(0.05)
        except SequstError as error:
            refused = str(error)
    assert "answers 401" in refused
    assert TOKEN not in "".join(server.said)
    assert server.stop() == 0


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def test_signals_slow_clients_and_a_second_server(
    serve: Callable[..., Process], model: Path, sequst: Callable[..., Done]
) -> None:
    server = serve(model, "--timeout", "2")
    taken = sequst("serve", model, "--port", server.port)
    assert (taken.returncode, "choose another --port" in taken.stderr) == (1, True)

    with server.connect() as slow:  # a body that does not come
        slow.sendall(_head(99) + b"{")
        assert slow.recv(99).startswith(b"HTTP/1.1 408")
    with server.connect() as broken:
        broken.sendall(b"\x00\x01\x02nonsense\r\n\r\n")
        assert broken.recv(99).startswith(b"HTTP/1.1 400")
        assert broken.recv(9999) is not None

    idle = [server.connect() for _ in range(200)]
    assert server.client.predict("Oslo").tags  # they are in nobody's way
    with server.connect() as begun:
        body = json.dumps({"texts": TEXTS * 50}).encode()
        begun.sendall(_head(len(body)) + body[:-1])
        time.sleep(0.2)
        server.process.terminate()
        time.sleep(0.3)
        with pytest.raises(OSError, match="refused"):
            server.connect()
        begun.sendall(body[-1:])
        answer = b""
        while piece := begun.recv(1 << 16):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["predictions"]) == 150
    assert server.process.wait(30) == 0
    for each in idle:
        each.close()


def _head(length: int) -> bytes:
    lines = (
        "POST /v1/predict HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def test_headers_that_do_not_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HEADERS_SECONDS", 0.1)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def main() -> None:
        config = uvicorn.Config(app, http=module._Protocol, ws="none", lifespan="off", log_config=None, port=0)
        server = uvicorn.Server(config)
        with contextlib.suppress(KeyboardInterrupt):
            serving = asyncio.create_task(server._serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]

            async def answered(begin: bytes, then: bytes = b"") -> bytes:
                """All that comes until the server closes; `then` is sent again and again."""
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(begin)
                reading, sent = asyncio.create_task(reader.read()), 0
                while then and not reading.done() and sent < 200:
                    writer.write(then)
                    sent += 1
                    await asyncio.sleep(0.01)
                found = await asyncio.wait_for(reading, 3)
                writer.close()
                return found

            whole = b"GET / HTTP/1.1\r\nHost: a\r\n"
            for begin in (b"", b"GET / HT", whole + b"\r\nGET / HTTP/1.1\r\nHost"):
                assert (await answered(begin)).count(b"204 No Content") == begin.count(b"\r\n\r\n")
            assert b"204" in await answered(whole + b"\r\n", then=b"\r\n")  # empty lines begin no request
            many = b"X-Many: " + b"a" * 20_000 + b"\r\n"
            for begin, then in ((whole, many), (whole + b"X-Long: ", b"a" * 20_000), (whole + 10 * many + b"\r\n", b"")):
                assert b"431 Request Header" in await answered(begin, then)
            for begin in (b"nonsense\r\n\r\n", whole + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
                found = await answered(begin)
                assert found.startswith(b"HTTP/1.1 400")
                assert b'{"error"' in found
            upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
            assert b"204" in await answered(whole + upgrade + b"\r\n", then=b"\r\n")
            server.should_exit = True
            await serving

    asyncio.run(main())


def test_who_does_not_take_the_answer_is_dropped_and_who_is_slow_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 20_000_000})

    async def main() -> None:
        patient = type("Protocol", (module._Protocol,), {"write_seconds": 0.2})
        server = uvicorn.Server(uvicorn.Config(app, http=patient, ws="none", lifespan="off", log_config=None, port=0))
        serving = asyncio.create_task(server._serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        taken = 0
        while piece := await reader.read(1_000_000):
            taken += len(piece)
            await asyncio.sleep(0.01 if taken < 15_000_000 else 0)
        assert taken > 20_000_000
        _, stuck = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
        stuck.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.sleep(0.1)
        assert len(server.server_state.connections) == 1
        for _ in range(100):
            await asyncio.sleep(0.02)
            if not server.server_state.connections:
                break
        assert not server.server_state.connections
        server.should_exit = True
        await serving

    asyncio.run(main())


def test_an_export_is_served_without_torch(serve: Callable[..., Process], model: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from sequst.integrations.onnx.exporting import export

    export(Tagger.load(model, "cpu"), tmp_path / "export")
    server = serve(tmp_path / "export")
    assert [each.tags for each in server.client.predict(TEXTS)] == [each.tags for each in Tagger.load(model).predict(TEXTS)]
    maps = Path(f"/proc/{server.process.pid}/maps")
    if maps.exists():
        assert "libtorch" not in maps.read_text()
    assert server.client.model()["uncertainty"] is False
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "other machines can reach it, so it needs --token-file"),
        (["--host", "::"], "needs --token-file"),
        (["--host", "example.invalid"], "needs --token-file"),
        (["--token-file", "none"], "--token-file none: cannot be read"),
        (["--token-file", "empty"], "needs a token on each line"),
        (["--token-file", "short"], "of at least 16 letters"),
        (["--device", "cuda9"], "unknown device"),
        (["--min-confidence", "2"], "--min-confidence"),
        (["--port", "70000"], "--port"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(
    sequst: Callable[..., Done], model: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "short").write_text("secret\n")
    found = sequst("serve", model, *arguments, cwd=tmp_path)
    assert found.returncode == 2
    assert message in found.stderr


def test_a_model_that_is_none_is_refused(sequst: Callable[..., Done], tmp_path: Path) -> None:
    found = sequst("serve", tmp_path)
    assert (found.returncode, "no model in" in found.stderr) == (2, True)


def test_label_studio_has_its_routes_and_its_folder(serve: Callable[..., Process], model: Path, tmp_path: Path) -> None:
    server = serve(model, "--label-studio", "--labels", tmp_path / "labels")
    described = server.client._ask("GET", "/openapi.json")
    assert {"/health", "/setup", "/predict", "/webhook", "/versions", "/interface"} <= set(described["paths"])
    assert (tmp_path / "labels").is_dir()
    assert server.stop() == 0
