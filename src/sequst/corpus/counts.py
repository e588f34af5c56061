"""How much there is of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans


class TypeCounts(NamedTuple):
    """Of every entity type, its mentions and the sentences that have one."""

    mentions: Counter[str]
    sentences: Counter[str]


def count_types(sentences: Iterable[Sentence]) -> TypeCounts:
    counts = TypeCounts(Counter(), Counter())
    for sentence in sentences:
        found = [span.type for span in spans(sentence.tags or ())]
        counts.mentions.update(found)
        counts.sentences.update(set(found))
    return counts


def count_words(sentences: Iterable[Sentence]) -> int:
    return sum(map(len, sentences))
