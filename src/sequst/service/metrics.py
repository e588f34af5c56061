"""What the service counts, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable

import prometheus_client as client

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Counters of one service."""

    def __init__(self) -> None:
        self._registry = registry = client.CollectorRegistry()
        client.ProcessCollector(registry=registry)
        self._requests = client.Counter("sequst_requests", "Answered requests.", ["path", "status"], registry=registry)
        self._errors = client.Counter("sequst_errors", "Answers with a status of 400 or more.", ["status"], registry=registry)
        self._seconds = client.Histogram(
            "sequst_request_seconds", "From the first byte of a request to the last of its answer.", ["path"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._words = client.Counter("sequst_words", "Words that were tagged.", registry=registry)
        self._sentences = client.Counter("sequst_sentences", "Sentences that were tagged.", registry=registry)
        self._batch_requests = client.Histogram(
            "sequst_batch_requests", "Requests that share a batch.", buckets=_SIZES, registry=registry
        )
        self._batch_words = client.Histogram("sequst_batch_words", "Words of a batch.", buckets=_SIZES, registry=registry)
        self._reloads = client.Counter("sequst_reloads", "Models loaded beside the old one.", ["result"], registry=registry)
        self._waiting = client.Gauge("sequst_queue_requests", "Requests that wait for a batch.", registry=registry)

    def watch_queue(self, waiting: Callable[[], int]) -> None:
        self._waiting.set_function(waiting)

    def request(self, path: str, status: int, seconds: float) -> None:
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)
        if status >= 400:
            self._errors.labels(str(status)).inc()

    def batch(self, requests: int, sentences: int, words: int) -> None:
        self._batch_requests.observe(requests)
        self._batch_words.observe(words)
        self._sentences.inc(sentences)
        self._words.inc(words)

    def reload(self, worked: bool) -> None:
        self._reloads.labels("loaded" if worked else "failed").inc()

    def text(self) -> tuple[bytes, str]:
        """(the page, its type)."""
        return client.generate_latest(self._registry), "text/plain; version=0.0.4; charset=utf-8"
