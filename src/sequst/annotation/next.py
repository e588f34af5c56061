"""Choose the sentences of a pool whose labels would teach a tagger most."""

from __future__ import annotations

import contextlib
import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sequst.annotation.diversity import Highest, features, spread_out
from sequst.annotation.draw import Draw, shape
from sequst.annotation.judging import SHARE, for_judging, interleave, judging_count, require_share
from sequst.corpus.formats.records import mark_of
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

STRATEGIES = ("information-gain", "confidence", "random")
DECIDING = 3
"""Words that decide the score of a sentence."""
CANDIDATES = 5
"""Times the sentences asked for: so many of those with the highest scores, near-copies not counted, are chosen among."""


@dataclass(frozen=True)
class Chosen:
    """A sentence to label, its prediction and its score (none for a random choice). The prediction is empty for judging,
    so that the judgement is the person's own, and if there is no model yet."""

    prediction: Prediction
    score: float | None

    @property
    def sentence(self) -> Sentence:
        return self.prediction.sentence

    @property
    def judging(self) -> bool:
        """Whether it is for judging: drawn at random from all of the pool."""
        return self.sentence.judging

    @property
    def predicted(self) -> bool:
        return len(self.prediction.tags) > 0

    @classmethod
    def unpredicted(cls, sentence: Sentence) -> Chosen:
        return cls(Prediction(sentence, (), ()), None)

    @property
    def tags(self) -> tuple[str, ...]:
        """The entities that the tagger finds, as IOB2 allows them: what is handed out is to be read again."""
        return tags_of(spans(self.prediction.tags), len(self.prediction.tags))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form of the prediction, its text and its id where there are any, and the score. Without a
        prediction, the words and the mark alone."""
        record = {**self.prediction.to_dict(), "tags": list(self.tags)}
        id_, text = record.pop("id"), self.sentence.text
        own = {} if id_ is None else {"id": id_}
        said = {} if text is None else {"text": text}
        if not self.predicted:
            return {**own, **said, "words": list(self.sentence.words), **mark_of(self.sentence)}
        return {**own, "score": None if self.score is None else round(self.score, 6), **said, **record}

    def as_task(self) -> tuple[Sentence, list[float] | None]:
        """The sentence with its predicted tags and the confidence of each entity, as annotation tools take them; neither
        without a prediction."""
        return self.prediction.as_task() if self.predicted else (self.sentence, None)


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
    judging: float = SHARE,
    labeled: Iterable[Sentence] = (),
    advance: Callable[[int], None] = lambda sentences: None,
) -> list[Chosen]:
    """The `count` sentences to label next, or all different ones where there are fewer; the same seed gives the same.

    They are scored by the `information-gain` of their words, by how far their `confidence` is from 1, or drawn at `random`.
    `diverse`, the default unless random, spreads them out and counts lines that differ only in numbers and capitals as one.
    The share `judging` of them, every fifth, is instead drawn at random from all of the pool, marked for judging and without
    a prediction: a score on the others means nothing, for the model chose them. Sentences with the words of a `labeled` one are
    never chosen. The pool is streamed: at most (3 x `CANDIDATES` + 2 x `judging`) x `count` sentences are held. `advance` is
    called for each that is scored. Entities below the confidence cut are not left out.
    """
    require_choice(count, strategy, passes)
    require_share(judging)
    require_layers(tagger, last_layers)
    diverse = strategy != "random" if diverse is None else diverse
    done = {sentence.words for sentence in labeled}
    pool = (_unmarked(sentence) for sentence in sentences if sentence.words and sentence.words not in done)
    draw = Draw(judging_count(count, judging), seed)
    with _all_entities(tagger):
        scored = _scored(tagger, draw.watch(pool), strategy, passes, last_layers, seed)
        found = _highest(tagger, scored, count, diverse, advance)
        marked = for_judging(draw.drawn(), (each.sentence.words for each in found), count, judging)
        taken = {sentence.words for sentence in marked}
        found = [each for each in found if each.sentence.words not in taken]
        most = count - len(marked)
        if not diverse:
            found = found[:most]
        if strategy == "random":
            found = [Chosen(prediction, None) for prediction in annotate(tagger, [each.sentence for each in found])]
    return interleave(_spread(tagger, found, most) if diverse else found, list(map(Chosen.unpredicted, marked)))


def _spread(tagger: Tagger, found: list[Chosen], count: int) -> list[Chosen]:
    """A diverse choice among the candidates."""
    scores = [1.0 if each.score is None else each.score for each in found]
    sentences = [each.sentence for each in found]
    vectors = sentence_vectors(tagger, sentences)
    return [found[place] for place in spread_out(scores, vectors, count, features(vectors, sentences))]


def _unmarked(sentence: Sentence) -> Sentence:
    """The sentence without an earlier mark: one that is chosen is not for judging, whatever it was drawn for before."""
    return replace(sentence, judging=False) if sentence.judging else sentence


def require_choice(count: int, strategy: str, passes: int) -> None:
    """Raise an error if the arguments are invalid."""
    if count < 1:
        raise UsageError(f"count {count}: choose at least 1 sentence")
    if strategy not in STRATEGIES:
        raise UsageError(f"unknown strategy {strategy!r}; {nearest(strategy, STRATEGIES)}")
    if passes < 1:
        raise UsageError(f"passes {passes}: at least 1")


@contextlib.contextmanager
def _all_entities(tagger: Tagger) -> Iterator[None]:
    """Context in which no entity is left out."""
    kept = tagger.entity_calibration
    tagger.entity_calibration = kept._replace(threshold=0.0)
    try:
        yield
    finally:
        tagger.entity_calibration = kept


def _scored(
    tagger: Tagger, pool: Iterator[Sentence], strategy: str, passes: int, last_layers: int, seed: int
) -> Iterator[tuple[float, Prediction]]:
    """(score, prediction); a random choice tags only what it chooses, so its predictions are empty."""
    if strategy == "random":
        draws = random.Random(seed)
        for sentence in pool:
            yield draws.random(), Prediction(sentence, (), ())
    elif strategy == "confidence":
        for prediction in annotate(tagger, pool):
            yield sentence_score([1.0 - confidence for confidence in prediction.confidences]), prediction
    else:
        for uncertain in annotate_with_uncertainty(tagger, pool, passes, seed, last_layers=last_layers):
            yield sentence_score(uncertain.information_gains), uncertain


def _highest(
    tagger: Tagger, scored: Iterable[tuple[float, Prediction]], count: int, diverse: bool, advance: Callable[[int], None]
) -> list[Chosen]:
    """Those with the highest scores: `count`, or if diverse the candidates that are spread out."""
    held = Highest[Prediction](count * CANDIDATES, partial(_features, tagger)) if diverse else Highest[Prediction](count)
    for score, prediction in scored:
        held.offer(score, shape(prediction.words) if diverse else prediction.words, prediction)
        advance(1)
    return [Chosen(prediction, score) for score, prediction in held.ranked()]


def sentence_score(words: Sequence[float]) -> float:
    """The mean of the `DECIDING` highest scores of its words; words that a shorter sentence lacks count 0."""
    return sum(heapq.nlargest(DECIDING, words)) / DECIDING


def _features(tagger: Tagger, predictions: list[Prediction]) -> NDArray[np.float64]:
    sentences = [each.sentence for each in predictions]
    return features(sentence_vectors(tagger, sentences), sentences)
