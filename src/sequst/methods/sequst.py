"""SeqUST: reliable words, a noise-robust loss and consistency under Gaussian noise; and the paper's ablations of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from sequst.methods.self_training import Parts, self_train
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import CrossEntropy, HuberisedCrossEntropy, WordLoss
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run
from sequst.training.settings import Gcr, Robust, Selection
from sequst.uncertainty.selectors import SELECTORS, AllWords, Selector


def sequst(run: Run) -> Tagger:
    return self_train(run, parts_of(run))


def without_selection(run: Run) -> Tagger:
    return self_train(run, dataclasses.replace(parts_of(run), selector=AllWords()))


def without_confidence(run: Run) -> Tagger:
    return self_train(run, dataclasses.replace(parts_of(run), selector=_selector(run, weight="certainty")))


def without_certainty(run: Run) -> Tagger:
    return self_train(run, dataclasses.replace(parts_of(run), selector=_selector(run, weight="confidence")))


def without_phce(run: Run) -> Tagger:
    return self_train(run, dataclasses.replace(parts_of(run), loss=CrossEntropy()))


def without_gcr(run: Run) -> Tagger:
    return self_train(run, dataclasses.replace(parts_of(run), regulariser=None))


def parts_of(run: Run) -> Parts:
    """The three parts as the settings ask for them."""
    settings = run.settings
    regulariser = functools.partial(_regulariser, settings.gcr) if settings.gcr.weight > 0 else None
    return Parts(_selector(run), _loss(settings.robust, len(run.labels)), regulariser)


def selector_of(selection: Selection, labels: Sequence[str], weight: str | None = None) -> Selector:
    """The selector that the settings ask for, of words with these labels; `weight` in place of theirs where it is given."""
    kind = SELECTORS[selection.selector]
    wanted = {item.name for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given = {**dataclasses.asdict(selection), "names": tuple(labels), "weight": weight or selection.weight}
    return kind(**{name: value for name, value in given.items() if name in wanted})


def _selector(run: Run, weight: str | None = None) -> Selector:
    return selector_of(run.settings.selection, run.labels, weight)


def _loss(robust: Robust, labels: int) -> WordLoss:
    if robust.loss == "cross-entropy":
        return CrossEntropy()
    return HuberisedCrossEntropy(robust.tau or max(10.0, 1.25 * labels), robust.warmup)


def _regulariser(gcr: Gcr, student: Tagger, seed: int) -> GaussianConsistency:
    return GaussianConsistency(student.head.linear.in_features, seed, **dataclasses.asdict(gcr))
