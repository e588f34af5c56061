"""Labels that a tagger doubts: given entities that it takes for something else, and entities that it finds where none is."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
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


@dataclass(frozen=True)
class Judged:
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
    """Of the given tags, of the words on which the two differ: the geometric mean."""
    alternative_probability: float

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

    @property
    def doubt(self) -> float:
        """From -1 to 1, how much likelier the tagger's tags are than the given ones."""
        return self.alternative_probability - self.given_probability

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `sequst suspects` writes; the line is that of the first word in question."""
        source = self.sentence.source
        return {
            "kind": self.kind,
            "file": None if source is None else source.file,
            "line": None if source is None else source.line_of(self.start),
            "sentence": self.number,
            "id": self.sentence.id,
            "start": self.start,
            "end": self.end,
            "text": self.sentence.excerpt(self.start, self.end),
            "given": self._entity(self.given),
            "given_probability": round(self.given_probability, 6),
            "alternative": self._entity(self.alternative),
            "alternative_probability": round(self.alternative_probability, 6),
            "words": list(self.sentence.words),
            "tags": list(self.sentence.tags or ()),
        }

    def _entity(self, span: Span | None) -> dict[str, Any] | None:
        return None if span is None else {**span._asdict(), "text": self.sentence.excerpt(span.start, span.end)}


def rank_suspects(judged: Iterable[Judged]) -> list[Suspect]:
    """All suspects from the most doubtful down, of equals in the order of the data."""
    return sorted((suspect for each in judged for suspect in suspects_of(each)), key=lambda suspect: -suspect.doubt)


def suspects_of(judged: Judged) -> list[Suspect]:
    """Where the tagger's entities are not the given ones, from left to right.

    A given entity that it does not find is held against the one of its own that shares most words with it, if any; one that it
    finds is a suspect by itself where it shares no word with a given one. A given entity of a type that the tagger does not
    know is not judged: it cannot but find something else.
    """
    given, found = spans(judged.sentence.tags or ()), spans(judged.tags)
    pairs: list[tuple[Span | None, Span | None]] = []
    for mine in given:
        if mine not in found and f"B-{mine.type}" in judged.labels:
            shared = [each for each in found if _shared(mine, each)]
            pairs.append((mine, max(shared, key=functools.partial(_shared, mine), default=None)))
    pairs += [(None, mine) for mine in found if not any(_shared(mine, each) for each in given)]
    return sorted((_suspect(judged, *pair) for pair in pairs), key=lambda suspect: suspect.start)


def _shared(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))


def _suspect(judged: Judged, given: Span | None, alternative: Span | None) -> Suspect:
    unscored = Suspect(judged.sentence, judged.number, given, alternative, 0.0, 0.0)
    theirs, ours = judged.sentence.tags or (), judged.tags
    words = [i for i in range(unscored.start, unscored.end) if theirs[i] != ours[i]]
    return Suspect(
        judged.sentence, judged.number, given, alternative, _likely(judged, theirs, words), _likely(judged, ours, words)
    )


def _likely(judged: Judged, tags: Sequence[str], words: Sequence[int]) -> float:
    """The geometric mean of the probabilities of the tags of these words; words of an entity stand and fall together, so their
    number must not count."""
    places = {label: place for place, label in enumerate(judged.labels)}
    found = [float(judged.probabilities[i, places[tags[i]]]) if tags[i] in places else 0.0 for i in words]
    return geometric_mean(max(probability, LEAST) for probability in found)
