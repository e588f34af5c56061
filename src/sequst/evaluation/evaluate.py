"""Score a tagger on tagged sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sequst.calibration.entities import entity_outcomes
from sequst.calibration.reliability import Bin, expected_calibration_error, reliability
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import types_of
from sequst.errors import SequstError, shorten
from sequst.evaluation.spans import Counts, SpanScores, f1_interval, score_spans
from sequst.tagger.prediction import Prediction

if TYPE_CHECKING:
    from sequst.tagger.tagger import Tagger


@dataclass(frozen=True)
class Evaluation:
    """Span scores, the calibration of entity confidences, and how many sentences they are of."""

    scores: SpanScores
    reliability: list[Bin]
    """Confidence against accuracy of the predicted entities."""
    sentences: int
    unknown_types: dict[str, int]
    """Entities of types that the tagger does not know; they count as missed."""

    @property
    def total(self) -> Counts:
        return self.scores.total

    @property
    def ece(self) -> float | None:
        """Expected calibration error; None where no entity is predicted."""
        return expected_calibration_error(self.reliability)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.total.to_dict(),
            "f1_interval": list(f1_interval(self.scores.sentences)),
            "types": {type_: counts.to_dict() for type_, counts in self.scores.types.items()},
            "ece": self.ece,
            "reliability": [dataclasses.asdict(each) for each in self.reliability],
            "sentences": self.sentences,
        }


def evaluate(tagger: Tagger, sentences: Sequence[Sentence]) -> Evaluation:
    """Tag the sentences and compare with their tags, which all must have."""
    from sequst.tagger.predict import annotate

    untagged = next((sentence for sentence in sentences if sentence.tags is None), None)
    if untagged is not None:
        raise SequstError(f"a sentence without tags cannot be scored: {shorten(' '.join(untagged.words))}")
    return evaluation_of(list(annotate(tagger, sentences)), tagger.types)


def evaluation_of(predictions: Sequence[Prediction], types: Iterable[str]) -> Evaluation:
    """Compare predictions with the tags of their sentences. `types` are those that the tagger knows."""
    gold = [prediction.sentence.tags or () for prediction in predictions]
    _, confidences, correct = entity_outcomes(predictions)
    scores = score_spans(gold, (prediction.tags for prediction in predictions))
    unknown = {type_: scores.types[type_].fn for type_ in unknown_types(types, gold)}
    return Evaluation(scores, reliability(confidences, correct), len(predictions), unknown)


def unknown_types(known: Iterable[str], gold: Iterable[Sequence[str]]) -> list[str]:
    """The types among the tags that are not known."""
    return sorted(set(types_of(gold)) - set(known))
