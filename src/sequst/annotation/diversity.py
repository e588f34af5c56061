"""A choice that is spread out: each next one has a high score and is far from all that are taken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from sequst.annotation.ranking import Highest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

NEAR_COPY = 0.1
"""A cosine distance of `features`: that of sentences which differ in a word of five and which a tagger takes for the same."""
SLOTS = 1024
"""Numbers that stand for all words: two words share one so rarely that it does not matter."""
BLOCK = 512
"""Vectors that are compared with all others at a time."""


def features(vectors: NDArray[np.float64], words: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """(N, H + SLOTS): by what near-copies are known: what a tagger thinks of sentences, and, as much, which words they have. To
    one that has learnt little, all sentences are alike."""
    bags = np.zeros((len(words), SLOTS))
    for row, sentence in enumerate(words):
        for word in sentence:
            bags[row, zlib.crc32(word.lower().encode()) % SLOTS] += 1.0
    return np.concatenate([_directions(vectors), _directions(bags)], axis=1)


def spread_out(
    scores: ArrayLike, vectors: NDArray[np.float64], count: int, known_by: NDArray[np.float64] | None = None
) -> list[int]:
    """The places of `count` of them, or of all, in the order they were taken.

    First comes the highest score; then, again and again, the largest product of the score and the distance to the nearest that
    is taken, of equals the earlier. A near-copy of one that is taken has a distance of 0 and waits for the last: near-copies
    are known by their features, or, without, by the vectors as they are. All other distances are cosine distances of the
    vectors less their mean: what all sentences share tells none from another. Takes `count` passes over the vectors (N, H) and
    no matrix of N x N.
    """
    worth = np.asarray(scores, dtype=np.float64)
    directions = _directions(vectors - vectors.mean(0, keepdims=True) if len(vectors) else vectors)
    plain = _directions(vectors if known_by is None else known_by)
    nearest = np.ones(len(worth))
    free = np.ones(len(worth), dtype=np.bool_)
    taken: list[int] = []
    while len(taken) < min(count, len(worth)):
        best = int(np.argmax(np.where(free, worth * nearest, -np.inf)))
        distance = np.clip(1.0 - directions @ directions[best], 0.0, None)
        distance = np.where(1.0 - plain @ plain[best] < NEAR_COPY, 0.0, distance)
        nearest = distance if not taken else np.minimum(nearest, distance)
        free[best] = False
        taken.append(best)
    return taken


def near_copies(known_by: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Of each whether it is a near-copy of one before it that is none itself, by their features. Takes time that grows with the
    square of how many there are, and memory for a block of them beside all others."""
    directions = _directions(known_by)
    found = np.zeros(len(directions), dtype=np.bool_)
    firsts: list[NDArray[np.float64]] = []
    for start in range(0, len(directions), BLOCK):
        block = directions[start : start + BLOCK]
        own = found[start : start + BLOCK]
        for others in firsts:
            own |= (1.0 - others @ block.T < NEAR_COPY).any(0)
        near = 1.0 - block @ block.T < NEAR_COPY
        for place in range(1, len(block)):
            own[place] |= bool((near[place, :place] & ~own[:place]).any())
        firsts.append(block[~own])
    return found


class Varied(Generic[T]):
    """The `most` things with the highest scores of all that were offered, near-copies of higher ones set aside: a thousand
    lines that differ in a name are one, and crowd out nothing. Where there are not so many, near-copies fill up, the highest
    first. Never more than three times `most` are held."""

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
        """Set near-copies aside, and let go of what is not among the highest without them."""
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
        """(score, thing) from the highest score down, and what fills up after them."""
        if len(self._held) > self.most or len(self._aside):
            self._thin()
        held = self._held.entries()
        keys = {key for _, key, _ in held}
        aside = [each for each in self._aside.entries() if each[1] not in keys]
        return [(score, thing) for score, _, thing in (*held, *aside)][: self.most]


def _directions(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of length 1, or 0 where one has none."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1.0)
    return directions
