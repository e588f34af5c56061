"""The process that serves: its socket, its signals, the patience of its connections."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from sequst.errors import SequstError, UsageError
from sequst.service.app import guarded
from sequst.service.guard import Tokens, error_body
from sequst.service.service import Hosted

log = logging.getLogger(__name__)

_HEADERS_SECONDS = 10.0
"""For a connection until the headers of its next request are there."""
_HEADERS_BYTES = 32_768
_LINGER_SECONDS = 5.0
"""For the rest of a body that nobody reads any more. A connection that is closed at once may lose the answer."""
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
_BACKLOG = 2048
_MOST_FILES = 65_536


@dataclass(frozen=True)
class Site:
    """An application, and how its requests are checked."""

    app: FastAPI
    hosted: Hosted
    large: Collection[str] = ()
    is_page: bool = False
    """See `Guard`."""


def serve(make: Callable[[Tokens], Site], host: str, port: int, token_file: str | None, ready: Callable[[str], None]) -> None:
    """Serve until a signal ends it. `ready` is called with the address when requests are taken."""
    tokens = Tokens(token_file)
    if not tokens and not _is_loopback(host):
        raise UsageError(
            f"--host {host}: other machines can reach it, so it needs --token-file FILE; "
            "make one: (umask 077; openssl rand -hex 32 > token)"
        )
    with _bound(host, port) as listener:
        site = make(tokens)
        hosted, seconds = site.hosted, site.hosted.limits.seconds
        hosts = None if tokens else {"localhost", "127.0.0.1", "::1", host.lower()}
        app = guarded(site.app, hosted, hosts, site.large, site.is_page)
        _raise_file_limit()
        gc.collect()
        gc.freeze()  # what is there stays, so that no collection looks at it
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # else every broken request is a line
        patient = type("Protocol", (_Protocol,), {"write_seconds": seconds})
        config = uvicorn.Config(
            app, http=patient, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            backlog=_BACKLOG, timeout_graceful_shutdown=round(seconds) or 1,
        )  # fmt: skip
        _Server(config, hosted, lambda: ready(_address(host, listener))).run(sockets=[listener])
        hosted.close()


class _Server(uvicorn.Server):
    """Stops for SIGTERM and SIGINT, and loads the model again for SIGHUP."""

    def __init__(self, config: uvicorn.Config, hosted: Hosted, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._hosted, self._ready = hosted, ready
        self._reloading: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self._hosted.start()
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for each in self._hosted.at_end:
            await each()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if sys.platform == "win32":
            with super().capture_signals():
                yield
            return
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGINT: self._stop, signal.SIGTERM: self._stop, signal.SIGHUP: self._reload}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        """Finish what was begun; asked twice, do not."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._hosted.stopping.set()

    def _reload(self) -> None:
        async def quietly() -> None:
            with contextlib.suppress(SequstError):  # which the log has
                await self._hosted.reload()

        self._reloading = asyncio.get_running_loop().create_task(quietly())


class _Protocol(HttpToolsProtocol):
    """Drops connections that keep others waiting: whose headers do not come or do not end, whose body still comes after the
    answer, and who do not take their answer."""

    write_seconds = 30.0
    _under_way: RequestResponseCycle | None = None
    _patience: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    _refused = _lingers = _began = False
    _taken = 0
    """Bytes of the headers, and of what may become headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(_HEADERS_SECONDS)

    def data_received(self, data: bytes) -> None:
        self._began = False
        if not self._refused:
            super().data_received(data if self._is_answering else _without_upgrade(data))
        if self._refused or self.transport.is_closing():
            return
        if self._patience is None and not self._is_answering:
            self._wait(_HEADERS_SECONDS)  # empty lines, which begin no request
        if self._patience is not None and not self._lingers and not self._began:
            self._take(len(data))

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._began, self._taken = True, 0
        self._wait(_HEADERS_SECONDS)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if self._patience is None:  # a trailer
            self._take(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._wait_no_longer()
        self._taken = 0
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > _HEADERS_BYTES:
            self._refuse("431 Request Header Fields Too Large", f"more than {_HEADERS_BYTES:,} bytes of headers")
        elif self.parser.should_upgrade():
            self._refuse("400 Bad Request", "the header Upgrade asks for another protocol; this is HTTP/1.1 alone")
        else:
            super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._wait(_LINGER_SECONDS, lingers=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        if self._writing is not None:
            self._writing.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self.write_seconds, self._look, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse("400 Bad Request", "this is no valid HTTP/1.1 request")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._under_way = cycle
        super()._start_asgi_task(cycle, app)

    def _take(self, count: int) -> None:
        self._taken += count
        if self._taken > 2 * _HEADERS_BYTES:
            self._refuse("431 Request Header Fields Too Large", f"more than {_HEADERS_BYTES:,} bytes of headers")

    def _look(self, before: int) -> None:
        """Drop a client that has taken nothing of its answer since the last look."""
        left = self.transport.get_write_buffer_size()
        if left >= before:
            self.transport.abort()
        else:
            self._writing = self.loop.call_later(self.write_seconds, self._look, left)

    def _refuse(self, status: str, message: str) -> None:
        """Answer for a request that has no route, and close, but not at once: the answer might be lost."""
        if not self._refused and not self.transport.is_closing():
            self._refused = True
            for cycle in (self.cycle, self._under_way):  # what was asked before gets no answer after this one
                if cycle is not None:
                    cycle.disconnected = True
                    cycle.message_event.set()
            self.pipeline.clear()
            body = error_body(message)
            head = (f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}", "connection: close")
            self.transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            self.transport.write_eof()
            self._wait(_LINGER_SECONDS, lingers=True)

    def _wait(self, seconds: float, lingers: bool = False) -> None:
        self._wait_no_longer()
        self._lingers = lingers
        self._patience = self.loop.call_later(seconds, self.transport.close)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def _without_upgrade(data: bytes) -> bytes:
    """The beginning of a request without an offer of another protocol, which Java makes: the parser would stop for it."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nNot-Upgrade:", head) + end + rest if end else data


def _is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that has the address, before anything takes time. It does not listen yet."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"--host {host}: {error.strerror or error}") from None
    with listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SequstError(f"cannot listen on {host}, port {port}: {reason}; choose another --port") from None
        yield listener


def _address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _raise_file_limit() -> None:
    """As many connections as the system lets this process have."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted: Any = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
