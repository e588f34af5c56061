"""Cohen's kappa: how far two people agree beyond chance, word by word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sequst.corpus.tags import spans

NO_TYPE = ""
"""Of words in no entity. Any other text may be a type, O too."""


class Agreement(NamedTuple):
    """Kappa of all types together and of each; 1 = always, 0 = no more than by chance. None where it has no value: both people
    gave every word the same answer, or there is no word."""

    overall: float | None
    types: dict[str, float | None]
    words: int


def agreement(pairs: Iterable[tuple[Sequence[str], Sequence[str]]], types: Iterable[str] = ()) -> Agreement:
    """The agreement on sentences that two people labelled, from the IOB2 tags of both.

    Of a type, on whether a word is in an entity of it; overall, on the type of a word, or none. Where entities begin does not
    count. `types` are listed even if nobody has used them.
    """
    both: Counter[tuple[str, str]] = Counter()
    for number, (first, second) in enumerate(pairs, 1):
        if len(first) != len(second):
            raise ValueError(f"sentence {number}: {len(first)} and {len(second)} tags; both people must have the same words")
        both.update(zip(_types(first), _types(second), strict=True))
    listed = sorted({*types, *(type_ for pair in both for type_ in pair)} - {NO_TYPE})
    return Agreement(_kappa(both), {type_: _kappa(_whether(type_, both)) for type_ in listed}, both.total())


def _types(tags: Sequence[str]) -> list[str]:
    """The type of every word's entity, or `NO_TYPE`."""
    found = [NO_TYPE] * len(tags)
    for type_, start, end in spans(tags):
        found[start:end] = [type_] * (end - start)
    return found


def _whether(type_: str, both: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """The same answers as yes and no."""
    found: Counter[tuple[str, str]] = Counter()
    for (first, second), count in both.items():
        found[str(first == type_), str(second == type_)] += count
    return found


def _kappa(both: Counter[tuple[str, str]]) -> float | None:
    """From how often each pair of answers was given. None where chance alone would agree always."""
    total = both.total()
    one, other = Counter[str](), Counter[str]()
    for (first, second), count in both.items():
        one[first] += count
        other[second] += count
    by_chance = sum(one[answer] * other[answer] for answer in one)  # in squares of words
    if by_chance == total**2:
        return None
    agreed = sum(count for (first, second), count in both.items() if first == second)
    return (agreed * total - by_chance) / (total**2 - by_chance)
