"""Pseudo-labels: the teachers' beliefs, the selected words, and the examples of a student."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sequst.corpus.sentence import Sentence
from sequst.files import write_bytes
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.ensembles import best_valid, mixture, with_drawn_labels, with_labels
from sequst.uncertainty.selectors import Selector

if TYPE_CHECKING:
    from numpy.typing import NDArray


def believe(run: Run, teachers: Sequence[Tagger], round_: int, *, uncertain: bool, sampled: bool) -> Beliefs:
    """The teachers' beliefs about the unlabelled words. They are kept on disk for a resumed run.

    MC dropout passes are made where it must be known how `uncertain` a teacher is. Labels are the best tags, or `sampled` from
    the teachers' probabilities.
    """
    path = run.directory.beliefs(round_)
    if not path.is_file():
        begun = time.perf_counter()
        words = sum(len(sentence.words) for sentence in run.pool(round_).sentences)
        run.progress.begin(f"round {round_}: beliefs", len(teachers) * words, unit="words")
        try:
            found = _form(run, teachers, round_, run.settings.uncertainty.passes if uncertain else 0, sampled)
        finally:
            run.progress.end()
        found = dataclasses.replace(found, seconds=time.perf_counter() - begun)
        run.directory.written()  # never beliefs without the teacher that they are of
        write_bytes(path, found.to_bytes(), "free some space, then continue with --resume")
    beliefs = Beliefs.from_file(path)
    run.seconds += beliefs.seconds
    return beliefs


def _form(run: Run, teachers: Sequence[Tagger], round_: int, passes: int, sampled: bool) -> Beliefs:
    settings, several, members = run.settings, len(teachers) > 1, []
    sentences = run.pool(round_).sentences
    for number, teacher in enumerate(teachers):
        seed = derive(settings.seed, round_, "beliefs", *([number] if number else []))
        with run.accelerator.autocast():
            member = form_beliefs(
                teacher, sentences, passes, seed, probabilities=several or sampled,
                last_layers=settings.uncertainty.last_layers, advance=run.progress.advance,
            )  # fmt: skip
        members.append(member)
    found = mixture(members) if several else members[0]
    if sampled:
        found = with_drawn_labels(found, derive(settings.seed, round_, "labels"))
    elif several and settings.valid_tags:
        found = with_labels(found, best_valid(found, run.labels, run.transitions))
    return dataclasses.replace(found, probabilities=None)  # labels have been made of them, and nobody asks again


def select(selector: Selector, beliefs: Beliefs, seed: int, round_: int, number: int = 0) -> NDArray[np.float64]:
    """The weight of each word for the `number`th student of a round. Seed, round and number decide what is drawn."""
    place = (number, 0) if number else ()
    return selector.select(beliefs, np.random.default_rng(derive(seed, round_, "selection", *place)))


def pseudo_examples(sentences: Sequence[Sentence], tagger: Tagger, beliefs: Beliefs, weights: NDArray[np.float64]) -> Examples:
    """The sentences with a selected word, with the teachers' labels and, if they differ, word weights."""
    bounds = [slice(*pair) for pair in itertools.pairwise(beliefs.starts.tolist())]
    kept = [i for i, place in enumerate(bounds) if weights[place].any()]

    def of_kept(values: NDArray[Any]) -> list[NDArray[Any]]:
        return [values[bounds[i]] for i in kept]

    windows = tagger.splitter.windows([sentences[i].words for i in kept])
    weighed = None if np.isin(weights, (0.0, 1.0)).all() else of_kept(weights.astype(np.float32))
    return Examples(windows, of_kept(beliefs.labels), of_kept(weights > 0), weighed)
