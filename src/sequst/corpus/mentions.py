"""Entities that stand in for others of their type: a labelled sentence with another name in it is labelled too."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans

if TYPE_CHECKING:
    import numpy as np


class Mention(NamedTuple):
    """An entity as the words that it consists of."""

    type: str
    words: tuple[str, ...]
    weight: float = 1.0
    """How likely it is drawn, beside others of its type."""


def mentions_of(sentences: Iterable[Sentence]) -> list[Mention]:
    """The entities of tagged sentences, one as often as it occurs."""
    return [
        Mention(span.type, sentence.words[span.start : span.end])
        for sentence in sentences
        for span in spans(sentence.tags or ())
    ]


class Mentions:
    """Entities to draw from, type by type."""

    def __init__(self, mentions: Iterable[Mention]) -> None:
        self._words: dict[str, list[tuple[str, ...]]] = {}
        weights: dict[str, list[float]] = {}
        for mention in mentions:
            if mention.weight > 0:
                self._words.setdefault(mention.type, []).append(mention.words)
                weights.setdefault(mention.type, []).append(mention.weight)
        self._sums = {type_: list(itertools.accumulate(found)) for type_, found in weights.items()}

    def draw(self, type_: str, rng: np.random.Generator) -> tuple[str, ...] | None:
        """The words of an entity of this type; none where none is known."""
        if type_ not in self._sums:
            return None
        sums = self._sums[type_]
        place = bisect.bisect_right(sums, rng.random() * sums[-1])
        return self._words[type_][min(place, len(sums) - 1)]

    def swapped(self, sentence: Sentence, share: float, rng: np.random.Generator) -> Sentence:
        """The sentence with a `share` of its entities, each by chance, replaced by others of their type."""
        words: list[str] = []
        tags: list[str] = []
        at, old = 0, sentence.tags or ()
        for type_, start, end in spans(old):
            drawn = self.draw(type_, rng) if rng.random() < share else None
            if drawn is None:
                continue
            words += (*sentence.words[at:start], *drawn)
            tags += (*old[at:start], f"B-{type_}", *[f"I-{type_}"] * (len(drawn) - 1))
            at = end
        if at == 0:
            return sentence
        return Sentence((*words, *sentence.words[at:]), (*tags, *old[at:]))
