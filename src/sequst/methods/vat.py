"""Virtual adversarial training (Miyato et al. 2017) and its sequence form, SeqVAT (Chen et al. 2020).

One phase, as long as fine-tuning, after the encoder has read the text where `adapt` asks for it: every step learns a batch of
labelled sentences, and keeps the predictions for a batch of unlabelled ones where they are under the perturbation of their word
embeddings that would move them most. Decided here, where the papers are silent:

- the perturbation is normalised over a sentence and `vat.epsilon` times the mean norm of its embeddings long;
- both sides of the divergence see the same dropout masks, or it would measure dropout;
- the clean side is kept out of the gradient, the perturbation is a constant, and the word embeddings learn from the other side;
- an unlabelled batch has up to `teacher.batch_size` windows, as a labelled one;
- for the first `vat.warmup` of the steps labelled sentences are learnt alone: predictions that are to stay must be worth it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from sequst.methods.finetune import LabelledWords, learn_labelled
from sequst.methods.unlabelled import UnlabelledBatches
from sequst.objectives.adversarial import adversarial_direction, entropy_of, mean_norm
from sequst.objectives.consistency import divergence
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.uncertainty.mc_dropout import same_dropout

Divergence = Callable[[Tagger, Batch, Tensor, Tensor], Tensor]
"""(tagger, batch, scores of the clean side, scores of the other) -> how far apart they are."""


def vat(run: Run) -> Tagger:
    return adversarial(run, word_divergence)


def adversarial(run: Run, apart: Divergence) -> Tagger:
    return learn_labelled(run, lambda tagger: LabelledAndAdversarial(run, tagger, apart))


def word_divergence(tagger: Tagger, batch: Batch, clean: Tensor, other: Tensor) -> Tensor:
    """The mean KL of the words' distributions."""
    with torch.no_grad():  # detached scores are not enough: a chain has scores of its own
        target = tagger.head.log_probs(clean, batch.rows)
    apart = divergence(target, tagger.head.log_probs(other, batch.rows))
    return torch.where(batch.owned, apart, 0.0).sum() / batch.owned.sum().clamp(min=1)


@contextlib.contextmanager
def constant(tagger: Tagger) -> Iterator[None]:
    """Within it no weight of the tagger asks for a gradient."""
    weights = [weight for weight in tagger.parameters() if weight.requires_grad]
    try:
        for weight in weights:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


class LabelledAndAdversarial(LabelledWords):
    """The loss of labelled words plus the adversarial divergence of unlabelled ones."""

    def __init__(self, run: Run, tagger: Tagger, apart: Divergence) -> None:
        self._settings, self._apart = run.settings.vat, apart
        self._seed = derive(run.settings.seed, 0, "unlabelled")
        self._unlabelled = UnlabelledBatches(tagger, run.data.unlabeled, run.settings.teacher.batch_size, self._seed)
        self._step, self._alone = 0, False
        self.exact = run.settings.precision == "auto"

    reads_batch_alone = False

    def begin_step(self, step: int, steps: int) -> None:
        """The unlabelled batch and the draws depend on the step alone. Of those that have such a batch none can be recorded."""
        self._step = step
        self.recordable = self._alone = step / steps < self._settings.warmup

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        labelled, _ = super().loss(tagger, batch)
        if self._alone:
            return labelled, {"labelled": labelled.detach()}
        apart, doubt = self._adversarial(tagger, self._unlabelled.batch(self._step, tagger))
        loss = labelled + self._settings.weight * apart
        if self._settings.entropy > 0:
            loss = loss + self._settings.entropy * doubt
        return loss, {"labelled": labelled.detach(), "adversarial": apart.detach()}

    def _adversarial(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, Tensor]:
        """(the divergence under the worst small change, the entropy of the clean predictions where it is asked for)."""
        words, dropout, draw = (derive(self._seed, what, self._step) for what in ("words", "dropout", "direction"))
        with same_dropout(tagger, words):  # a BiLSTM drops whole words
            embeddings = tagger.embeddings(batch)

        def scores(inputs: Tensor) -> Tensor:
            with same_dropout(tagger, dropout):
                return tagger.head.scores(tagger.hidden(batch, inputs))

        clean = scores(embeddings)  # with its graph, asked for or not: without, other kernels might draw other masks
        target = clean.detach()
        mask = batch.attention_mask.to(embeddings.dtype)
        size = mean_norm(embeddings, mask)
        with constant(tagger):
            worst = adversarial_direction(
                embeddings, mask, lambda inputs: self._apart(tagger, batch, target, scores(inputs)),
                torch.Generator(tagger.device).manual_seed(draw), self._settings.step * size,
            )  # fmt: skip
        apart = self._apart(tagger, batch, target, scores(embeddings + self._settings.epsilon * size * worst))
        if self._settings.entropy == 0:
            return apart, apart.new_zeros(())
        return apart, entropy_of(tagger.head.log_probs(clean, batch.rows), batch.owned)
