"""A choice that is spread out: each next one has a high score and is far from all that are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NEAR_COPY = 0.03
"""A cosine distance of sentences that differ in a word or a number at most."""


def spread_out(scores: ArrayLike, vectors: NDArray[np.float64], count: int) -> list[int]:
    """The places of `count` of them, or of all, in the order they were taken.

    First comes the highest score; then, again and again, the largest product of the score and the distance to the nearest that
    is taken, of equals the earlier. A near-copy of one that is taken has a distance of nearly 0 and waits for the last.
    Distances are cosine distances of the vectors less their mean: what all sentences share tells none from another; but where
    the vectors as they are hardly differ, it is 0, for of many near-copies the mean is one itself. Takes `count` passes over
    the vectors (N, H) and no matrix of N x N.
    """
    worth = np.asarray(scores, dtype=np.float64)
    directions, plain = _directions(vectors - vectors.mean(0, keepdims=True) if len(vectors) else vectors), _directions(vectors)
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


def _directions(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors of length 1, or 0 where one has none."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions: NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1.0)
    return directions
