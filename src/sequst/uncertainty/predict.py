"""Predictions with the uncertainties of MC dropout."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any, Self

from sequst.corpus.sentence import Sentence
from sequst.tagger.accel.forward import Forward
from sequst.tagger.precision import as_in_this_thread
from sequst.tagger.prediction import CHUNK, Prediction
from sequst.tagger.tagger import Tagger
from sequst.uncertainty.beliefs import Beliefs, form_beliefs

PASSES = 20
"""T of the paper."""


@dataclass(frozen=True)
class UncertainPrediction(Prediction):
    """A prediction with, for every word, its mean probability over the passes (Eq. 5) and the information gain (Eq. 4)."""

    mc_confidences: tuple[float, ...] = ()
    information_gains: tuple[float, ...] = ()

    def cut(self) -> Self:
        """Of words whose entity is left out the passes too are as sure of O as of not being the tag."""
        found = super().cut()
        left_out = {word for entity in found.left_out for word in range(entity.start, entity.end)}
        means = (1.0 - mean if word in left_out else mean for word, mean in enumerate(found.mc_confidences))
        return replace(found, mc_confidences=tuple(means)) if left_out else found

    def to_dict(self) -> dict[str, Any]:
        """The plain form, and `confidence` and `information_gain` for each word; of an entity the mean confidence of its words
        and the largest gain."""
        record = super().to_dict()
        for entity in [*record["entities"], *record.get("left_out", ())]:
            words = slice(entity["start"], entity["end"])
            mean = fmean(self.mc_confidences[words])
            entity["mc_confidence"] = round(mean if entity in record["entities"] else 1.0 - mean, 6)
            entity["information_gain"] = round(max(self.information_gains[words]), 6)
        record["confidence"] = [round(value, 6) for value in self.mc_confidences]
        record["information_gain"] = [round(value, 6) for value in self.information_gains]
        return record


def annotate_with_uncertainty(
    tagger: Tagger,
    sentences: Iterable[Sentence],
    passes: int = PASSES,
    seed: int = 12,
    chunk: int = CHUNK,
    last_layers: int = 0,
) -> Iterator[UncertainPrediction]:
    """Predictions one by one, in order; holds two times `chunk` sentences at most. The same seed gives the same numbers. With
    `last_layers` only these drop out.

    While predictions are looked at a thread forms beliefs of the next chunk, unless its passes change modes and generators,
    which are not a thread's own.
    """
    stream, stopped, precision = iter(sentences), threading.Event(), as_in_this_thread()
    ahead = Forward(tagger).cpu is not None

    def go_on(words: int) -> None:
        if stopped.is_set():
            raise InterruptedError

    def form(held: list[Sentence], number: int) -> Beliefs:
        with precision:
            return form_beliefs(tagger, held, passes, seed + (number << 20), last_layers=last_layers, advance=go_on)

    coming: deque[tuple[list[Sentence], Callable[[], Beliefs]]] = deque()
    with ThreadPoolExecutor(1) as pool:
        try:
            for number in itertools.count():
                held, failure = _read(stream, chunk)
                if held:
                    coming.append((held, pool.submit(form, held, number).result if ahead else partial(form, held, number)))
                more = held and failure is None
                while len(coming) > (1 if more and ahead else 0):
                    before, formed = coming.popleft()
                    yield from _predictions(tagger, before, formed())
                if failure is not None:
                    raise failure
                if not more:
                    return
        finally:
            stopped.set()  # whoever stops looking, or is interrupted, waits for no more than a batch


def _read(stream: Iterator[Sentence], count: int) -> tuple[list[Sentence], Exception | None]:
    """Some sentences, and why the next cannot be read: what came before it is to come out first."""
    held: list[Sentence] = []
    try:
        held.extend(itertools.islice(stream, count))
    except Exception as error:
        return held, error
    return held, None


def _predictions(tagger: Tagger, sentences: list[Sentence], beliefs: Beliefs) -> Iterator[UncertainPrediction]:
    tags = [tagger.labels[label] for label in beliefs.labels.tolist()]
    numbers = [values.tolist() for values in (beliefs.plain_confidence, beliefs.confidence, beliefs.information_gain)]
    for sentence, (start, end) in zip(sentences, itertools.pairwise(beliefs.starts.tolist()), strict=True):
        words = slice(start, end)
        plain, mean, gain = (tuple(values[words]) for values in numbers)
        found = UncertainPrediction(
            sentence, tuple(tags[words]), plain, tagger.entity_calibration, mc_confidences=mean, information_gains=gain
        )
        yield found.cut()
