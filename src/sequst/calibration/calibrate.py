"""Calibrate a trained tagger on a dev set: temperature, entity confidence, abstention."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sequst.calibration.entities import abstention_threshold, describe_abstention, entity_outcomes, fit_entity_calibration
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.tagger.entity_calibration import UNCALIBRATED
from sequst.tagger.predict import annotate, label_words
from sequst.tagger.tagger import Tagger

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 20
"""Predicted entities on the dev set below which nothing is calibrated."""
TOO_FEW = (
    f"confidences are not calibrated, so likely too high: fewer than {FEWEST} entities were found in the dev set; "
    "use a larger one (--dev, --dev-shots)"
)
SMALL = 1200
"""Entities of the largest few-shot dev set with which the default of `calibration_shift` was found."""
LOWEST, HIGHEST = 0.1, 20.0
"""Temperatures that are tried."""


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


def fit_temperature(probabilities: NDArray[np.float32], tags: Sequence[str], names: Sequence[str]) -> float:
    """The temperature at which the tags of words are most likely, from the probabilities (N, C) of the tags called `names`.

    Words of a type that is not among these do not count; without any other it is 1. Golden section: there is one optimum.
    """
    ids = {name: number for number, name in enumerate(names)}
    known = [place for place, tag in enumerate(tags) if tag in ids]
    if not known:
        return 1.0
    labels = torch.tensor([ids[tags[place]] for place in known])
    log_probs = torch.from_numpy(probabilities[known]).double().clamp(min=1e-30).log()

    def loss(log_temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(log_probs / float(np.exp(log_temperature)), labels))

    low, high = float(np.log(LOWEST)), float(np.log(HIGHEST))
    ratio = (5.0**0.5 - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return float(np.exp((low + high) / 2.0))
