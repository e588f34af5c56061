"""A diverse choice: each next sentence has a high score and is far from all that are taken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

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


class Highest(Generic[T]):
    """The `most` things with the highest scores of all that were offered, no two with the same key; of equal scores the
    earlier. With `known_by`, which gives the features of things, near-copies of higher ones are set aside, so that a thousand
    lines that differ in a name count once; they fill up where there are too few others. At most 3 x `most` are held."""

    def __init__(self, most: int, known_by: Callable[[list[T]], NDArray[np.float64]] | None = None) -> None:
        self.most, self._known_by = most, known_by
        self._held: dict[object, tuple[float, T]] = {}
        self._aside: dict[object, tuple[float, T]] = {}
        self._least = -np.inf

    def offer(self, score: float, key: object, thing: T) -> None:
        if score > self._least and key not in self._held:
            self._held[key] = score, thing
            if len(self._held) == 2 * self.most:
                self._thin()

    def _thin(self) -> None:
        """Keep the `most` highest without near-copies, and the `most` highest near-copies."""
        held = _highest(self._held, len(self._held))
        if self._known_by is not None:
            copies = near_copies(self._known_by([thing for _, thing in held.values()]))
            aside = {key: held.pop(key) for key, copy in zip(list(held), copies, strict=True) if copy}
            new = {key: entry for key, entry in aside.items() if key not in self._aside}  # of equal keys the earlier
            self._aside = _highest(self._aside | new, self.most)
        self._held = _highest(held, self.most)
        if len(self._held) == self.most:
            self._least = min(score for score, _ in self._held.values())

    def ranked(self) -> list[tuple[float, T]]:
        """(score, thing) from the highest score down, then the near-copies that fill up."""
        if len(self._held) > self.most or self._aside:
            self._thin()
        aside = [entry for key, entry in self._aside.items() if key not in self._held]
        return [*_highest(self._held, self.most).values(), *aside][: self.most]


def _highest(scored: dict[object, tuple[float, T]], most: int) -> dict[object, tuple[float, T]]:
    """The `most` with the highest scores, from the highest down, of equals the earlier."""
    return dict(sorted(scored.items(), key=lambda entry: -entry[1][0])[:most])


def _directions(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vectors, each divided by its length; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1.0)
    return directions
