"""A model without a network; requests without a server, as ASGI messages; a server with a tiny model."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.heard import Heard

from sequst import Client
from sequst.corpus.sentence import Sentence
from sequst.service.app import build_app, guarded
from sequst.service.guard import Guard, Tokens
from sequst.service.model import ServedModel
from sequst.service.service import Limits, Service
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.prediction import Prediction
from sequst.tagger.tagger import Tagger

CALIBRATION = EntityCalibration(slope=1.2, intercept=0.3, types=(("name", 0.1),), threshold=0.5)


@dataclass
class Capitals:
    """Tags words that begin with a capital, with the share of capitals as probability. Notes its batches."""

    wait: Callable[[], None] = lambda: None
    batches: list[list[tuple[str, ...]]] = field(default_factory=list)

    def annotate(self, sentences: Sequence[Sentence], alone: bool) -> list[Prediction]:
        self.batches.append([sentence.words for sentence in sentences])
        self.wait()
        if any("poison" in sentence.words for sentence in sentences):
            raise ValueError("poisoned")
        return [self.prediction(sentence) for sentence in sentences]

    @staticmethod
    def prediction(sentence: Sentence) -> Prediction:
        tags = tuple("B-name" if word[0].isupper() else "O" for word in sentence.words)
        sure = tuple(sum(map(str.isupper, word)) / len(word) for word in sentence.words)
        return Prediction(sentence, tags, sure, CALIBRATION._replace(threshold=0.0))

    def served(self, lanes: int = 1, uncertainty: bool = True) -> ServedModel:
        both = self.annotate if uncertainty else None
        return ServedModel(["name"], CALIBRATION, {"encoder": "none"}, "capitals-1", lanes, self.annotate, both)


def expected(sentence: Sentence, threshold: float = CALIBRATION.threshold) -> dict[str, Any]:
    """The record of a sentence, by the library alone."""
    return replace(Capitals.prediction(sentence), entity_calibration=CALIBRATION._replace(threshold=threshold)).cut().to_dict()


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


@dataclass
class Asgi:
    """Sends requests to an application."""

    app: Guard
    service: Service
    host: str = "127.0.0.1:8000"

    async def ask(
        self,
        method: str,
        path: str,
        body: object = b"",
        headers: dict[str, str] | None = None,
        pieces: Sequence[bytes] | None = None,
        gone: asyncio.Event | None = None,
        hurry: Callable[[], Awaitable[None]] | None = None,
    ) -> Answer:
        """`pieces` of a body come one by one, after `hurry`; `gone` is set when the client hangs up."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {"host": self.host, "content-type": "application/json", **(headers or {})}
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()], "http_version": "1.1",
            "asgi": {"version": "3.0", "spec_version": "2.3"}, "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000), "state": {},
        }  # fmt: skip
        left = list(pieces if pieces is not None else [data])
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if left:
                if hurry is not None:
                    await hurry()
                piece = left.pop(0)
                return {"type": "http.request", "body": piece, "more_body": bool(left)}
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        if not sent:
            return Answer(0, {}, b"")
        start, *rest = sent
        shown = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], shown, b"".join(each.get("body", b"") for each in rest))

    async def post(self, path: str, body: object, **options: Any) -> Answer:
        return await self.ask("POST", path, body, **options)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.ask("GET", path, **options)


MakeAsgi = Callable[..., Asgi]


@pytest.fixture
def asgi(tmp_path: Path) -> MakeAsgi:
    """Make an application; to be called within an event loop."""

    def make(
        model: Callable[[], ServedModel] | None = None,
        token: str | None = None,
        add: Callable[[Any, Service], None] | None = None,
        **limits: Any,
    ) -> Asgi:
        path = None
        if token is not None:
            path = tmp_path / "token"
            path.write_text(f"{token}\n")
            path.chmod(0o600)
        tokens = Tokens(None if path is None else str(path))
        service = Service(model or Capitals().served, tokens, Limits(**limits))
        routes = build_app(service)
        if add is not None:
            add(routes, service)
        return Asgi(guarded(routes, service, None if tokens else {"localhost", "127.0.0.1", "::1"}), service)

    return make


def make_model(encoder: str, folder: Path, types: tuple[str, ...], seed: int) -> Path:
    labels = ["O", *(f"{place}-{type_}" for type_ in types for place in "BI")]
    Tagger.from_encoder(encoder, labels, max_length=64, seed=seed).save(folder)
    return folder


@pytest.fixture(scope="module")
def model(tiny_encoder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tiny_encoder, tmp_path_factory.mktemp("served") / "model", ("person", "place"), 3)


class Process(Heard):
    """A server and its client."""

    def __init__(self, *arguments: object, token: str | None = None) -> None:
        super().__init__("serve", *map(str, arguments), "--port", "0")
        address = self.wait_for("serving ").partition(" at ")[2].partition(";")[0]
        self.port = int(address.rpartition(":")[2])
        self.client = Client(address, token, retries=0)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@pytest.fixture
def serve() -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(*arguments: object, **options: Any) -> Process:
        started.append(Process(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
