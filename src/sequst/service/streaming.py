"""JSON lines in, JSON lines out, as many as there are, a group of them in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from sequst.corpus.formats.records import id_of, keys_of, text_of, words_with_tags
from sequst.corpus.sentence import Sentence, Source
from sequst.errors import Malformed, SequstError, shorten
from sequst.files import as_json
from sequst.service.guard import Refused
from sequst.service.schemas import MOST_IN_TEXT, MOST_UNCERTAIN, MOST_WORDS
from sequst.service.service import Service
from sequst.service.texts import checked

TYPE = "application/x-ndjson"
_GROUP = 128
_BUSY = 0.05
"""Seconds after which a group is offered again to a full queue: who streams waits, and is not refused."""
_SHAPES = '{"text": "..."} or {"words": [...]}'

Read = tuple[int, Sentence | str]
"""The number of a line, and its sentence or what is wrong with it."""


class LineStream(Response):
    """Answers line by line while the body comes in, which must be read from here alone."""

    media_type = TYPE

    def __init__(self, service: Service, uncertainty: bool, min_confidence: float | None) -> None:
        super().__init__()
        self._service, self._uncertainty, self._min_confidence = service, uncertainty, min_confidence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, last = False, ""
        try:
            async for group in _groups(receive, self._service, whole=self._uncertainty):
                if not started:  # not before something was read: the client may wait to be told to send
                    await self._start(send)
                    started = True
                await send({"type": "http.response.body", "body": (await self._answers(group)).encode(), "more_body": True})
        except (Refused, SequstError) as error:
            last = as_json({"error": f"{error}; the stream ends here"}) + "\n"
        if not started:
            await self._start(send)
        await send({"type": "http.response.body", "body": last.encode()})

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", TYPE.encode())]})

    async def _answers(self, group: list[Read]) -> str:
        sentences = [each for _, each in group if isinstance(each, Sentence)]
        while True:
            try:
                found = iter(await self._service.predict(sentences, self._uncertainty, self._min_confidence))
                break
            except Refused as refused:
                if refused.status != 503:
                    raise
                await asyncio.sleep(_BUSY)
        records = (
            next(found).to_dict() if isinstance(each, Sentence) else {"line": number, "error": each} for number, each in group
        )
        return "".join(as_json(record) + "\n" for record in records)


async def _groups(receive: Receive, service: Service, whole: bool) -> AsyncIterator[list[Read]]:
    """Lines that are tagged together: those that came together, up to a number of them. With `whole` always so many, so
    that dropout, which depends on the group, does not depend on the network."""
    group: list[Read] = []
    numbers, words, most = itertools.count(1), 0, MOST_UNCERTAIN if whole else MOST_WORDS
    async for lines in _lines(receive, service):
        for line, number in zip(lines, numbers, strict=False):  # numbers are endless
            if line is not None and not line.strip():
                continue
            read = _read(line, number, most)
            more = len(read) if isinstance(read, Sentence) else 0
            if len(group) == _GROUP or words + more > most:
                yield group
                group, words = [], 0
            group.append((number, read))
            words += more
        if group and not whole:
            yield group
            group, words = [], 0
    if group:
        yield group


async def _lines(receive: Receive, service: Service) -> AsyncIterator[list[bytes | None]]:
    """Those that came together; None for one of more than a body may have."""
    most = service.limits.body_bytes
    rest, skipping, more = b"", False, True
    while more:
        message = await _message(receive, service)
        if message["type"] == "http.disconnect":
            return
        more = bool(message.get("more_body"))
        *lines, rest = (rest + message.get("body", b"")).split(b"\n")
        found: list[bytes | None] = list(lines)
        if skipping and lines:
            found[0], skipping = None, False
        if len(rest) > most or skipping:
            rest, skipping = b"", True
        if not more and (rest or skipping):
            found.append(None if skipping else rest)
        yield [None if line is None or len(line) > most else line for line in found]


async def _message(receive: Receive, service: Service) -> Message:
    """The next part of the body; an error when it does not come in time, or the server stops: a stream may never end."""
    receiving = asyncio.ensure_future(receive())
    stopping = asyncio.ensure_future(service.stopping.wait())
    try:
        await asyncio.wait((receiving, stopping), timeout=service.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done():
            raise Refused(503, "the server stops")
        if not receiving.done():
            raise Refused(408, f"nothing more came within {service.limits.seconds:g} seconds")
        return receiving.result()
    finally:
        receiving.cancel()
        stopping.cancel()


def _read(line: bytes | None, number: int, most: int) -> Sentence | str:
    try:
        if line is None:
            raise Malformed("a line that is longer than a body may be", "shorter lines")
        return _sentence(_object(line), number, min(most, MOST_IN_TEXT))
    except Malformed as bad:
        return f"found {bad.found}; expected {bad.expected}"


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"invalid JSON ({error})", f"an object, {_SHAPES}") from None
    if not isinstance(found, dict):
        raise Malformed(shorten(found), f"an object, {_SHAPES}")
    return found


def _sentence(found: dict[str, Any], number: int, most: int) -> Sentence:
    id_ = id_of(found.get("id"), number)
    if "words" in found:
        return checked(words_with_tags(found["words"], None, id_, Source("stream", number)).words, id_, most)
    if "text" not in found:
        raise Malformed(f"the keys {keys_of(found)}", _SHAPES)
    return checked(text_of(found["text"]), id_, most)
