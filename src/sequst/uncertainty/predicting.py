"""Predictions that say how sure they are: tags as ever, with the beliefs of MC dropout beside them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sequst.corpus.sentence import Sentence
from sequst.tagger.predicting import CHUNK, Prediction
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import form_beliefs

PASSES = 20
"""T of the paper."""


@dataclass(frozen=True)
class UncertainPrediction(Prediction):
    """A prediction with, for every word, its mean probability over the passes (Eq. 5) and the information gain (Eq. 4)."""

    mc_confidences: tuple[float, ...] = ()
    information_gains: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The plain form, and `confidence` and `information_gain` for each word; an entity has those of its least sure word."""
        record = super().to_dict()
        for entity in record["entities"]:
            words = slice(entity["start"], entity["end"])
            entity["mc_confidence"] = round(min(self.mc_confidences[words]), 6)
            entity["information_gain"] = round(max(self.information_gains[words]), 6)
        record["confidence"] = [round(value, 6) for value in self.mc_confidences]
        record["information_gain"] = [round(value, 6) for value in self.information_gains]
        return record


def annotate_with_uncertainty(
    tagger: Tagger, sentences: Iterable[Sentence], passes: int = PASSES, seed: int = 12, chunk: int = CHUNK
) -> Iterator[UncertainPrediction]:
    """Predictions one by one, in order; holds `chunk` sentences at a time. The same seed gives the same numbers."""
    stream = iter(sentences)
    for number in itertools.count():
        held = list(itertools.islice(stream, chunk))
        if not held:
            return
        beliefs = form_beliefs(tagger, held, passes, seed + (number << 20))
        for i, sentence in enumerate(held):
            words = slice(beliefs.starts[i], beliefs.starts[i + 1])
            yield UncertainPrediction(
                sentence,
                tuple(tagger.labels[label] for label in beliefs.labels[words]),
                tuple(map(float, beliefs.plain_confidence[words])),
                tuple(map(float, beliefs.confidence[words])),
                tuple(map(float, beliefs.information_gain[words])),
            )
