from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import uvicorn
from tests.service.conftest import Capitals, expected

from sequst import Client
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError
from sequst.service import client as module
from sequst.service.app import build_app, guarded
from sequst.service.guard import Tokens
from sequst.service.service import Limits, Service
from sequst.tagger.prediction import as_sentences

TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a thread."""
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(TOKEN)
    service = Service(Capitals().served, Tokens(str(path)), Limits())
    app = guarded(build_app(service), service, None)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize(
    "inputs", ["Can Sydney sing?", ("Two", "Words"), ["Two", "Words"], ["a text", "And Another"], [["A"], [], ["b c"]], []]
)
def test_predict_is_that_of_a_tagger(url: str, inputs: Any) -> None:
    sentences, single = as_sentences(inputs)
    found = Client(url, TOKEN).predict(inputs)
    predictions = [found] if single else found
    assert [each.to_dict() for each in predictions] == [expected(sentence) for sentence in sentences]
    assert [each.sentence for each in predictions] == sentences
    for each in predictions:
        assert each._repr_html_()


def test_sentences_keep_what_is_their_own_and_the_cut_is_theirs(url: str) -> None:
    client = Client(url, TOKEN)
    sentence = Sentence(("Two", "NASA"), ("O", "O"), "mine")
    assert client.predict(sentence).sentence is sentence
    assert client.predict(sentence, min_confidence=1.0).left_out
    assert not client.predict(sentence, min_confidence=0.0).left_out
    assert client.types == ["name"]


def test_any_number_of_sentences_in_pieces(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    sentences = [Sentence((f"Word{i}",), None, i) for i in range(10)]
    assert [each.sentence for each in Client(url, TOKEN).annotate(iter(sentences))] == sentences


def test_long_sentences_are_more_requests(url: str) -> None:
    """256 of them would be more words than a request may have."""
    sentences = [Sentence(("Word",) * 600, None, i) for i in range(200)]
    assert [each.sentence for each in Client(url, TOKEN).annotate(iter(sentences))] == sentences


def test_threads_share_a_client(url: str) -> None:
    client, found = Client(url, TOKEN), {}

    def ask(i: int) -> None:
        found[i] = [client.predict(f"Thread {i} Line {j}").sentence.text for j in range(20)]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: [f"Thread {i} Line {j}" for j in range(20)] for i in range(8)}


def test_refusals_are_errors_that_say_why(url: str) -> None:
    with pytest.raises(UsageError, match="answers 401: a token is needed"):
        Client(url).predict("a")
    with pytest.raises(UsageError, match=r"answers 422: min_confidence: Input should be less"):
        Client(url, TOKEN).predict("a", min_confidence=2)
    with pytest.raises(UsageError, match="write it like http"):
        Client("localhost:8000")
    with pytest.raises(UsageError, match="cannot tag"):
        Client(url, TOKEN).predict([1])
    assert TOKEN not in repr(Client(url, TOKEN))


class Moody(http.server.BaseHTTPRequestHandler):
    """Fails in the ways of its list, then answers."""

    moods: ClassVar[list[str]] = []
    asked: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        mood = type(self).moods.pop(0) if type(self).moods else "well"
        if mood == "hang up":
            self.close_connection = True
        elif mood == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"types"')
            self.close_connection = True
        else:
            status, body = {"busy": (503, b'{"error": "full"}'), "late": (504, b"<html>"), "bad gateway": (502, b"")}.get(
                mood, (200, b'{"types": ["a"]}')
            )
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 503:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def moody() -> Iterator[str]:
    Moody.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Moody)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/behind/a/path/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_can_be_sent_again_is(moody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    Moody.moods = ["hang up", "cut", "busy", "bad gateway"]
    assert Client(moody).types == ["a"]
    assert Moody.asked == ["/behind/a/path/v1/model"] * 5
    Moody.moods = ["busy"] * 3
    with pytest.raises(SequstError, match="answers 503: full"):
        Client(moody, retries=2).model()
    Moody.moods = ["late"]
    with pytest.raises(SequstError, match="answers 504: '<html>'"):
        Client(moody).model()
    Moody.moods = ["cut"]
    with pytest.raises(SequstError, match=r"no answer from .*; is the server up"):
        Client(moody, retries=0).model()


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SequstError, match=r"no answer from http://127.0.0.1:9: .*refused.*; is the server up"):
        Client("http://127.0.0.1:9", retries=0).model()
