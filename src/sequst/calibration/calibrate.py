"""Calibrate a trained tagger on a dev set: temperature, entity confidence, abstention."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from sequst.calibration.abstention import abstention_threshold, describe_abstention
from sequst.calibration.entities import entity_outcomes, fit_entity_calibration
from sequst.calibration.temperature import fit_temperature
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.predict import annotate, label_words
from sequst.tagger.tagger import Tagger

FEWEST = 20
"""Predicted entities on the dev set below which nothing is calibrated."""
TOO_FEW = (
    f"confidences are not calibrated, likely too high, and nothing is left out: fewer than {FEWEST} entities were found in the "
    "dev set; give a larger one (--dev, --dev-shots)"
)
SMALL = 1200
"""Entities of the largest few-shot dev set with which the default of `calibration_shift` was found."""


def faded(shift: float, entities: int) -> float:
    """The shift for a dev set of so many entities: above `SMALL` it fades in proportion."""
    return shift * min(1.0, SMALL / max(entities, 1))


def calibrate(
    tagger: Tagger,
    dev: Sequence[Sentence],
    shift: float = 0.0,
    abstain: bool = False,
    note: Callable[[str], None] = lambda message: None,
) -> dict[str, Any] | None:
    """Calibrate the tagger in place; returns what was fitted, or None where the dev set has too few entities. `note` is told
    that, or which entities are left out.

    First the temperature, fitted to the dev set's words; then the entity confidence, fitted to its entities, less the `shift`
    in logits; then, with `abstain`, the threshold below which entities are left out.
    """
    tagger.entity_calibration = UNCALIBRATED
    plain = label_words(tagger, dev, probabilities=True)
    assert plain.probabilities is not None
    tags = [tagger.labels[label] for label in plain.labels.tolist()]
    if sum(len(spans(tags[start:end])) for start, end in itertools.pairwise(plain.starts.tolist())) < FEWEST:
        note(TOO_FEW)
        return None
    gold = [tag for sentence in dev for tag in sentence.tags or ()]
    temperature = fit_temperature(plain.probabilities, gold, tagger.labels)
    tagger.head.temper(temperature)
    found = entity_outcomes(annotate(tagger, dev))
    fading = faded(shift, len(found.correct))
    fitted = fit_entity_calibration(*found)
    calibration = fitted._replace(intercept=fitted.intercept - fading)
    if abstain:
        confidences = [calibration.confidence([each], type_) for type_, each, _ in zip(*found, strict=True)]
        present = sum(len(spans(sentence.tags or ())) for sentence in dev)
        calibration = calibration._replace(threshold=abstention_threshold(confidences, present))
        if told := describe_abstention(found.types, confidences, calibration.threshold):
            note(told)
    tagger.entity_calibration = calibration
    entities = len(found.correct)
    return {"temperature": temperature, **calibration.to_dict(), "entities": entities, "calibration_shift": fading}
