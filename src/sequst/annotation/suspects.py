"""Find labels that look wrong: each sentence is judged by a tagger that has learnt the others."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sequst.annotation.label_errors import HeldOutPrediction, Suspect, rank_suspects
from sequst.api import AUTO, overridden, train
from sequst.corpus.folds import fold_of
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import types_of
from sequst.errors import SequstError, UsageError, shorten
from sequst.files import Scratch
from sequst.methods.registry import find_method
from sequst.tagger.tagger import Tagger
from sequst.training.progress import Progress
from sequst.training.run import PhaseStopped
from sequst.training.seeds import derive
from sequst.training.settings import Settings
from sequst.training.sources import Source, read_tagged
from sequst.uncertainty.beliefs import form_beliefs


def find_suspects(
    labeled: Source, *, folds: int = 5, settings: Settings | None = None, progress: Progress | None = None, **overrides: Any
) -> list[Suspect]:
    """The labels that look wrong, the most doubtful first.

    One tagger is trained for each of the `folds`, in a temporary folder. `settings` and `overrides` are those of `train`. These
    taggers are thrown away, so they learn sentences marked for judging too.
    """
    settings, progress = overridden(settings or Settings(), overrides, "find_suspects()"), progress or Progress()
    sentences, notes = read_tagged(labeled)
    for note in notes:
        progress.note(note)
    stranger = next((each for each in sentences if not isinstance(each, Sentence) or each.tags is None), None)
    if stranger is not None:
        raise UsageError(f"labeled: found {shorten(stranger)} in it; give a file, or a list of Sentence with tags")
    return rank_suspects(judge(sentences, folds, settings, progress))


def judge(sentences: Sequence[Sentence], folds: int, settings: Settings, progress: Progress) -> list[HeldOutPrediction]:
    """Every sentence with what a tagger that has learnt the other folds makes of it, in their order."""
    if settings.method == AUTO:
        settings = dataclasses.replace(settings, method="finetune")
    settings = dataclasses.replace(settings, learn_judging=True)
    if find_method(settings.method).unlabeled:
        raise UsageError(f"method {settings.method} needs unlabelled text, and there is none here; use finetune")
    fold_numbers = fold_of(sentences, folds, derive(settings.seed, "folds"))
    _require_entities(sentences, fold_numbers, progress)
    judged: list[HeldOutPrediction] = []
    for number in range(folds):
        mine = [place for place, fold in enumerate(fold_numbers) if fold == number]
        others = [sentence for sentence, fold in zip(sentences, fold_numbers, strict=True) if fold != number]
        tagger = _trained(others, settings, f"fold {number + 1} of {folds}", progress)
        beliefs = form_beliefs(tagger, [sentences[place] for place in mine], 0, 0, probabilities=True)
        assert beliefs.probabilities is not None
        for place, (start, end) in zip(mine, itertools.pairwise(beliefs.starts.tolist()), strict=True):
            tags = tuple(tagger.labels[label] for label in beliefs.labels[start:end].tolist())
            probabilities = beliefs.probabilities[start:end]
            judged.append(HeldOutPrediction(sentences[place], place + 1, tags, probabilities, tuple(tagger.labels)))
    return sorted(judged, key=lambda each: each.number)


def _trained(sentences: list[Sentence], settings: Settings, fold: str, progress: Progress) -> Tagger:
    with Scratch() as folder:
        try:
            run = train(sentences, Path(folder) / "run", settings=settings, progress=_OfFold(progress, fold))
        except PhaseStopped as stop:
            raise SequstError(f"{fold}: {stop}") from None
        return Tagger.load(run.path / "model", settings.device)


def _require_entities(sentences: Sequence[Sentence], fold: Sequence[int], progress: Progress) -> None:
    """Raise an error if a fold leaves no entity to learn from. A note names types that cannot be judged."""
    folds_of = defaultdict(set)
    for sentence, number in zip(sentences, fold, strict=True):
        for type_ in types_of([sentence.tags or ()]):
            folds_of[type_].add(number)
    if len(set().union(*folds_of.values())) < 2:
        raise SequstError("fewer than two different sentences have an entity, so no label can be judged; label more")
    for type_ in sorted(type_ for type_, numbers in folds_of.items() if len(numbers) == 1):
        progress.note(f"type {type_} is in one fold only, so its labels cannot be judged")


class _OfFold(Progress):
    """The progress of training in one fold: phases carry its name, and notes but warnings are details."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress, self._name = progress, name

    def begin(self, phase: str, total: int, done: int = 0, unit: str = "steps") -> None:
        self._progress.begin(f"{self._name}: {phase}", total, done, unit)

    def advance(self, steps: int = 1, **values: float) -> None:
        self._progress.advance(steps, **values)

    def end(self) -> None:
        self._progress.end()

    def note(self, message: str, detail: bool = False) -> None:
        self._progress.note(f"{self._name}: {message}", detail or not message.startswith("warning: "))
