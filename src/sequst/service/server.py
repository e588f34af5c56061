"""The process that serves: its socket, its signals, the patience of its connections."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sequst.errors import SequstError, UsageError
from sequst.service.app import build_app, guarded
from sequst.service.guard import Tokens
from sequst.service.model import ServedModel
from sequst.service.service import Limits, Service

log = logging.getLogger(__name__)

_HEADERS_SECONDS = 10.0
"""For a connection until the headers of its next request are there."""
_LINGER_SECONDS = 5.0
"""For the rest of a body that nobody reads any more. A connection that is closed at once may lose the answer."""
_BACKLOG = 2048
_MOST_FILES = 65_536


def serve(
    load: Callable[[], ServedModel],
    host: str,
    port: int,
    token_file: str | None,
    limits: Limits,
    ready: Callable[[str], None],
    add: Callable[[FastAPI, Service], None] = lambda app, service: None,
) -> None:
    """Serve until a signal ends it. `ready` is called with the address when requests are taken; `add` adds routes."""
    tokens = Tokens(token_file)
    if not tokens and not _is_loopback(host):
        raise UsageError(
            f"--host {host}: other machines can reach it, so it needs --token-file FILE; "
            "make one: (umask 077; openssl rand -hex 32 > token)"
        )
    with _bound(host, port) as listener:
        service = Service(load, tokens, limits)
        hosts = None if tokens else {"localhost", "127.0.0.1", "::1", host.lower()}
        routes = build_app(service)
        add(routes, service)
        app = guarded(routes, service, hosts)
        _raise_file_limit()
        gc.collect()
        gc.freeze()  # what is there stays, so that no collection looks at it
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # else every broken request is a line
        config = uvicorn.Config(
            app, http=_Protocol, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            backlog=_BACKLOG, timeout_graceful_shutdown=round(limits.seconds) or 1,
        )  # fmt: skip
        _Server(config, service, lambda: ready(_address(host, listener))).run(sockets=[listener])
        service.batcher.close()


class _Server(uvicorn.Server):
    """Stops for SIGTERM and SIGINT, and loads the model again for SIGHUP."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready
        self._reloading: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

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
        self._service.stopping.set()

    def _reload(self) -> None:
        async def quietly() -> None:
            with contextlib.suppress(SequstError):  # which the log has
                await self._service.reload()

        self._reloading = asyncio.get_running_loop().create_task(quietly())


class _Protocol(HttpToolsProtocol):
    """Closes connections whose headers do not come, and those whose body still comes after the answer."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(_HEADERS_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait(_HEADERS_SECONDS)

    def on_headers_complete(self) -> None:
        self._wait_no_longer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._wait(_LINGER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._wait_no_longer()
        self._patience = self.loop.call_later(seconds, self.transport.close)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


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
