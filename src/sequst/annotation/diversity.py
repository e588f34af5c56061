"""A diverse choice: each next sentence has a high score and is far from all that are taken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from sequst.annotation.ranking import Highest
from sequst.corpus.sentence import Sentence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

NEAR_COPY = 0.1
"""Cosine distance of `features` below which two sentences are near-copies: four of five words are the same."""
SLOTS = 1024
"""Length of a bag of words; words are hashed into it."""
BLOCK = 512
"""Vectors that are compared with all others at a time."""


def features(vectors: NDArray[np.float64], sentences: Sequence[Sentence]) -> NDArray[np.float64]:
    """(N, H + SLOTS): what tells near-copies, the states of a sentence (N, H) and its words in equal parts. The words are there
    because all sentences are alike to a tagger that has learnt little."""
    bags = np.zeros((len(sentences), SLOTS))
    for row, sentence in enumerate(sentences):
        for word in sentence.words:
            bags[row, zlib.crc32(word.lower().encode()) % SLOTS] += 1.0
    return np.concatenate([_directions(vectors), _directions(bags)], axis=1)


def spread_out(scores: ArrayLike, vectors: NDArray[np.float64], count: int, known_by: NDArray[np.float64]) -> list[int]:
    """The places of `count` sentences, or of all, in the order they were taken.

    The highest score comes first, then always the largest product of the score and the distance to the nearest that is taken;
    of equals the earlier. Distances are cosine distances of the vectors (N, H) less their mean. A near-copy, by the features
    `known_by`, has distance 0. Takes `count` passes over the vectors and no matrix of N x N.
    """
    worth = np.asarray(scores, dtype=np.float64)
    directions = _directions(vectors - vectors.mean(0, keepdims=True) if len(vectors) else vectors)
    plain = _directions(known_by)
    nearest = np.full(len(worth), np.inf)
    free = np.ones(len(worth), dtype=np.bool_)
    taken: list[int] = []
    while len(taken) < min(count, len(worth)):
        best = int(np.argmax(np.where(free, worth * nearest if taken else worth, -np.inf)))
        distance = np.clip(1.0 - directions @ directions[best], 0.0, None)
        distance = np.where(1.0 - plain @ plain[best] < NEAR_COPY, 0.0, distance)
        nearest = np.minimum(nearest, distance)
        free[best] = False
        taken.append(best)
    return taken


def near_copies(known_by: NDArray[np.float64]) -> NDArray[np.bool_]:
    """For each row of features, whether it is a near-copy of an earlier row that is none itself. Time is quadratic in the
    number of rows, memory linear."""
    directions = _directions(known_by)
    firsts = directions[:0]
    found = np.zeros(len(directions), dtype=np.bool_)
    for start in range(0, len(directions), BLOCK):
        block, own = directions[start : start + BLOCK], found[start : start + BLOCK]
        own |= (1.0 - block @ firsts.T < NEAR_COPY).any(1)
        near = 1.0 - block @ block.T < NEAR_COPY
        for place in range(1, len(block)):
            own[place] |= bool((near[place, :place] & ~own[:place]).any())
        firsts = np.concatenate([firsts, block[~own]])
    return found


class Varied(Generic[T]):
    """The `most` things with the highest scores, without near-copies of higher ones: a thousand lines that differ in a name
    count once. Near-copies fill up where there are too few others. Never more than three times `most` are held."""

    def __init__(self, most: int, known_by: Callable[[list[T]], NDArray[np.float64]]) -> None:
        """`known_by` gives the features of things."""
        self.most = most
        self._known_by = known_by
        self._held = Highest[T](2 * most)
        self._aside = Highest[T](most)
        self._least = -np.inf

    def offer(self, score: float, key: object, thing: T) -> None:
        if score > self._least:
            self._held.offer(score, key, thing)
            if len(self._held) == self._held.most:
                self._thin()

    def _thin(self) -> None:
        """Set near-copies aside, and drop what is not among the `most` highest without them."""
        entries = self._held.entries()
        copies = near_copies(self._known_by([thing for _, _, thing in entries]))
        self._held = Highest[T](2 * self.most)
        for (score, key, thing), copy in zip(entries, copies, strict=True):
            if copy:
                self._aside.offer(score, key, thing)
            elif len(self._held) < self.most:
                self._held.offer(score, key, thing)
                self._least = score if len(self._held) == self.most else self._least

    def ranked(self) -> list[tuple[float, T]]:
        """(score, thing) from the highest score down, then the near-copies that fill up."""
        if len(self._held) > self.most or len(self._aside):
            self._thin()
        held = self._held.entries()
        keys = {key for _, key, _ in held}
        aside = [each for each in self._aside.entries() if each[1] not in keys]
        return [(score, thing) for score, _, thing in (*held, *aside)][: self.most]


def _directions(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vectors, each divided by its length; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1.0)
    return directions
