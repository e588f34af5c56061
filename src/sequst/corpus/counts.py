"""Counts of words, mentions and types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans


class TypeCounts(NamedTuple):
    """Mentions of each entity type, and sentences that have one."""

    mentions: Counter[str]
    sentences: Counter[str]


def mentions_in(sentence: Sentence) -> Counter[str]:
    """Counts of the types of its entities."""
    return Counter(span.type for span in spans(sentence.tags or ()))


def count_types(sentences: Iterable[Sentence]) -> TypeCounts:
    counts = TypeCounts(Counter(), Counter())
    for sentence in sentences:
        found = mentions_in(sentence)
        counts.mentions.update(found)
        counts.sentences.update(found.keys())
    return counts


def count_words(sentences: Iterable[Sentence]) -> int:
    return sum(map(len, sentences))
