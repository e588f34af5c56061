"""Sentences for judging: a share of those to label is random, because a score on what a model chose means nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from sequst.corpus.sentence import Sentence
from sequst.errors import UsageError

T = TypeVar("T")

SHARE = 0.2
"""Of the sentences to label, one in five is for judging."""
FEWEST = 3
"""Sentences to label from which on at least one is for judging."""


def require_share(share: float) -> None:
    """Raise an error if it is no share."""
    if not 0 <= share <= 1:
        raise UsageError(f"judging {share}: a share from 0 to 1; 0 = none for judging")


def judging_count(count: int, share: float) -> int:
    """The number of sentences for judging among `count`: their share, rounded, and at least one of `FEWEST`."""
    least = 1 if share > 0 and count >= FEWEST else 0
    return max(least, int(count * share + 0.5))


def for_judging(drawn: Sequence[Sentence], others: Iterable[tuple[str, ...]], count: int, share: float) -> list[Sentence]:
    """The first of a random draw, marked and without tags: their share of `count`, or of all there are if these are fewer.

    `others` are the words of those that may be chosen; some may be in the draw too.
    """
    there = len({*others, *(sentence.words for sentence in drawn)})
    return [replace(each, judging=True, tags=None) for each in drawn[: judging_count(min(count, there), share)]]


def interleave(chosen: Sequence[T], judging: Sequence[T]) -> list[T]:
    """Both in their order, those for judging spread evenly: every fifth if they are a fifth of all, from the third on."""
    count, waiting = len(chosen) + len(judging), iter(chosen)
    places = {(2 * i + 1) * count // (2 * len(judging)): each for i, each in enumerate(judging)}
    return [places[place] if place in places else next(waiting) for place in range(count)]
