"""Which pseudo-labelled words to trust: from beliefs to a mask over all words (Eq. 7 and 8).

A selector is a small class with `select`, `trust` and `weights`. To add one: write the class, and a row in SELECTORS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from sequst.corpus.mentions import Mention
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import OUTSIDE
from sequst.uncertainty.beliefs import Beliefs

if TYPE_CHECKING:
    from numpy.typing import NDArray

Weight = Literal["both", "confidence", "certainty"]
Unit = Literal["word", "entity"]


class Selector(Protocol):
    """Draws only from the generator it is given, so that it shares no stream with training."""

    looks_at_beliefs: ClassVar[bool]
    """Whether it needs the passes of MC dropout; without, labels are all it is given."""

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]: ...

    def trust(self, beliefs: Beliefs) -> NDArray[np.float64]:
        """How much every word is trusted, beside others."""

    def weights(self, beliefs: Beliefs) -> NDArray[np.float64] | None:
        """How much the loss of every word counts, where words do not count alike."""


def scores(beliefs: Beliefs, weight: Weight) -> NDArray[np.float64]:
    """Confidence x certainty, or one of the two alone."""
    confidence, certainty = beliefs.confidence.astype(np.float64), beliefs.certainty.astype(np.float64)
    return {"both": confidence * certainty, "confidence": confidence, "certainty": certainty}[weight]


@dataclass(frozen=True)
class AllWords:
    """Every word: standard self-training."""

    looks_at_beliefs: ClassVar[bool] = False

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        return np.ones(len(beliefs), dtype=np.bool_)

    def trust(self, beliefs: Beliefs) -> NDArray[np.float64]:
        return np.ones(len(beliefs))

    def weights(self, beliefs: Beliefs) -> None:
        return None


@dataclass(frozen=True)
class WeighedWords:
    """Every word that is trusted at all, and each counts as much as it is, on average 1. A draw by the scores does much the
    same in the mean, though one of half of the words evens them out, and gives every sentence the same say."""

    weight: Weight = "both"
    power: float = 1.0
    """The scores to this power: the larger, the less words of a low score count."""
    unit: Unit = "word"
    names: tuple[str, ...] = ()

    looks_at_beliefs: ClassVar[bool] = True
    of_class: ClassVar[bool] = False
    """1 on average of the words of each predicted class, not of all."""

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        return self.weights(beliefs) > 0

    def trust(self, beliefs: Beliefs) -> NDArray[np.float64]:
        found = scores(beliefs, self.weight)
        return np.where(found > 0, found.clip(min=0.0) ** self.power, 0.0)

    def weights(self, beliefs: Beliefs) -> NDArray[np.float64]:
        trusted, classes = self.trust(beliefs), beliefs.labels
        if self.unit == "entity":  # as good as the worst of its words, and of the class of its first
            firsts = units(beliefs, self.names)
            sizes = np.diff(firsts, append=len(beliefs))
            trusted, classes = np.repeat(worst(trusted, firsts), sizes), np.repeat(classes[firsts], sizes)
        if beliefs.doubtful is not None:
            trusted = np.where(beliefs.doubtful, 0.0, trusted)
        counts = trusted > 0
        group = classes[counts] * self.of_class
        means = np.bincount(group, trusted[counts]) / np.bincount(group).clip(min=1)
        trusted[counts] /= means[group]
        return trusted


@dataclass(frozen=True)
class WeighedOfEachClass(WeighedWords):
    """The same within each predicted class: doubtful words count less than others of their class, and every class as much as it
    has words."""

    of_class: ClassVar[bool] = True


@dataclass(frozen=True)
class _Scored:
    """What the others share: units, words or whole entities, with scores; of each group the units with the largest keys."""

    share: float = 0.5
    weight: Weight = "both"
    power: float = 1.0
    """The scores to this power: the larger, the fewer words of a low score are taken."""
    unit: Unit = "word"
    names: tuple[str, ...] = ()
    """The names of the labels, by which entities are known."""

    looks_at_beliefs: ClassVar[bool] = True
    of_class: ClassVar[bool] = False
    """A share of the words of each predicted class, not of each sentence."""
    drawn: ClassVar[bool] = False
    """By chance, the scores as weights, not from the highest score down."""

    def select(self, beliefs: Beliefs, rng: np.random.Generator) -> NDArray[np.bool_]:
        firsts = units(beliefs, self.names) if self.unit == "entity" else np.arange(len(beliefs))
        # an entity is as good as the worst of its words
        found = worst(scores(beliefs, self.weight), firsts)
        likely = found > 0
        keys = np.where(likely, self.power * np.log(np.where(likely, found, 1.0)), -np.inf)
        if self.drawn:
            # the k largest of log w + Gumbel noise are k draws without replacement, each by the weights of the rest
            keys = keys + rng.gumbel(size=len(keys))
        sizes = np.diff(firsts, append=len(beliefs))
        group = (beliefs.labels if self.of_class else beliefs.sentence_of)[firsts]
        return np.repeat(_largest(keys, sizes, group, self.share) & (likely | (not self.drawn)), sizes)

    def trust(self, beliefs: Beliefs) -> NDArray[np.float64]:
        found: NDArray[np.float64] = scores(beliefs, self.weight) ** self.power
        return found

    def weights(self, beliefs: Beliefs) -> None:
        return None


@dataclass(frozen=True)
class SampledWords(_Scored):
    """A share of each sentence's words, at least one, drawn without replacement by the scores (Eq. 7, 8).

    Eq. 7 divides them by their sum over the sentence: no draw within a sentence depends on that.
    """

    drawn: ClassVar[bool] = True


@dataclass(frozen=True)
class TopWords(_Scored):
    """The share of each sentence's words with the highest scores, at least one; of equals the earlier."""


@dataclass(frozen=True)
class SampledOfEachClass(_Scored):
    """A share of the words of each predicted class, at least one, drawn by their scores: no class is crowded out by O."""

    of_class: ClassVar[bool] = True
    drawn: ClassVar[bool] = True


@dataclass(frozen=True)
class TopOfEachClass(_Scored):
    """The share of the words of each predicted class with the highest scores, at least one."""

    of_class: ClassVar[bool] = True


SELECTORS: dict[str, type[Selector]] = {
    "all": AllWords,
    "weighed": WeighedWords,
    "weighed-of-class": WeighedOfEachClass,
    "sampled": SampledWords,
    "top": TopWords,
    "sampled-of-class": SampledOfEachClass,
    "top-of-class": TopOfEachClass,
}


def units(beliefs: Beliefs, names: Sequence[str]) -> NDArray[np.int64]:
    """Where each unit of the words begins: a predicted entity is one, and so is every word outside of them."""
    kinds = {name[2:]: number for number, name in enumerate(names, 1) if name != OUTSIDE}
    type_of = np.array([0 if name == OUTSIDE else kinds[name[2:]] for name in names], dtype=np.int64)[beliefs.labels]
    inside = np.array([name.startswith("I-") for name in names], dtype=np.bool_)[beliefs.labels]
    goes_on = np.zeros(len(beliefs), dtype=np.bool_)
    goes_on[1:] = inside[1:] & (type_of[1:] == type_of[:-1]) & (np.diff(beliefs.sentence_of) == 0)
    return np.flatnonzero(~goes_on)


def worst(found: NDArray[np.float64], firsts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The least of the words of every unit; `firsts` are where they begin."""
    return np.minimum.reduceat(found, firsts) if len(firsts) else np.zeros(0)


def believed_mentions(
    beliefs: Beliefs, sentences: Sequence[Sentence], names: Sequence[str], selector: Selector
) -> Iterator[Mention]:
    """The entities that the teachers find in the sentences, each as likely as the worst of its words is trusted. Where labels
    are draws from their probabilities, it is the best tags that count."""
    beliefs = dataclasses.replace(beliefs, labels=beliefs.best)
    firsts = units(beliefs, names)
    ends = np.append(firsts[1:], len(beliefs))
    of, trust = beliefs.sentence_of[firsts], worst(selector.trust(beliefs), firsts)
    label = beliefs.labels[firsts]
    told = label != names.index(OUTSIDE)
    if beliefs.doubtful is not None:
        told &= ~beliefs.doubtful[firsts]
    for unit in np.flatnonzero(told).tolist():
        begin = beliefs.starts[of[unit]]
        words = sentences[of[unit]].words[firsts[unit] - begin : ends[unit] - begin]
        yield Mention(names[label[unit]][2:], words, float(trust[unit]))


def _largest(keys: NDArray[np.float64], sizes: NDArray[np.int64], group: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """In each group the units with the largest keys, of equals the earlier, until they have the `share` of its words."""
    order = np.lexsort((-keys, group))  # by group, then from the largest key down; stable
    before = np.cumsum(sizes[order]) - sizes[order]  # words of the units that come before, of all groups
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    lengths = np.diff(begins, append=len(order))
    totals = np.add.reduceat(sizes[order], begins) if len(order) else np.zeros(0, dtype=np.int64)
    counts = np.maximum(1, np.rint(share * totals)).astype(np.int64)
    taken = np.empty(len(keys), dtype=np.bool_)
    taken[order] = before - np.repeat(before[begins], lengths) < np.repeat(counts, lengths)
    return taken
