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
SMALL = 1200
"""Entities of the largest few-shot dev set with which the default of `optimism` was found."""


def faded(optimism: float, entities: int) -> float:
    """What to take off after so many entities of a dev set: beyond `SMALL` less and less, so that a large one has the last
    word."""
    return optimism * min(1.0, SMALL / max(entities, 1))


def calibrate(tagger: Tagger, dev: Sequence[Sentence], optimism: float = 0.0) -> dict[str, Any] | None:
    """Divide the scores by the temperature that fits the words of the dev set, then let the confidence of entities follow how
    many of them, and of each type, are right there, less the `optimism` of a small dev set, in logits. Tells what was found;
    nothing where the dev set has too few entities."""
    tagger.trust = AS_IT_IS
    if len(judged_entities(tagger, dev).correct) < FEWEST:
        return None
    temperature = fit_temperature(tagger, dev)
    tagger.head.temper(temperature)
    found = judged_entities(tagger, dev)
    fitted, less = fit_trust(*found), faded(optimism, len(found.correct))
    tagger.trust = fitted._replace(intercept=fitted.intercept - less)
    return {"temperature": temperature, **tagger.trust.to_dict(), "entities": len(found.correct), "optimism": less}
