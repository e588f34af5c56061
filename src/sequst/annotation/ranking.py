"""Scores of words make the score of a sentence, and the highest of any number of scores are kept."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

DECIDING = 3
"""Words that decide a sentence's score: those with the highest scores of their own."""


def sentence_score(words: Sequence[float]) -> float:
    """The mean of the `DECIDING` highest scores of its words; words that a shorter sentence lacks count 0."""
    return sum(heapq.nlargest(DECIDING, words)) / DECIDING


class Highest(Generic[T]):
    """The things with the highest scores of all that were offered, never more than `most` of them, and no two with the same
    key; of equal scores the earlier, of equal keys that which is held."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: list[tuple[float, int, object, T]] = []
        self._keys: set[object] = set()
        self._offered = 0

    def __len__(self) -> int:
        return len(self._held)

    def offer(self, score: float, key: object, thing: T) -> None:
        self._offered += 1
        if key in self._keys:
            return
        entry = (score, -self._offered, key, thing)  # two are never offered at once, so nothing beyond is compared
        if len(self._held) < self.most:
            heapq.heappush(self._held, entry)
            self._keys.add(key)
        elif entry > self._held[0]:
            self._keys.remove(heapq.heapreplace(self._held, entry)[2])
            self._keys.add(key)

    def entries(self) -> list[tuple[float, object, T]]:
        """(score, key, thing) from the highest score down."""
        return [(score, key, thing) for score, _, key, thing in sorted(self._held, key=lambda entry: entry[:2], reverse=True)]

    def ranked(self) -> list[tuple[float, T]]:
        """(score, thing) from the highest score down."""
        return [(score, thing) for score, _, thing in self.entries()]
