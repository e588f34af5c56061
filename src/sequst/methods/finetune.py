"""Fine-tuning: the encoder and a fresh head learn the labelled sentences, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from torch import Tensor

from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.loop import PhaseResult, PhaseSpec
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.settings import PhaseSettings


def finetune(run: Run) -> Tagger:
    return learn_labelled(run, lambda tagger: LabelledWords())[0]


def learn_labelled(
    run: Run, objective: Callable[[Tagger], Objective], settings: PhaseSettings | None = None, name: str = "teacher"
) -> tuple[Tagger, PhaseResult]:
    """A new tagger that learns the labelled sentences with this objective, and how that went; `settings` are the teacher's
    unless given."""
    tagger = run.new_tagger(0, name)
    examples = run.examples(tagger, run.data.labeled)
    learnt = objective(tagger)
    run.standardise(tagger, examples, learnt.needs_fp32)
    return tagger, run.train(tagger, PhaseSpec(name, 0, settings or run.settings.teacher, examples, learnt))


class LabelledWords(Objective):
    """Cross-entropy of all labelled words, or their negative log likelihood under a CRF."""

    batch_only = True

    def graph_key(self) -> Hashable | None:
        return math.inf

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        return tagger.loss(batch), {}
