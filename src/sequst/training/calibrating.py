"""What a trained tagger says of its own certainty, put right with the dev set, and what it then had better not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans
from sequst.evaluation.calibration import fit_trust, least_worth
from sequst.evaluation.evaluating import Judged, judged_entities
from sequst.tagger.predicting import annotate
from sequst.tagger.tagger import Tagger
from sequst.tagger.trust import AS_IT_IS, Trust
from sequst.uncertainty.temperature import fit_temperature

FEWEST = 20
"""Predicted entities of the dev set from which something can be learnt of how often they are right."""
TOO_FEW = (
    f"confidences are not calibrated, likely too high, and nothing is left out: fewer than {FEWEST} entities were found in the "
    "dev set; a larger one (--dev, --dev-shots) mends that"
)
SMALL = 1200
"""Entities of the largest few-shot dev set with which the default of `optimism` was found."""


def faded(optimism: float, entities: int) -> float:
    """What to take off after so many entities of a dev set: beyond `SMALL` less and less, so that a large one has the last
    word."""
    return optimism * min(1.0, SMALL / max(entities, 1))


def what_is_left_out(tagger: Tagger, dev: Sequence[Sentence]) -> str | None:
    """Told of the entities that are found in the dev set; nothing where all of them are told."""
    if tagger.trust.least <= 0:
        return None
    predictions = list(annotate(tagger, dev))
    left_out = Counter(entity.type for each in predictions for entity in each.left_out)
    if not left_out:
        return None
    told = Counter(entity.type for each in predictions for entity in each.entities)
    whole = [type_ for type_ in left_out if type_ not in told]
    every = f", all of type {', '.join(whole)} among them" if whole else ""
    return (
        f"entities of less confidence than {tagger.trust.least:.2f} are left out, for they cost more F1 than they bring: of "
        f"{left_out.total() + told.total()} in the dev set {left_out.total()}{every}; predict --min-confidence 0 tells them too"
    )


def learnt_trust(found: Judged, optimism: float, there: int | None) -> Trust:
    """From entities that were found in a dev set; with how many are `there`, those that are not worth it are left out."""
    fitted = fit_trust(*found)
    trust = fitted._replace(intercept=fitted.intercept - faded(optimism, len(found.correct)))
    if there is None:
        return trust
    confidences = [trust.confidence([each], type_) for type_, each, _ in zip(*found, strict=True)]
    return trust._replace(least=least_worth(confidences, there))


def entities_of(sentences: Sequence[Sentence]) -> int:
    """How many their tags tell of."""
    return sum(len(spans(sentence.tags or ())) for sentence in sentences)


def calibrate(tagger: Tagger, dev: Sequence[Sentence], optimism: float = 0.0, abstain: bool = False) -> dict[str, Any] | None:
    """Divide the scores by the temperature that fits the words of the dev set, then let the confidence of entities follow how
    many of them, and of each type, are right there, less the `optimism` of a small dev set, in logits; those that cost more F1
    than they bring are left out from now on, where it is to `abstain`. Tells what was found; nothing where the dev set has too
    few entities."""
    tagger.trust = AS_IT_IS
    if len(judged_entities(tagger, dev).correct) < FEWEST:
        return None
    temperature = fit_temperature(tagger, dev)
    tagger.head.temper(temperature)
    found = judged_entities(tagger, dev)
    less = faded(optimism, len(found.correct))
    tagger.trust = learnt_trust(found, optimism, entities_of(dev) if abstain else None)
    return {"temperature": temperature, **tagger.trust.to_dict(), "entities": len(found.correct), "optimism": less}
