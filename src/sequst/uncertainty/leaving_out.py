"""Entities that several teachers, or passes of one, had better not speak of: what is known of a dev set, put on other text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sequst.corpus.tags import OUTSIDE, spans
from sequst.evaluation.evaluating import Judged
from sequst.tagger.trust import Trust
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import units

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Entities:
    """Those that the labels of beliefs tell of, which must be the best tags: where they begin and end among all words, their
    types and the mean confidence of their words."""

    def __init__(self, beliefs: Beliefs, names: Sequence[str]) -> None:
        firsts = units(beliefs, names)
        ends = np.append(firsts[1:], len(beliefs))
        found = beliefs.labels[firsts] != names.index(OUTSIDE)
        self.firsts, self.ends = firsts[found], ends[found]
        self.types = [names[label][2:] for label in beliefs.labels[self.firsts].tolist()]
        reached = np.concatenate([[0.0], np.cumsum(beliefs.confidence, dtype=np.float64)])
        self.confidences = ((reached[self.ends] - reached[self.firsts]) / (self.ends - self.firsts)).tolist()


def judged_beliefs(beliefs: Beliefs, names: Sequence[str], gold: Sequence[Sequence[str]]) -> Judged:
    """The entities that they tell of, in sentences whose tags are known."""
    found = _Entities(beliefs, names)
    right = {
        (type_, start + first, end + first)
        for first, tags in zip(beliefs.starts.tolist(), gold, strict=False)
        for type_, start, end in spans(tags)
    }
    places = zip(found.types, found.firsts.tolist(), found.ends.tolist(), strict=True)
    return Judged(found.types, found.confidences, [place in right for place in places])


def doubtful_words(beliefs: Beliefs, names: Sequence[str], trust: Trust) -> NDArray[np.bool_]:
    """(N,): the words of entities that the trust would leave out."""
    found = _Entities(beliefs, names)
    doubtful = np.zeros(len(beliefs), dtype=np.bool_)
    for type_, confidence, first, end in zip(found.types, found.confidences, found.firsts, found.ends, strict=True):
        doubtful[first:end] = trust.confidence([confidence], type_) < trust.least
    return doubtful


def outside(beliefs: Beliefs, words: NDArray[np.bool_], label: int) -> Beliefs:
    """With these words labelled O, of which they say no more than that it is not the tag they had."""
    changed = {
        name: np.where(words, 1.0 - getattr(beliefs, name), getattr(beliefs, name)).astype(np.float32)
        for name in ("confidence", "plain_confidence")
    }
    return dataclasses.replace(beliefs, labels=np.where(words, label, beliefs.labels), **changed)
