"""Standard self-training: every word, hard labels, cross-entropy, and no regulariser."""

from __future__ import annotations

from sequst.methods.self_training import Parts, self_train
from sequst.objectives.masked import CROSS_ENTROPY
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run
from sequst.uncertainty.selectors import AllWords


def sst(run: Run) -> Tagger:
    return self_train(run, Parts(AllWords(), CROSS_ENTROPY))
