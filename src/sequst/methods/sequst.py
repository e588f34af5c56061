"""SeqUST: reliable words, a noise-robust loss and consistency under Gaussian noise; and the paper's ablations of them."""

from __future__ import annotations

import dataclasses
from typing import Any

from sequst.methods.self_training import Parts, self_train
from sequst.objectives.consistency import GaussianConsistency
from sequst.objectives.masked import CROSS_ENTROPY, WordLoss
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run
from sequst.uncertainty.selectors import AllWords, Scores, Selector, selector_of


def sequst(run: Run) -> Tagger:
    return self_train(run, parts_of(run))


def ablation(run: Run) -> Tagger:
    """SeqUST without the part that the method's name says."""
    instead: dict[str, dict[str, Any]] = {
        "without-selection": {"selector": AllWords()},
        "without-confidence": {"selector": _selector(run, "certainty")},
        "without-certainty": {"selector": _selector(run, "confidence")},
        "without-phce": {"loss": CROSS_ENTROPY},
        "without-gcr": {"regulariser": None},
    }
    return self_train(run, dataclasses.replace(parts_of(run), **instead[run.settings.method]))


def parts_of(run: Run) -> Parts:
    """Selector, loss and regulariser, by the settings."""
    robust, gcr = run.settings.robust, dataclasses.asdict(run.settings.gcr)
    loss = WordLoss(robust.tau or max(10.0, 1.25 * len(run.labels)), robust.warmup)
    return Parts(
        _selector(run),
        CROSS_ENTROPY if robust.loss == "cross-entropy" else loss,
        (lambda student: GaussianConsistency(student.head.linear.in_features, **gcr)) if gcr["weight"] > 0 else None,
    )


def _selector(run: Run, by: Scores = "both") -> Selector:
    selection = run.settings.selection
    return selector_of(selection.selector, selection.share, selection.power, by)
