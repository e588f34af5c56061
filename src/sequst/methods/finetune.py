"""Fine-tuning: the encoder and a fresh head learn the labelled sentences, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from sequst.tagger.batches import Batch
from sequst.tagger.heads import SoftmaxHead
from sequst.tagger.tagger import Tagger
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.settings import Phase


def finetune(run: Run, name: str = "teacher") -> Tagger:
    return learn_labelled(run, lambda tagger: LabelledWords(), name=name)


def learn_labelled(
    run: Run, objective: Callable[[Tagger], Objective], phase: Phase | None = None, name: str = "teacher"
) -> Tagger:
    """A new tagger that goes through the labelled sentences in the teacher's phase, or this one, with this objective."""
    tagger = run.new_tagger(0, name)
    examples = run.examples(tagger, run.data.labeled)
    learnt = objective(tagger)
    run.standardise(tagger, examples, learnt.exact)
    phase = phase or run.settings.teacher
    run.train(tagger, examples, learnt, phase, 0, name, renew=run.swapping(tagger, phase, 0, name))
    return tagger


class LabelledWords(Objective):
    """Cross-entropy of all labelled words, or their negative log likelihood under a CRF."""

    fast_way = recordable = reads_batch_alone = True

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        assert batch.labels is not None
        if not has_kernels(tagger, batch.labels):
            return tagger.loss(batch), {}
        from sequst.objectives import accel as fused

        return fused.labelled_loss(tagger.head.raw_scores(tagger.hidden(batch)), batch.labels), {}


def has_kernels(tagger: Tagger, labels: Tensor) -> bool:
    """Whether losses of these labels may be computed by kernels of Triton: where the encoder is."""
    if not tagger.encoder.is_fast or not isinstance(tagger.head, SoftmaxHead):
        return False
    from sequst.objectives import accel as fused

    return fused.takes(labels, len(tagger.labels))
