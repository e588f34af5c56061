"""A tagger that runs elsewhere. Needs neither torch nor the extra `serve`."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError, shorten
from sequst.files import as_json
from sequst.tagger.entity_calibration import EntityCalibration
from sequst.tagger.prediction import Entity, Prediction, as_sentences

_AT_ONCE, _WORDS = 256, 10_000
"""Sentences in a request, and words from which on no other is added."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_AGAIN = (429, 502, 503)
"""Statuses of a server, or of one before it, that will answer later."""
_BROKEN = (OSError, http.client.HTTPException)


@dataclass
class Client:
    """Asks a server that `sequst serve` started. `predict` is that of `Tagger`. Threads may share a client.

    A request that did not arrive, was cut off or met a full queue is sent again: it changes nothing on the server.
    """

    url: str = "http://127.0.0.1:8000"
    token: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    """Seconds to wait for the server to say anything."""
    retries: int = 5
    """How often a request is sent again."""

    def __post_init__(self) -> None:
        self._address = urllib.parse.urlsplit(self.url)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise UsageError(f"url {shorten(self.url)}: write it like http://127.0.0.1:8000")
        self._own = threading.local()

    @property
    def types(self) -> list[str]:
        return list(self.model()["types"])

    def model(self) -> dict[str, Any]:
        """What the server says of its model."""
        return self._ask("GET", "/v1/model")

    def reload(self) -> dict[str, Any]:
        """Have the server load its model again; what it says of the new one. A failure is an error, and the old one stays."""
        return self._ask("POST", "/v1/reload", retries=0)

    @overload
    def predict(self, inputs: str | tuple[str, ...] | Sentence, min_confidence: float | None = None) -> Prediction: ...
    @overload
    def predict(self, inputs: list[Any], min_confidence: float | None = None) -> Prediction | list[Prediction]: ...
    def predict(self, inputs: Any, min_confidence: float | None = None) -> Prediction | list[Prediction]:
        """Tag a text, a list of words, a `Sentence`, or a list of any of them; see `Tagger.predict`."""
        sentences, single = as_sentences(inputs)
        predictions = list(self.annotate(sentences, min_confidence))
        return predictions[0] if single else predictions

    def annotate(self, sentences: Iterable[Sentence], min_confidence: float | None = None) -> Iterator[Prediction]:
        """Predictions one by one, in order; holds a few hundred sentences at a time."""
        for held in _pieces(sentences):
            asked: dict[str, Any] = {"sentences": [sentence.words for sentence in held], "probabilities": True}
            if min_confidence is not None:
                asked["min_confidence"] = min_confidence
            answer = self._ask("POST", "/v1/predict", asked)
            yield from _predictions(held, answer)

    def _ask(self, method: str, path: str, body: Any = None, retries: int | None = None) -> dict[str, Any]:
        data = b"" if body is None else as_json(body).encode()
        left = self.retries if retries is None else retries
        for attempt in itertools.count():
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                status, headers, answer = self._send(method, path, data)
            except _BROKEN as error:
                if attempt == left:
                    raise SequstError(
                        f"no answer from {self.url}: {error or type(error).__name__}; is the server up?"
                    ) from None
            else:
                if status not in _AGAIN or attempt == left:
                    return self._checked(status, answer)
                pause = max(pause, min(_LONGEST_PAUSE, _seconds(headers.get("retry-after"))))
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, data: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Over the connection of this thread, which is kept; over a new one where the server has closed it meanwhile."""
        kept: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if kept is not None:
            try:
                return self._send_over(kept, method, path, data)
            except (http.client.RemoteDisconnected, ConnectionError):
                pass
        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        new = kind(self._address.hostname or "", self._address.port, timeout=self.timeout)
        return self._send_over(new, method, path, data)

    def _send_over(
        self, connection: http.client.HTTPConnection, method: str, path: str, data: bytes
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, self._address.path.rstrip("/") + path, data, headers)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            self._own.connection = None
            connection.close()
            raise
        self._own.connection = None if response.will_close else connection
        return response.status, response.headers, answer

    def _checked(self, status: int, answer: bytes) -> dict[str, Any]:
        try:
            found = json.loads(answer)
        except ValueError:
            found = None
        if status == 200 and isinstance(found, dict):
            return found
        message = found.get("error") if isinstance(found, dict) else None
        kind = UsageError if status in (401, 403, 413, 415, 421, 422) else SequstError
        raise kind(f"{self.url} answers {status}: {message or shorten(answer.decode('utf-8', 'replace'), 200)}")


def _pieces(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """The sentences of each request."""
    held: list[Sentence] = []
    words = 0
    for sentence in sentences:
        held.append(sentence)
        words += len(sentence)
        if len(held) == _AT_ONCE or words >= _WORDS:
            yield held
            held, words = [], 0
    if held:
        yield held


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdigit() else 0.0


def _predictions(sentences: Sequence[Sentence], answer: dict[str, Any]) -> Iterator[Prediction]:
    calibration = EntityCalibration.from_dict(answer["entity_calibration"])
    for sentence, record in zip(sentences, answer["predictions"], strict=True):
        tags, sure = tuple(record["tags"]), tuple(record["probabilities"])
        left_out = tuple(
            Entity(each["type"], each["start"], each["end"], sentence.excerpt(each["start"], each["end"]), each["confidence"])
            for each in record.get("left_out", ())
        )
        yield Prediction(sentence, tags, sure, calibration, left_out)
