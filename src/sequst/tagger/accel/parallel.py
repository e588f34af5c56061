"""Batches on all cores of the CPU at once, each by one of them.

Threads that share a product wait for one another at every step. A core that has a batch to itself waits for nobody and keeps it
in its own cache, and the numbers do not depend on how many cores there are.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

from sequst.tagger.accel.forward import Forward
from sequst.tagger.tagger import Tagger

T = TypeVar("T")
R = TypeVar("R")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
_KEPT, _LARGE = 64 << 20, 32 << 20
"""Bytes that stay at the end of a heap, and from which on a piece of memory is not of a heap, but the system's own."""


def on_all_cores(tagger: Tagger, forward: Forward, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What `work` makes of every item, in their order, without gradients: one after the other where there is but one, and where
    the forward is the plain one, which draws from a generator that all threads share."""
    if tagger.device.type == "cuda":
        yield from _ahead(work, items)
        return
    stream, cores = iter(items), torch.get_num_threads()
    first = list(itertools.islice(stream, 2))
    rest = itertools.chain(first, stream)
    if forward.cpu is None:
        yield from map(work, rest)
        return

    def alone(item: T) -> R:
        with torch.inference_mode(), torch.autocast("cpu", enabled=False):  # which a thread has by itself; so all items do
            return work(item)

    if len(first) > 1:
        forward.cpu.lay_out()
    if len(first) > 1 or forward.kept:
        _keep_heaps()
    if len(first) < 2 or cores < 2:
        yield from map(alone, rest)
        return
    pool, waiting = _threads(cores), deque[Future[R]]()
    try:
        for item in rest:
            waiting.append(pool.submit(alone, item))
            if len(waiting) > 2 * cores:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)
        torch.set_num_threads(cores)  # the threads set it for themselves and for threads to come


def _ahead(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Results once they are there, two at most being on their way: nothing waits for a GPU but who looks at its progress."""
    waiting: deque[tuple[torch.cuda.Event, R]] = deque()
    for item in items:
        found, done = work(item), torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record()
        waiting.append((done, found))
        if len(waiting) > 2:
            done, found = waiting.popleft()
            done.synchronize()
            yield found
    yield from (found for _, found in waiting)


@functools.cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Those of this process, kept: what products set aside for a thread is not given back when it ends."""
    return ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # a child has none of its parent's threads


@functools.cache
def _keep_heaps() -> None:
    """For the rest of the process, the memory that a batch leaves is there for the next one. glibc gives a few free megabytes
    at the end of a heap back to the system, and what is mapped in again is filled with zeros first: a twentieth of the time.
    Nothing where another C library, or whoever started the process, decides."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    with contextlib.suppress(OSError, AttributeError, TypeError):  # no such library, or no such function in it
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
