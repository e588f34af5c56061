"""Which pseudo-labelled words to trust: from beliefs to a mask over all words (Eq. 7 and 8).

A selector is a small class with `select`. To add one: write the class, and a row in SELECTORS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from sequst.uncertainty.beliefs import Beliefs

if TYPE_CHECKING:
    from numpy.typing import NDArray

Weight = Literal["both", "confidence", "certainty"]


class Selector(Protocol):
    """Draws only from the generator it is given, so that it shares no stream with training."""

    looks_at_beliefs: ClassVar[bool]
    """Whether it needs the passes of MC dropout; without, labels are all it is given."""

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]: ...


def scores(beliefs: Beliefs, weight: Weight) -> NDArray[np.float64]:
    """Confidence x certainty, or one of the two alone."""
    confidence, certainty = beliefs.confidence.astype(np.float64), beliefs.certainty.astype(np.float64)
    return {"both": confidence * certainty, "confidence": confidence, "certainty": certainty}[weight]


def sampling_weights(beliefs: Beliefs, weight: Weight = "both") -> NDArray[np.float64]:
    """The scores, normalised in each sentence (Eq. 7); 0 throughout a sentence whose scores are all 0."""
    raw = scores(beliefs, weight)
    totals = np.bincount(beliefs.sentence_of, raw, minlength=len(beliefs.starts) - 1)[beliefs.sentence_of]
    return np.divide(raw, totals, out=np.zeros_like(raw), where=totals > 0)


@dataclass(frozen=True)
class AllWords:
    """Every word: standard self-training."""

    looks_at_beliefs: ClassVar[bool] = False

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        return np.ones(len(beliefs), dtype=np.bool_)


@dataclass(frozen=True)
class SampledWords:
    """A share of each sentence's words, at least one, drawn without replacement by the sampling weights (Eq. 7, 8)."""

    share: float = 0.5
    weight: Weight = "both"

    looks_at_beliefs: ClassVar[bool] = True

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        weights = sampling_weights(beliefs, self.weight)
        # the k largest of log w + Gumbel noise are a draw of k without replacement, each next one by the weights of the rest
        with np.errstate(divide="ignore"):
            keys = np.log(weights) + rng.gumbel(size=len(weights))
        return _largest(keys, beliefs, self.share) & (weights > 0)


@dataclass(frozen=True)
class TopWords:
    """The share of each sentence's words with the highest scores, at least one; of equals the earlier."""

    share: float = 0.5
    weight: Weight = "both"

    looks_at_beliefs: ClassVar[bool] = True

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        return _largest(scores(beliefs, self.weight), beliefs, self.share)


@dataclass(frozen=True)
class TopOfEachClass:
    """The share of the words of each predicted class with the highest scores, at least one: no class is crowded out by O."""

    share: float = 0.5
    weight: Weight = "both"

    looks_at_beliefs: ClassVar[bool] = True

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        found = scores(beliefs, self.weight)
        mask = np.zeros(len(beliefs), dtype=np.bool_)
        for label in np.unique(beliefs.labels):
            members = np.flatnonzero(beliefs.labels == label)
            order = members[np.argsort(-found[members], kind="stable")]
            mask[order[: _count(len(members), self.share)]] = True
        return mask


SELECTORS: dict[str, type[Selector]] = {
    "all": AllWords,
    "sampled": SampledWords,
    "top": TopWords,
    "top-of-class": TopOfEachClass,
}


def _count(size: int, share: float) -> int:
    return max(1, round(share * size))


def _largest(keys: NDArray[np.float64], beliefs: Beliefs, share: float) -> NDArray[np.bool_]:
    """In each sentence the `share` of its words with the largest keys."""
    sentence = beliefs.sentence_of
    order = np.lexsort((-keys, sentence))  # by sentence, then from the largest key down; stable
    rank = np.empty(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - beliefs.starts[sentence[order]]
    sizes = np.diff(beliefs.starts)
    counts = np.maximum(1, np.rint(share * sizes)).astype(np.int64)
    return rank < counts[sentence]
