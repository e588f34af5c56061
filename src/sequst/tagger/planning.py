"""Which windows go together in a batch: those of like length, within a budget of tokens, in an order that the seed decides."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_POOL = 16
"""Training sorts by length within stretches of this many batches: little padding, and still a shuffled order."""


def plan(
    lengths: Sequence[int], *, max_rows: int, max_tokens: int, max_padded: int | None = None, seed: int | None = None
) -> list[list[int]]:
    """Which rows go together. Every row occurs once; rows x longest stays within `max_padded`, and the tokens without padding
    within `max_tokens` (a single row may exceed it). Where padding costs as much as tokens do, only `max_tokens` is given.

    Without a seed rows are sorted by length over all; with one they are shuffled, sorted within pools, and so are the batches.
    """
    order = list(range(len(lengths)))
    if seed is None:
        order.sort(key=lambda i: lengths[i])
        return _cut(order, lengths, max_rows, max_tokens, max_padded or max_tokens)
    rng = random.Random(seed)
    rng.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), _POOL * max_rows):
        pool = sorted(order[start : start + _POOL * max_rows], key=lambda i: lengths[i])
        batches += _cut(pool, lengths, max_rows, max_tokens, max_padded or max_tokens)
    rng.shuffle(batches)
    return batches


def _cut(order: list[int], lengths: Sequence[int], max_rows: int, max_tokens: int, max_padded: int) -> list[list[int]]:
    batches: list[list[int]] = []
    tokens = 0
    for i in order:
        # lengths rise, so the newest row is the longest
        rows = len(batches[-1]) + 1 if batches else 0
        if 0 < rows <= max_rows and rows * lengths[i] <= max_padded and tokens + lengths[i] <= max_tokens:
            batches[-1].append(i)
            tokens += lengths[i]
        else:
            batches.append([i])
            tokens = lengths[i]
    return batches


def padded(lists: list[list[int]], pad: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(B, L): the lists as rows, and which of their places are taken."""
    lengths = np.array([len(each) for each in lists])
    taken = np.arange(lengths.max()) < lengths[:, None]
    rows = np.full(taken.shape, pad, dtype=np.int64)
    rows[taken] = np.fromiter(itertools.chain.from_iterable(lists), np.int64, int(lengths.sum()))
    return rows, taken
