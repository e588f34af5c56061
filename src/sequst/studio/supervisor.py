"""Keeps the worker process alive, and knows what it does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_SHORTEST, _LONGEST = 1.0, 60.0
"""Seconds before a worker that died is started again: the first time, and at most."""
_SOUND = 60.0
"""Seconds after which a worker counts as having worked."""


class Supervisor:
    """Belongs to one event loop. `changed` is called when the worker tells something, `died` when it has ended too early."""

    def __init__(self, folder: Path, changed: Callable[[], None], died: Callable[[], None]) -> None:
        self._folder, self._changed, self._died = folder, changed, died
        self._process: asyncio.subprocess.Process | None = None
        self._killed = False
        self._task: asyncio.Task[None] | None = None
        self.told: dict[str, Any] = {}
        """What the worker told last of the job it is at."""

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep())

    def wake(self) -> None:
        """There may be something to do."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(b"\n")

    def kill(self) -> None:
        """End the process; another one starts at once."""
        self._killed = True
        self._end()

    def _end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._process is not None:
            self.kill()
            await self._process.wait()

    async def _keep(self) -> None:
        wait = _SHORTEST
        while True:
            begun, self._killed = time.monotonic(), False
            try:
                code = await self._run()
                if code and not self._killed:
                    await asyncio.to_thread(self._died)
            except Exception:  # whatever it is, somebody has to keep the worker
                log.exception("the worker cannot be started or heard")
                self._end()
                code = 1
            self.told = {}
            self._changed()
            if self._killed or not code:
                wait = _SHORTEST  # it was stopped, or has done its work
                continue
            wait = _SHORTEST if time.monotonic() - begun > _SOUND else min(2 * wait, _LONGEST)
            log.warning("the worker ended with code %s; it starts again in %g seconds", code, wait)
            await asyncio.sleep(wait)

    async def _run(self) -> int:
        """Its exit code. In a session of its own it is spared by Ctrl-C, and ends when its standard input does."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sequst.studio.worker", str(self._folder),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._hear(line)
        return await self._process.wait()

    def _hear(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            log.info("the worker said %r", line[:200])
            return
        self.told = told if isinstance(told, dict) and "job" in told else {}
        self._changed()
