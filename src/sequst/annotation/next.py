"""What to label next: the sentences of a pool whose labels would teach a tagger the most."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sequst.annotation.diversity import Varied, features, spread_out
from sequst.annotation.ranking import Highest, sentence_score
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans, tags_of
from sequst.errors import UsageError, nearest
from sequst.tagger.predict import annotate, sentence_vectors
from sequst.tagger.prediction import Prediction
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.passes import require_layers
from sequst.uncertainty.predict import PASSES, annotate_with_uncertainty

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = re.compile(r"\d+")
STRATEGIES = ("information-gain", "confidence", "random")
CANDIDATES = 5
"""Times the sentences asked for: so many of those with the highest scores, near-copies not counted, are chosen among."""


@dataclass(frozen=True)
class Chosen:
    """A sentence to label, what the tagger thinks of it, and its score; a random choice has none."""

    prediction: Prediction
    score: float | None

    @property
    def sentence(self) -> Sentence:
        return self.prediction.sentence

    @property
    def tags(self) -> tuple[str, ...]:
        """The entities that the tagger finds, as IOB2 allows them: what is handed out is to be read again."""
        return tags_of(spans(self.prediction.tags), len(self.prediction.tags))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form of the prediction, its text and its id where there are any, and the score."""
        record = {**self.prediction.to_dict(), "tags": list(self.tags)}
        id_, text = record.pop("id"), self.sentence.text
        return {
            **({} if id_ is None else {"id": id_}),
            "score": None if self.score is None else round(self.score, 6),
            **({} if text is None else {"text": text}),
            **record,
        }


def choose_next(
    tagger: Tagger,
    sentences: Iterable[Sentence],
    count: int = 50,
    *,
    strategy: str = "information-gain",
    diverse: bool | None = None,
    passes: int = PASSES,
    last_layers: int = 0,
    seed: int = 12,
    labeled: Iterable[Sentence] = (),
    advance: Callable[[int], None] = lambda sentences: None,
) -> list[Chosen]:
    """The `count` sentences to label next, or all different ones where there are fewer; the same seed gives the same.

    They are scored by the `information-gain` of their words, by how far their `confidence` is from 1, or drawn at `random`. If
    `diverse`, as they are unless random, they are spread out. The pool is streamed: no more than three times `CANDIDATES` times
    `count` sentences are held. No two have the same words, nor, spread out, words that differ in numbers and capitals alone,
    none has those of a sentence that is `labeled` already, and none has no words. `advance` hears of the sentences one by one,
    but not of labelled ones. Entities that the tagger would leave out are told too: it is for whoever labels to say what they
    are.
    """
    require_choice(count, strategy, passes)
    require_layers(tagger, last_layers)
    spread = strategy != "random" if diverse is None else diverse
    done = {sentence.words for sentence in labeled}
    pool = (sentence for sentence in sentences if sentence.words and sentence.words not in done)
    with _telling_all(tagger):
        if strategy == "random":
            candidates = _drawn(tagger, pool, count, seed, spread, advance)
        else:
            candidates = _best(tagger, _scored(tagger, pool, strategy, passes, last_layers, seed), count, spread, advance)
    if not spread:
        return candidates
    scores = [1.0 if each.score is None else each.score for each in candidates]
    sentences = [each.sentence for each in candidates]
    vectors = sentence_vectors(tagger, sentences)
    known_by = features(vectors, [sentence.words for sentence in sentences])
    return [candidates[place] for place in spread_out(scores, vectors, count, known_by)]


@contextlib.contextmanager
def _telling_all(tagger: Tagger) -> Iterator[None]:
    """Within it no entity is left out."""
    kept = tagger.entity_calibration
    tagger.entity_calibration = kept._replace(threshold=0.0)
    try:
        yield
    finally:
        tagger.entity_calibration = kept


def _features(tagger: Tagger, sentences: list[Sentence]) -> NDArray[np.float64]:
    return features(sentence_vectors(tagger, sentences), [sentence.words for sentence in sentences])


def require_choice(count: int, strategy: str, passes: int) -> None:
    """An error where no such choice can be made."""
    if count < 1:
        raise UsageError(f"count {count}: choose at least 1 sentence")
    if strategy not in STRATEGIES:
        raise UsageError(f"unknown strategy {strategy!r}; {nearest(strategy, STRATEGIES)}")
    if passes < 1:
        raise UsageError(f"passes {passes}: at least 1")


def _shape(words: tuple[str, ...]) -> object:
    """A thousand lines of a log that differ in their numbers would crowd out all else."""
    return tuple(_DIGITS.sub("0", word.lower()) for word in words)


def _drawn(
    tagger: Tagger, pool: Iterator[Sentence], count: int, seed: int, spread: bool, advance: Callable[[int], None]
) -> list[Chosen]:
    """Every sentence as likely as another; those that are chosen among are tagged, and no other."""
    draws = random.Random(seed)
    held = Varied[Sentence](CANDIDATES * count, partial(_features, tagger)) if spread else Highest[Sentence](count)
    for sentence in pool:
        held.offer(draws.random(), _shape(sentence.words) if spread else sentence.words, sentence)
        advance(1)
    return [Chosen(prediction, None) for prediction in annotate(tagger, [sentence for _, sentence in held.ranked()])]


def _best(
    tagger: Tagger, scored: Iterator[tuple[Prediction, list[float]]], count: int, spread: bool, advance: Callable[[int], None]
) -> list[Chosen]:
    def known_by(predictions: list[Prediction]) -> NDArray[np.float64]:
        return _features(tagger, [each.sentence for each in predictions])

    held = Varied[Prediction](CANDIDATES * count, known_by) if spread else Highest[Prediction](count)
    for prediction, words in scored:
        held.offer(sentence_score(words), _shape(prediction.words) if spread else prediction.words, prediction)
        advance(1)
    return [Chosen(prediction, score) for score, prediction in held.ranked()]


def _scored(
    tagger: Tagger, pool: Iterator[Sentence], strategy: str, passes: int, last_layers: int, seed: int
) -> Iterator[tuple[Prediction, list[float]]]:
    """(prediction, the scores of its words)."""
    if strategy == "confidence":
        for prediction in annotate(tagger, pool):
            yield prediction, [1.0 - confidence for confidence in prediction.confidences]
        return
    for uncertain in annotate_with_uncertainty(tagger, pool, passes, seed, last_layers=last_layers):
        yield uncertain, list(uncertain.information_gains)
