"""Labels that a tagger doubts: given entities that it takes for something else, and entities that it finds where none is."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import Span, spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

OTHER_TYPE, OTHER_EDGES, OTHER_BOTH, NO_ENTITY, MISSED = (
    "other type", "other edges", "other type and edges", "no entity", "missed entity",
)  # fmt: skip
LEAST = 1e-9
"""No tag is less likely than this: a logarithm must be finite."""
SHRINKAGE = 10
"""Words of the average tag that are added to those of each: a tag that is given once tells little of how likely it is."""


@dataclass(frozen=True)
class HeldOutPrediction:
    """A labelled sentence, and what a tagger that has not learnt it makes of it."""

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
    """A place where the labels look wrong: an entity that is given, one that the tagger would have there, or one of them and
    none."""

    sentence: Sentence
    number: int
    given: Span | None
    alternative: Span | None
    given_probability: float
    """Of the given tags, of the words on which the two differ and which the tagger can judge: the geometric mean."""
    alternative_probability: float
    doubt: float = 0.0
    """How much likelier the tagger's tags are than the given ones, of those words: the mean logarithm of the two probabilities'
    ratio, each held against what is usual for its tag."""

    @property
    def kind(self) -> str:
        if self.given is None:
            return MISSED
        if self.alternative is None:
            return NO_ENTITY
        if self.given[1:] == self.alternative[1:]:
            return OTHER_TYPE
        return OTHER_EDGES if self.given.type == self.alternative.type else OTHER_BOTH

    @property
    def start(self) -> int:
        return min(span.start for span in (self.given, self.alternative) if span is not None)

    @property
    def end(self) -> int:
        return max(span.end for span in (self.given, self.alternative) if span is not None)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `sequst suspects` writes; the line is that of the first word in question, or there is a record."""
        source = self.sentence.source
        return {
            "kind": self.kind,
            "file": None if source is None else source.file,
            "line": None if source is None or source.unit != "line" else source.line_of(self.start),
            "record": None if source is None or source.unit == "line" else source.line,
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


def rank_suspects(judged: Iterable[HeldOutPrediction]) -> list[Suspect]:
    """All suspects from the most doubtful down, of equals in the order of the data.

    A ratio and not a difference of probabilities, for a tagger that is sure of itself tells wrong labels by how little it makes
    of what is given. What is usual for a tag is taken out of it, as confident learning does (Northcutt et al. 2021): where a
    tagger seldom finds a tag, that it does not find it says little.
    """
    judged = list(judged)
    usual = usual_probabilities(judged)
    return sorted((suspect for each in judged for suspect in suspects_of(each, usual)), key=lambda suspect: -suspect.doubt)


def usual_probabilities(judged: Iterable[HeldOutPrediction]) -> dict[str, float]:
    """By tag, the mean probability of it at the words that are labelled so, drawn towards that of all words by `SHRINKAGE`."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    known: set[str] = set()
    for each in judged:
        known.update(each.labels)
        places = {label: place for place, label in enumerate(each.labels)}
        for tag, row in zip(each.sentence.tags or (), each.probabilities, strict=True):
            if tag in places:
                found[tag].append(float(row[places[tag]]))
    everywhere = [value for values in found.values() for value in values]
    average = max(fmean(everywhere), LEAST) if everywhere else 1.0  # any, where no word is labelled
    return {tag: (sum(found[tag]) + SHRINKAGE * average) / (len(found[tag]) + SHRINKAGE) for tag in sorted(known)}


def suspects_of(judged: HeldOutPrediction, usual: Mapping[str, float]) -> list[Suspect]:
    """Where the tagger's entities are not the given ones, from left to right; `usual` are the probabilities of tags where they
    are given.

    A given entity that it does not find is held against the one of its own that shares most words with it, if any; one that it
    finds is a suspect by itself where it shares no word with a given one. A given entity of a type that the tagger does not
    know is not judged, nor is a word: it cannot but find something else.
    """
    given, found = spans(judged.sentence.tags or ()), spans(judged.tags)
    pairs: list[tuple[Span | None, Span | None]] = []
    for mine in given:
        if mine not in found and f"B-{mine.type}" in judged.labels:
            shared = [each for each in found if _shared(mine, each)]
            pairs.append((mine, max(shared, key=functools.partial(_shared, mine), default=None)))
    pairs += [(None, mine) for mine in found if not any(_shared(mine, each) for each in given)]
    suspects = (_suspect(judged, usual, *pair) for pair in pairs)
    return sorted((each for each in suspects if each is not None), key=lambda suspect: suspect.start)


def _shared(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))


def _suspect(
    judged: HeldOutPrediction, usual: Mapping[str, float], given: Span | None, alternative: Span | None
) -> Suspect | None:
    """None where no word is left that the tagger can judge."""
    found = Suspect(judged.sentence, judged.number, given, alternative, 0.0, 0.0)
    theirs, ours = judged.sentence.tags or (), judged.tags
    words = [i for i in range(found.start, found.end) if theirs[i] != ours[i] and theirs[i] in judged.labels]
    if not words:
        return None
    given_log, own_log = _mean_log(judged, theirs, words), _mean_log(judged, ours, words)
    expected = fmean(log(usual[ours[i]] / usual[theirs[i]]) for i in words)
    doubt = own_log - given_log - expected
    return dataclasses.replace(found, given_probability=exp(given_log), alternative_probability=exp(own_log), doubt=doubt)


def _mean_log(judged: HeldOutPrediction, tags: Sequence[str], words: Sequence[int]) -> float:
    """Of the probabilities of the tags of these words; words of an entity stand and fall together, so their number must not
    count."""
    found = (float(judged.probabilities[i, judged.labels.index(tags[i])]) for i in words)
    return fmean(log(max(probability, LEAST)) for probability in found)
