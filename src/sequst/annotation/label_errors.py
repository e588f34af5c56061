"""Labels that disagree with a tagger, ranked by how likely they are wrong."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span, spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 1e-9
"""Lower bound of a probability: a logarithm must be finite."""
SHRINKAGE = 10
"""Words of the average tag that are added to those of each: a tag that is given once tells little of how likely it is."""


@dataclass(frozen=True)
class HeldOutPrediction:
    """A labelled sentence with the prediction of a tagger that has not learnt it."""

    sentence: Sentence
    number: int
    """Which one it is in the data, from 1."""
    tags: tuple[str, ...]
    """The tagger's own."""
    probabilities: NDArray[np.float32]
    """(W, C): of every label for every word."""
    labels: tuple[str, ...]
    """Those that the tagger knows."""


@dataclass(frozen=True)
class Suspect:
    """A suspicious label: the given entity, the predicted one, or one of the two."""

    sentence: Sentence
    number: int
    start: int
    """First word of the two entities; `end` is exclusive."""
    end: int
    given: Span | None
    alternative: Span | None
    given_probability: float
    """Geometric mean of the probabilities of the given tags, over the words on which the two differ and whose given tag the
    tagger knows."""
    alternative_probability: float
    doubt: float
    """Mean log ratio of the two probabilities of these words, each divided by what is usual for its tag."""

    @property
    def kind(self) -> str:
        if self.given is None:
            return "missed entity"
        if self.alternative is None:
            return "no entity"
        if self.given[1:] == self.alternative[1:]:
            return "other type"
        return "other edges" if self.given.type == self.alternative.type else "other type and edges"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `sequst suspects` writes; the line is that of the first word in question, or there is a record."""
        source = self.sentence.source
        in_lines = source is not None and source.unit == "line"
        return {
            "kind": self.kind,
            "file": source.file if source else None,
            "line": source.line_of(self.start) if source and in_lines else None,
            "record": source.line if source and not in_lines else None,
            "sentence": self.number,
            "id": self.sentence.id,
            "start": self.start,
            "end": self.end,
            "text": self.sentence.excerpt(self.start, self.end),
            "given": self._entity(self.given),
            "given_probability": round(self.given_probability, 6),
            "alternative": self._entity(self.alternative),
            "alternative_probability": round(self.alternative_probability, 6),
            "doubt": round(self.doubt, 6),
            "words": list(self.sentence.words),
            "tags": list(self.sentence.tags or ()),
        }

    def _entity(self, span: Span | None) -> dict[str, Any] | None:
        return None if span is None else {**span._asdict(), "text": self.sentence.excerpt(span.start, span.end)}


def rank_suspects(judged: Sequence[HeldOutPrediction]) -> list[Suspect]:
    """All suspects, the most doubtful first, of equals in the order of the data.

    The probabilities' ratio ranks them, each divided by what is usual for its tag, as in confident learning (Northcutt et al.
    2021): that a tagger does not find a tag which it seldom finds says little.
    """
    usual = usual_probabilities(judged)
    return sorted((suspect for each in judged for suspect in suspects_of(each, usual)), key=lambda suspect: -suspect.doubt)


def usual_probabilities(judged: Sequence[HeldOutPrediction]) -> dict[str, float]:
    """By tag, the mean probability of it at the words that are labelled so, drawn towards that of all words by `SHRINKAGE`."""
    found: dict[str, list[float]] = {label: [] for each in judged for label in each.labels}
    for each in judged:
        for tag, row in zip(each.sentence.tags or (), each.probabilities, strict=True):
            if tag in each.labels:
                found[tag].append(float(row[each.labels.index(tag)]))
    everywhere = [value for values in found.values() for value in values]
    average = max(fmean(everywhere), LEAST) if everywhere else 1.0  # any, where no word is labelled
    return {tag: (sum(values) + SHRINKAGE * average) / (len(values) + SHRINKAGE) for tag, values in found.items()}


def suspects_of(judged: HeldOutPrediction, usual: Mapping[str, float]) -> list[Suspect]:
    """Where the tagger's entities are not the given ones, from left to right; `usual` has the probabilities of tags where they
    are given.

    A given entity that is not found is paired with the found one that shares most words with it, if any. A found one that
    shares no word with a given one stands alone. Given entities and words of types that the tagger does not know are skipped.
    """
    given, found = spans(judged.sentence.tags or ()), spans(judged.tags)
    suspects = []
    for mine in given:
        if mine not in found and f"B-{mine.type}" in judged.labels:
            shared = [each for each in found if _shared(mine, each)]
            suspects.append(_suspect(judged, usual, mine, max(shared, key=functools.partial(_shared, mine), default=None)))
    suspects += [_suspect(judged, usual, None, mine) for mine in found if not any(_shared(mine, each) for each in given)]
    return sorted((each for each in suspects if each is not None), key=lambda suspect: suspect.start)


def _shared(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))


def _suspect(
    judged: HeldOutPrediction, usual: Mapping[str, float], given: Span | None, alternative: Span | None
) -> Suspect | None:
    """None where no word is left that the tagger can judge."""
    places = [span[1:] for span in (given, alternative) if span is not None]
    start, end = min(place[0] for place in places), max(place[1] for place in places)
    theirs, ours = judged.sentence.tags or (), judged.tags
    words = [i for i in range(start, end) if theirs[i] != ours[i] and theirs[i] in judged.labels]
    if not words:
        return None
    given_log, own_log = _mean_log(judged, theirs, words), _mean_log(judged, ours, words)
    expected = fmean(log(usual[ours[i]] / usual[theirs[i]]) for i in words)
    doubt = own_log - given_log - expected
    return Suspect(judged.sentence, judged.number, start, end, given, alternative, exp(given_log), exp(own_log), doubt)


def _mean_log(judged: HeldOutPrediction, tags: Sequence[str], words: Sequence[int]) -> float:
    """Of the probabilities of the tags of these words: the mean, so that a long entity does not weigh more than a short one."""
    found = (float(judged.probabilities[i, judged.labels.index(tags[i])]) for i in words)
    return fmean(log(max(probability, LEAST)) for probability in found)
