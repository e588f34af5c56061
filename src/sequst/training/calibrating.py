"""What a trained tagger says of its own certainty, put right with the dev set; its tags stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sequst.corpus.sentence import Sentence
from sequst.evaluation.calibration import fit_trust
from sequst.evaluation.evaluating import judged_entities
from sequst.tagger.tagger import Tagger
from sequst.tagger.trust import AS_IT_IS
from sequst.uncertainty.temperature import fit_temperature

FEWEST = 20
"""Predicted entities of the dev set from which something can be learnt of how often they are right."""
OPTIMISM = 0.23
"""By how much, in logits, a few-shot dev set makes entities look surer than other sentences of their corpus bear out: it has
chosen the weights, and its sentences were drawn for what they hold. Found by benchmarks/optimism.py, on sentences of the six
training sets."""
MEASURED = 1000
"""Entities of the largest dev set that it was found with."""


def optimism(entities: int) -> float:
    """What to take off after so many entities of a dev set: a large one has the last word, more and more."""
    return OPTIMISM * min(1.0, MEASURED / max(entities, 1))


def calibrate(tagger: Tagger, dev: Sequence[Sentence]) -> dict[str, Any] | None:
    """Divide the scores by the temperature that fits the words of the dev set, then let the confidence of entities follow how
    many of them, and of each type, are right there, less what a dev set flatters. Tells what was found; nothing where the dev
    set has too few entities."""
    tagger.trust = AS_IT_IS
    if len(judged_entities(tagger, dev).correct) < FEWEST:
        return None
    temperature = fit_temperature(tagger, dev)
    tagger.head.temper(temperature)
    found = judged_entities(tagger, dev)
    fitted = fit_trust(*found)
    tagger.trust = fitted._replace(intercept=fitted.intercept - optimism(len(found.correct)))
    return {"temperature": temperature, **tagger.trust.to_dict(), "entities": len(found.correct)}
