"""Sentences of all requests, computed together.

A lane is a thread that computes one batch at a time. Whenever one is free it takes the requests that have waited longest, up to
its share of the words. A request that is larger goes on at the end of the queue: a small one waits for one batch of it at most.
Requests with uncertainty take 20 passes and are computed one by one; where there are several lanes, one is left to the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sequst.corpus.sentence import Sentence
from sequst.service.metrics import Metrics
from sequst.service.model import ServedModel
from sequst.tagger.prediction import Prediction


class Busy(Exception):
    """The queue is full."""


class Job:
    """The sentences of a request; `done` gets their predictions, in order, without a confidence cut."""

    def __init__(self, sentences: Sequence[Sentence], uncertainty: bool, model: ServedModel) -> None:
        self.sentences, self.uncertainty, self.model = sentences, uncertainty, model
        self.done: asyncio.Future[list[Prediction]] = asyncio.get_running_loop().create_future()
        self.asked = asyncio.get_running_loop().time()
        self.taken = 0
        """How many sentences batches have taken."""
        self.words = sum(map(len, sentences))
        """Words of the others."""
        self._found: dict[int, list[Prediction]] = {}

    def take(self, most: int) -> Piece:
        """The next sentences, of so many words or a sentence more; with uncertainty all, for dropout depends on the batch."""
        start, words = self.taken, 0
        while self.taken < len(self.sentences) and (self.uncertainty or words < most):
            words += len(self.sentences[self.taken])
            self.taken += 1
        self.words -= words
        return Piece(self, start, self.sentences[start : self.taken], words)

    def answer(self, start: int, predictions: list[Prediction]) -> None:
        self._found[start] = predictions
        if sum(map(len, self._found.values())) == len(self.sentences) and not self.done.done():
            self.done.set_result([each for _, some in sorted(self._found.items()) for each in some])

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class Piece(NamedTuple):
    """Sentences of a job that are in one batch, from the sentence `start` on."""

    job: Job
    start: int
    sentences: Sequence[Sentence]
    words: int


class Batcher:
    """Belongs to one event loop. The model may be replaced at any time; a request is answered by one model."""

    def __init__(
        self, load: Callable[[], ServedModel], max_words: int, max_wait: float, most_waiting: int, metrics: Metrics
    ) -> None:
        self._load = load
        self._max_words, self._max_wait, self._most_waiting, self._metrics = max_words, max_wait, most_waiting, metrics
        self._queue: deque[Job] = deque()
        self._uncertain: deque[Job] = deque()
        self._running = self._running_uncertain = self._expected = 0
        self._timer: asyncio.TimerHandle | None = None
        self._lanes = ThreadPoolExecutor(thread_name_prefix="lane")
        # OpenMP lets the helpers of a thread wait without sleep only as long as there are no more of all threads than cores.
        # So one thread alone computes with all of them, and loads models, which computes too.
        self._wide = ThreadPoolExecutor(1, thread_name_prefix="wide")
        self._wide_is_free = True
        self.model = self._wide.submit(load).result()

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue) + len(self._uncertain)

    async def predict(self, sentences: Sequence[Sentence], uncertainty: bool = False) -> list[Prediction]:
        """Predictions without a confidence cut. One that is cancelled leaves the queue."""
        if not sentences:
            return []
        if self.waiting >= self._most_waiting:
            raise Busy
        job = Job(sentences, uncertainty, self.model)
        (self._uncertain if uncertainty else self._queue).append(job)
        self._dispatch()
        try:
            return await job.done
        finally:
            if job.taken < len(sentences):
                (self._uncertain if uncertainty else self._queue).remove(job)

    def _dispatch(self) -> None:
        """Give batches to the lanes that are free."""
        while self._running < self.model.lanes:
            if self._is_next_uncertain():
                self._running_uncertain += 1
                self._start([self._uncertain.popleft().take(0)], 1, alone=False)
                continue
            if not self._queue:
                return
            if (wait := self._worth_waiting()) > 0:
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(wait, self._waited)
                return
            batch = self._next_batch()
            small = sum(piece.words for piece in batch) <= self._max_words  # others wait for no more
            alone = small and not self._running and not self.waiting and self._wide_is_free
            lanes = self.model.lanes if alone else 1  # threads that share a product wait long for one that has no core
            self._expected = len(batch)
            self._start(batch, lanes, alone)

    def _is_next_uncertain(self) -> bool:
        lanes = self.model.lanes
        if not self._uncertain or self._running_uncertain >= max(1, lanes - 1):
            return False
        return lanes > 1 or not self._queue or self._uncertain[0].asked <= self._queue[0].asked

    def _start(self, batch: list[Piece], lanes: int, alone: bool) -> None:
        self._running += lanes
        task = asyncio.get_running_loop().create_task(self._compute(batch, lanes, alone))
        task.add_done_callback(lambda task: task.cancelled() or task.result())  # a fault of ours is not to be silent

    def _waited(self) -> None:
        self._timer = None
        self._dispatch()

    def _worth_waiting(self) -> float:
        """Seconds to wait for company: until as many requests are there as came together last. A lone client waits for none."""
        if len(self._queue) >= self._expected:
            return 0.0
        return self._queue[0].asked + self._max_wait - asyncio.get_running_loop().time()

    def _next_batch(self) -> list[Piece]:
        share = -(-sum(job.words for job in self._queue) // (self.model.lanes - self._running))
        most = max(1, min(self._max_words, share))
        batch: list[Piece] = []
        unfinished: list[Job] = []
        while self._queue and most > 0:
            job = self._queue[0]
            if batch and job.model is not batch[0].job.model:
                break
            self._queue.popleft()
            piece = job.take(most)
            batch.append(piece)
            if job.taken < len(job.sentences):
                unfinished.append(job)
            most -= piece.words
        self._queue.extend(unfinished)
        return batch

    async def _compute(self, batch: list[Piece], lanes: int, alone: bool) -> None:
        try:
            self._metrics.batch(len(batch), sum(len(piece.sentences) for piece in batch), sum(piece.words for piece in batch))
            await self._answer(batch, alone)
        finally:
            self._running -= lanes
            self._running_uncertain -= batch[0].job.uncertainty
            self._dispatch()

    async def _answer(self, batch: list[Piece], alone: bool) -> None:
        """Of a batch that fails every piece is computed for itself: a request does not fail for another's sake."""
        first = batch[0].job
        sentences = [sentence for piece in batch for sentence in piece.sentences]
        annotate = first.model.annotate_with_uncertainty if first.uncertainty else first.model.annotate
        assert annotate is not None
        try:
            threads = self._wide if alone else self._lanes
            found = await asyncio.get_running_loop().run_in_executor(threads, annotate, sentences, alone)
        except Exception as error:
            if len(batch) == 1:
                first.fail(error)
                return
            for piece in batch:
                await self._answer([piece], alone)
            return
        at = 0
        for piece in batch:
            piece.job.answer(piece.start, found[at : at + len(piece.sentences)])
            at += len(piece.sentences)

    async def reload(self) -> None:
        """Load the model again, beside the old one, which stays where that fails."""
        self._wide_is_free = False
        try:
            self.model = await asyncio.get_running_loop().run_in_executor(self._wide, self._load)
        finally:
            self._wide_is_free = True

    def close(self) -> None:
        for threads in (self._lanes, self._wide):
            threads.shutdown(wait=False, cancel_futures=True)
