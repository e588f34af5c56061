"""Virtual adversarial training (Miyato et al. 2017) and its sequence form, SeqVAT (Chen et al. 2020).

One phase, as long as fine-tuning, after the encoder has read the text where `adapt` asks for it: every step learns a batch of
labelled sentences, and keeps the predictions for a batch of unlabelled ones where they are under the perturbation of their word
embeddings that would move them most. Decided here, where the papers are silent:

- the perturbation is normalised over a sentence and `vat.epsilon` times the mean norm of its embeddings long;
- both sides of the divergence see the same dropout masks, or it would measure dropout;
- the clean side is kept out of the gradient, the perturbation is a constant, and the word embeddings learn from the other side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from sequst.methods.finetune import learn_labelled
from sequst.methods.unlabelled import BesideLabelledWords
from sequst.objectives.adversarial import adversarial_direction, mean_norm
from sequst.objectives.consistency import divergence
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.uncertainty.mc_dropout import same_dropout

STEP = 0.1
"""Length of the random step from which the worst direction is sought, in mean norms of the word embeddings."""
Divergence = Callable[[Tagger, Batch, Tensor, Tensor], Tensor]
"""(tagger, batch, scores of the clean side, scores of the other) -> how far apart they are."""


def vat(run: Run) -> Tagger:
    return adversarial(run, word_divergence)


def adversarial(run: Run, apart: Divergence) -> Tagger:
    return learn_labelled(run, lambda tagger: LabelledAndAdversarial(run, tagger, apart))[0]


def word_divergence(tagger: Tagger, batch: Batch, clean: Tensor, other: Tensor) -> Tensor:
    """The mean KL of the words' distributions."""
    with torch.no_grad():  # detached scores are not enough: a chain has scores of its own
        target = tagger.head.log_probs(clean, batch.rows)
    apart = divergence(target, tagger.head.log_probs(other, batch.rows))
    return torch.where(batch.owned, apart, 0.0).sum() / batch.owned.sum().clamp(min=1)


@contextlib.contextmanager
def constant(tagger: Tagger) -> Iterator[None]:
    """Within it no weight of the tagger asks for a gradient."""
    weights = [weight.requires_grad_(False) for weight in tagger.parameters() if weight.requires_grad]
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


class LabelledAndAdversarial(BesideLabelledWords):
    """The loss of labelled words plus the adversarial divergence of unlabelled ones."""

    def __init__(self, run: Run, tagger: Tagger, apart: Divergence) -> None:
        super().__init__(run, tagger)
        self._settings, self._apart = run.settings.vat, apart
        self.needs_fp32 = run.settings.precision == "auto"

    def graph_key(self) -> None:
        """A step has an unlabelled batch of its own, so none is recorded."""

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        labelled, _ = super().loss(tagger, batch)
        apart = self._adversarial(tagger, self.unlabelled(self._step, tagger))
        return labelled + self._settings.weight * apart, {"labelled": labelled.detach(), "adversarial": apart.detach()}

    def _adversarial(self, tagger: Tagger, batch: Batch) -> Tensor:
        """The divergence under the worst small change."""
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
                torch.Generator(tagger.device).manual_seed(draw), STEP * size,
            )  # fmt: skip
        return self._apart(tagger, batch, target, scores(embeddings + self._settings.epsilon * size * worst))
