"""What is checked before a request reaches its route: host, token, size, time."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sequst.errors import UsageError
from sequst.files import as_json, as_path
from sequst.inputs import read_text
from sequst.service.metrics import Metrics

log = logging.getLogger(__name__)

SHORTEST_TOKEN = 16
OPEN = ("/healthz", "/readyz", "/docs", "/openapi.json")
"""Paths that need no token, as all below /docs/: they say nothing of the model."""
COOKIE, LOGIN = "sequst-token", "/api/login"
_MINUTE = 60.0
MOST_HELD = 256 * 10**6
"""Bytes of all bodies that are in memory at the same time."""


class Tokens:
    """Those of a file, one a line. Compared as hashes, all of them, so that time tells nothing."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._hashes: list[bytes] = []
        self.read()

    def read(self) -> None:
        """Read the file again. A file that is wrong is an error, and the tokens stay."""
        if self._path is None:
            return
        try:
            tokens = [line.strip() for line in read_text(as_path(self._path)).splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"--token-file {self._path}: cannot be read ({getattr(error, 'strerror', None) or error})"
            ) from None
        tokens = [token for token in tokens if token]
        if not tokens or any(len(token) < SHORTEST_TOKEN or not token.isascii() or " " in token for token in tokens):
            raise UsageError(
                f"--token-file {self._path}: needs a token on each line, of at least {SHORTEST_TOKEN} letters and digits; "
                "make one: openssl rand -hex 32"
            )
        if Path(self._path).stat().st_mode & 0o077:
            log.warning("%s can be read by other users; chmod 600 it", self._path)
        self._hashes = [_hash(token) for token in tokens]

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def accept(self, header: str) -> bool:
        """Whether a header Authorization has one: `Bearer TOKEN`, or as the password of `Basic`, which Label Studio sends."""
        scheme, _, given = header.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given.strip(), validate=True).decode("ascii").partition(":")[2]
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != "bearer":
            return False
        hashed = _hash(given.strip())
        return bool(sum([hmac.compare_digest(hashed, each) for each in self._hashes]))


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Refused(Exception):
    """A request that is answered with this status and message."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


@dataclass
class Guard:
    """An ASGI application around another. It reads whole bodies, but of `streams`, which read their own."""

    app: ASGIApp
    metrics: Metrics
    tokens: Tokens
    hosts: Collection[str] | None
    """Those that the header Host may name; None for all. Without a token it keeps out web pages whose name is made to lead
    here (DNS rebinding)."""
    most_bytes: int
    seconds: float
    """Until a body must be there."""
    paths: Collection[str]
    """Known paths; others count as one."""
    streams: Collection[str] = ()
    large: Collection[str] = ()
    """Whose bodies may be ten times as large, and whose refusals are logged: a tool asks, which shows them to nobody."""
    is_page: bool = False
    """Whether a browser shows it: the token may be in a cookie, the page itself needs none, and no page of another site may
    change anything."""
    _logged: dict[tuple[str, int], float] = field(default_factory=dict, init=False)
    _held: int = field(default=0, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, path, answered = time.perf_counter(), scope["path"], 0

        async def watched(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = message["status"]
            elif answered >= 400 and path in self.large:
                self._log(path, answered, message.get("body", b""))
            await send(message)

        held = 0
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self._check(scope["method"], path, headers)
            if path not in self.streams:
                body = await self._body(receive, headers, self.most_bytes * (10 if path in self.large else 1))
                held = len(body)
                receive = _replayed(body, receive)
            await self.app(scope, receive, watched)
        except Refused as refused:
            if not answered:
                await answer(watched, refused)
        except Gone:
            answered = answered or 499
        finally:
            self._held -= held
            known = path if path in self.paths else "other"
            self.metrics.request(known, answered or 500, time.perf_counter() - begun)

    def _check(self, method: str, path: str, headers: dict[str, str]) -> None:
        if self.hosts is not None and _host_of(headers.get("host", "")) not in self.hosts:
            raise Refused(
                421, "the header Host names none of this server's names; without --token-file it answers as "
                f"{', '.join(sorted(self.hosts))} alone",
            )  # fmt: skip
        if self.is_page and (method not in ("GET", "HEAD") or path.startswith("/api/")) and _is_foreign(headers):
            raise Refused(403, "a page of another site may ask nothing here")
        open_ = path in OPEN or path.startswith("/docs/") or (self.is_page and not path.startswith(("/api/", "/v1/")))
        open_ = open_ or path == LOGIN
        if self.tokens and not open_ and not self._is_known(headers):
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN", {"www-authenticate": "Bearer"})
        if headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, "compressed bodies are not taken; send it plain")

    def _is_known(self, headers: dict[str, str]) -> bool:
        if self.tokens.accept(headers.get("authorization", "")):
            return True
        cookie: SimpleCookie = SimpleCookie()
        with contextlib.suppress(CookieError):
            cookie.load(headers.get("cookie", "") if self.is_page else "")
        return COOKIE in cookie and self.tokens.accept(f"Bearer {cookie[COOKIE].value}")

    async def _body(self, receive: Receive, headers: dict[str, str], most: int) -> bytes:
        """All of it. What is read counts as held."""
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    piece = message.get("body", b"")
                    body += piece
                    self._held += len(piece)
                    if len(body) > most:
                        raise _too_large(most)
                    if self._held > MOST_HELD:
                        raise Refused(503, "too many large requests at once; try again", {"retry-after": "1"})
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            self._held -= len(body)
            raise Refused(408, f"the body did not arrive within {self.seconds:g} seconds") from None
        except BaseException:
            self._held -= len(body)
            raise

    def _log(self, path: str, status: int, body: bytes) -> None:
        """Once a minute."""
        now = time.monotonic()
        if now - self._logged.get((path, status), -_MINUTE) >= _MINUTE:
            self._logged[path, status] = now
            log.warning("%s was refused with %d: %s", path, status, body.decode("utf-8", "replace")[:500])


def _is_foreign(headers: dict[str, str]) -> bool:
    """Whether a browser says that a page of another site makes the request."""
    origin, host = headers.get("origin"), headers.get("host", "")
    is_other = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    return is_other or headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


def _too_large(most: int) -> Refused:
    return Refused(413, f"more than {most / 10**6:g} MB; send less at once, or all of it to /v1/stream")


class Gone(Exception):
    """The client has hung up."""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one message; after it, what comes."""
    first = True

    async def replayed() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed


def _host_of(header: str) -> str:
    """The name in a header Host, without its port."""
    if header.startswith("["):
        return header.partition("]")[0].lstrip("[").lower()
    return header.partition(":")[0].lower()


async def answer(send: Send, refused: Refused) -> None:
    body = error_body(str(refused))
    fixed = {"content-type": "application/json", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in {**fixed, **refused.headers}.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_body(message: str) -> bytes:
    return as_json({"error": message}).encode()
