"""Pseudo-labels: what teachers believe of the unlabelled words, which of them are selected, and the examples of a student."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sequst.files import write_bytes
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.ensembles import best_valid, draw_mixed, mixture, with_labels
from sequst.uncertainty.selectors import Selector

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Selected(NamedTuple):
    """Which of the unlabelled words a student learns, and how much each counts; None: all alike."""

    words: NDArray[np.bool_]
    weights: NDArray[np.float64] | None

    @property
    def counts(self) -> NDArray[np.float64]:
        """The weight of every word; 0 = not selected."""
        return self.words.astype(np.float64) if self.weights is None else np.where(self.words, self.weights, 0.0)


def believe(run: Run, teachers: Sequence[Tagger], round_: int, *, uncertain: bool, sampled: bool) -> Beliefs:
    """What the teachers believe of the unlabelled words; kept on disk, so that a resumed run does not ask again.

    MC dropout passes are made where it must be known how `uncertain` a teacher is. Labels are the best tags, or `sampled` from
    the teachers' probabilities.
    """
    path = run.directory.beliefs(round_)
    if not path.is_file():
        begun = time.perf_counter()
        words = sum(len(sentence.words) for sentence in run.data.unlabeled)
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
    seed, several = run.settings.seed, len(teachers) > 1
    draw = derive(seed, round_, "labels")
    members = []
    for number, teacher in enumerate(teachers):
        with run.accelerator.autocast():
            member = form_beliefs(
                teacher,
                run.data.unlabeled,
                passes,
                derive(seed, round_, "beliefs", *([number] if number else [])),
                probabilities=("mean" if passes else "plain") if several else "none",
                last_layers=run.settings.uncertainty.last_layers,
                draw=draw if sampled and not several else None,
                advance=run.progress.advance,
            )
        members.append(member)
    if not several:
        return members[0]
    found = mixture(members)
    if sampled:
        found = draw_mixed(found, draw)
    elif run.settings.valid_tags:
        found = with_labels(found, best_valid(found, run.labels, run.transitions))
    return dataclasses.replace(found, probabilities=None)  # labels have been made of them, and nobody asks again


def select(selector: Selector, beliefs: Beliefs, seed: int, round_: int, number: int = 0) -> Selected:
    """The words that the `number`th student of a round learns; what is drawn depends on the seed and both numbers."""
    place = (number, 0) if number else ()
    rng = np.random.default_rng(derive(seed, round_, "selection", *place))
    weights = selector.weights(beliefs)
    return Selected(selector.select(beliefs, rng) if weights is None else weights > 0, weights)


def pseudo_examples(run: Run, tagger: Tagger, beliefs: Beliefs, selected: Selected) -> Examples:
    """The unlabelled sentences that have a selected word, with the teachers' labels."""
    bounds = [slice(*pair) for pair in itertools.pairwise(beliefs.starts.tolist())]
    kept = [i for i, place in enumerate(bounds) if selected.words[place].any()]
    windows = tagger.splitter.windows([run.data.unlabeled[i].words for i in kept])
    weights = None if selected.weights is None else selected.weights.astype(np.float32)
    return Examples(
        windows,
        [beliefs.labels[bounds[i]] for i in kept],
        [selected.words[bounds[i]] for i in kept],
        None if weights is None else [weights[bounds[i]] for i in kept],
    )
