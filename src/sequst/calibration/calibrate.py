"""Calibrate a trained tagger on a dev set: temperature, entity confidence, abstention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sequst.calibration.abstention import abstention_threshold
from sequst.calibration.entities import EntityOutcomes, count_entities, entity_outcomes, fit_entity_calibration
from sequst.calibration.temperature import fit_temperature
from sequst.corpus.sentence import Sentence
from sequst.tagger.entity_calibration import UNCALIBRATED, EntityCalibration
from sequst.tagger.predict import annotate
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


def calibrate_entities(found: EntityOutcomes, shift: float, present: int | None) -> EntityCalibration:
    """Fitted to the entities found on a dev set, less the shift; with an abstention threshold where it is given how many
    entities are `present`."""
    fitted = fit_entity_calibration(*found)
    calibration = fitted._replace(intercept=fitted.intercept - faded(shift, len(found.correct)))
    if present is None:
        return calibration
    confidences = [calibration.confidence([each], type_) for type_, each, _ in zip(*found, strict=True)]
    return calibration._replace(threshold=abstention_threshold(confidences, present))


def calibrate(tagger: Tagger, dev: Sequence[Sentence], shift: float = 0.0, abstain: bool = False) -> dict[str, Any] | None:
    """Calibrate the tagger in place; returns what was fitted, or None where the dev set has too few entities.

    First the temperature, fitted to the dev set's words; then the entity confidence, fitted to its entities, less the `shift`
    in logits; then, with `abstain`, the threshold below which entities are left out.
    """
    tagger.entity_calibration = UNCALIBRATED
    if len(entity_outcomes(annotate(tagger, dev)).correct) < FEWEST:
        return None
    temperature = fit_temperature(tagger, dev)
    tagger.head.temper(temperature)
    found = entity_outcomes(annotate(tagger, dev))
    entities = len(found.correct)
    tagger.entity_calibration = calibrate_entities(found, shift, count_entities(dev) if abstain else None)
    fitted = tagger.entity_calibration.to_dict()
    return {"temperature": temperature, **fitted, "entities": entities, "calibration_shift": faded(shift, entities)}
