"""SeqVAT: virtual adversarial training whose divergence is between distributions over whole tag sequences.

The k best paths under the clean input, and one bin for all others (`vat.paths` is k). Under a softmax head the same code runs
on a chain whose transitions are 0. The divergence is a mean over windows, all of whose words count. All else is as in `vat`.
"""

from __future__ import annotations

from torch import Tensor

from sequst.methods.vat import adversarial
from sequst.objectives.sequence import path_divergence
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run


def seqvat(run: Run) -> Tagger:
    def apart(tagger: Tagger, batch: Batch, clean: Tensor, other: Tensor) -> Tensor:
        first, second = (tagger.head.chain(scores, batch.rows) for scores in (clean, other))
        return path_divergence(first, second, run.settings.vat.paths).mean()

    return adversarial(run, apart)
