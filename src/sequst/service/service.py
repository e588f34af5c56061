"""A model and what serves it, apart from HTTP."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError
from sequst.service.batching import Batcher, Busy
from sequst.service.guard import Refused, Tokens
from sequst.service.metrics import Metrics
from sequst.service.model import ServedModel
from sequst.tagger.prediction import Prediction

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What `sequst serve` lets somebody choose."""

    batch_words: int = 256
    wait_ms: float = 5.0
    queue: int = 256
    body_mb: float = 10.0
    seconds: float = 30.0

    @property
    def body_bytes(self) -> int:
        return int(self.body_mb * 10**6)


class Hosted:
    """What a server needs of whatever answers its requests."""

    def __init__(self, tokens: Tokens, limits: Limits) -> None:
        self.metrics, self.tokens, self.limits = Metrics(), tokens, limits
        self.stopping = asyncio.Event()
        self.at_end: list[Callable[[], Awaitable[None]]] = []
        """Called when the last request is answered."""

    async def start(self) -> None:
        """Called before the first request."""

    async def reload(self) -> None:
        """Read again what may have changed; an error where that fails."""
        self.tokens.read()

    def close(self) -> None:
        """Called at the very end."""


class Service(Hosted):
    """Predictions for everybody who asks, by a model that can be replaced."""

    def __init__(self, load: Callable[[], ServedModel], tokens: Tokens, limits: Limits) -> None:
        super().__init__(tokens, limits)
        self.batcher = Batcher(load, limits.batch_words, limits.wait_ms / 1000, limits.queue, self.metrics)
        self.metrics.watch_queue(lambda: self.batcher.waiting)
        self._loading, self._reading = asyncio.Lock(), asyncio.Lock()

    def close(self) -> None:
        self.batcher.close()

    @property
    def model(self) -> ServedModel:
        return self.batcher.model

    async def predict(
        self,
        sentences: Sequence[Sentence],
        uncertainty: bool = False,
        min_confidence: float | None = None,
        seconds: float | None = None,
    ) -> list[Prediction]:
        """With their confidence cut; within so many seconds, or those of the limits."""
        seconds = seconds or self.limits.seconds
        if uncertainty:
            self.model.require_uncertainty()
        calibration = self.model.calibration.asked_for(False, min_confidence)
        try:
            async with asyncio.timeout(seconds):
                found = await self.batcher.predict(sentences, uncertainty)
        except Busy:
            raise Refused(503, "too many requests wait; try again", {"retry-after": "1"}) from None
        except TimeoutError:
            raise Refused(504, f"no answer within {seconds:g} seconds; send less at once") from None
        return [replace(each, entity_calibration=calibration).cut() for each in found]

    async def in_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        """What the work returns, in a thread, and one such after the other: a large request takes fifty times its size while
        it is read."""
        async with self._reading:
            return await asyncio.to_thread(work, *arguments)

    async def reload(self) -> None:
        """Load the model and the tokens again. Where that fails, which is an error, those that are there stay."""
        if self._loading.locked():
            raise SequstError("a model is being loaded already")
        async with self._loading:
            try:
                await super().reload()
                await self.batcher.reload()
            except Exception as error:
                self.metrics.reload(False)
                log.error("the old model stays: %s", error)
                raise
            gc.unfreeze()  # what was there at the start, the old model too, may go
            gc.collect()
            gc.freeze()
            self.metrics.reload(True)
            log.info("the model was loaded again and answers from now on, as %s", self.model.version)
