"""Selectors: from beliefs to the weight of each pseudo-labelled word (Eq. 7 and 8).

To add a selector: write the class, a line in `selector_of`, and its name in the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from sequst.uncertainty.beliefs import Beliefs

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scores = Literal["both", "confidence", "certainty"]


class Selector(Protocol):
    looks_at_beliefs: ClassVar[bool]
    """Whether it needs MC dropout."""

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.float64]:
        """(N,): how much the loss of every word counts; 0 = the word is not learnt. All that is drawn comes from `rng`."""


def scores(beliefs: Beliefs, kind: Scores) -> NDArray[np.float64]:
    """Confidence x certainty, or one of the two alone."""
    confidence, certainty = beliefs.confidence.astype(np.float64), beliefs.certainty.astype(np.float64)
    return {"both": confidence * certainty, "confidence": confidence, "certainty": certainty}[kind]


@dataclass(frozen=True)
class AllWords:
    """Every word: standard self-training."""

    looks_at_beliefs: ClassVar[bool] = False

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.ones(len(beliefs))


@dataclass(frozen=True)
class WeighedOfEachClass:
    """Every word, weighted by its score to a power, with a mean weight of 1 in each predicted class: doubtful words count less
    than others of their class, and every class as much as it has words."""

    power: float = 1.0
    by: Scores = "both"

    looks_at_beliefs: ClassVar[bool] = True

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.float64]:
        found = scores(beliefs, self.by)
        weights = np.where(found > 0, found.clip(min=0.0) ** self.power, 0.0)
        counts = weights > 0
        classes = beliefs.labels[counts]
        means = np.bincount(classes, weights[counts]) / np.bincount(classes).clip(min=1)
        weights[counts] /= means[classes]
        return weights


@dataclass(frozen=True)
class SampledWords:
    """A fraction of each sentence's words, at least one, drawn without replacement by the scores (Eq. 7, 8).

    Eq. 7 divides them by their sum over the sentence: no draw within a sentence depends on that.
    """

    power: float = 1.0
    by: Scores = "both"
    share: float = 0.5

    looks_at_beliefs: ClassVar[bool] = True

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.float64]:
        found = scores(beliefs, self.by)
        likely = found > 0
        keys = np.where(likely, self.power * np.log(np.where(likely, found, 1.0)), -np.inf)
        # the k largest of log w + Gumbel noise are k draws without replacement, each by the weights of the rest
        keys = keys + rng.gumbel(size=len(keys))
        order = np.lexsort((-keys, beliefs.sentence_of))  # by sentence, then from the largest key down; stable
        lengths = np.diff(beliefs.starts)
        ranks = np.arange(len(keys)) - np.repeat(beliefs.starts[:-1], lengths)
        counts = np.maximum(1, np.rint(self.share * lengths))
        taken = np.zeros(len(keys))
        taken[order] = ranks < np.repeat(counts, lengths)
        return taken * likely


def selector_of(name: str, share: float, power: float, by: Scores = "both") -> Selector:
    """The selector of this name, as `selection.selector` has it."""
    if name == "all":
        return AllWords()
    return WeighedOfEachClass(power, by) if name == "weighed-of-class" else SampledWords(power, by, share)
