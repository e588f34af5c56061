"""MetaST (Wang et al. 2021): self-training that weighs every pseudo-labelled word by what learning it does for labelled ones.

In each step of a student: a virtual step on the batch, the loss of a labelled meta batch after it, and for every word the
slope of that loss in the word's weight; max(0, -slope), normalised in the batch, weighs the words in the real step. Labelled
sentences whose loss has fallen most are drawn most for meta batches. Labels are drawn from the teacher's probabilities, and a
student is re-tuned at a tenth of the teacher's rate. Decided here, where the paper is silent:

- the loop is that of all self-training here: a student fresh from the pretrained weights in each round, labels drawn once a
  round;
- the virtual step is one of plain gradient descent with equal weights, all parameters taking part;
- dropout is on in both passes, and the losses that weights are sought for are the ones that are then learnt: one mask;
- loss decay is looked at every 50 steps, over all labelled windows, without dropout;
- a new student's slopes say nothing, so for the first `metast.warmup` of its steps all words weigh the same;
- where no word is worth anything, a step has no gradient, and the optimiser goes on by its momentum alone;
- under a CRF the loss of a word is that of its marginal, and the meta loss the negative log likelihood.

The slopes of all words at once are a second derivative, which fused attention and cuDNN's LSTM do not have, so that their
plain forms take their place. Where the encoder has no second derivative, they come of a forward that carries how the losses
change along the meta gradient, the same by other means (`worth_by_tangent`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sequst.methods.self_training import Parts, self_train
from sequst.objectives.masked import word_losses
from sequst.objectives.reweighting import (
    Parameters,
    decay_weights,
    normalised,
    slopes_of,
    worth_by_tangent,
    worth_of_words,
)  # fmt: skip
from sequst.tagger.batches import Batch
from sequst.tagger.tagger import Tagger
from sequst.training.loop import Examples, batches_of
from sequst.training.objective import Objective
from sequst.training.run import Run
from sequst.training.seeds import derive
from sequst.uncertainty.mc_dropout import same_dropout
from sequst.uncertainty.selectors import AllWords

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
RETUNE = 0.1
"""Re-tuning has this fraction of the teacher's rate."""
META_BATCH = 16
"""Labelled windows in a meta batch."""
REFRESH = 50
"""Steps after which the losses of all labelled windows are looked at again; what fell most is drawn most."""
SMOOTHING = 0.01
"""Loss decay, in nats, below which a labelled window is drawn as if it had this much."""


def metast(run: Run) -> Tagger:
    retune = dataclasses.replace(run.settings.retune, learning_rate=RETUNE * run.settings.teacher.learning_rate)

    def weighed(student: Tagger, seed: int) -> MetaWeightedWords:
        return MetaWeightedWords(run, run.examples(student, run.data.labeled), seed)

    return self_train(run, Parts(AllWords(), weighed=weighed, sampled=True, retune=retune))


class MetaWeightedWords(Objective):
    """Cross-entropy of the words of a student's batch, each weighted by what learning it is worth for labelled sentences."""

    def __init__(self, run: Run, labelled: Examples, seed: int) -> None:
        self._settings, self._labelled, self._seed = run.settings.metast, labelled, seed
        unknown = torch.full((len(labelled.windows),), torch.nan)
        # the losses of all labelled windows when they were last looked at, and the time before
        self._losses = self.nets = nn.ParameterDict({name: nn.Parameter(unknown.clone(), False) for name in ("before", "now")})
        self._step, self._done = 0, 0.0
        self._chances: NDArray[np.float64] | None = None
        """Of each labelled window to be drawn, until their losses are looked at again."""

    def begin_step(self, step: int, steps: int) -> None:
        self._step, self._done = step, step / steps

    @property
    def _warming_up(self) -> bool:
        return self._done < self._settings.warmup

    @property
    def _looks(self) -> bool:
        """Whether it looks at the labelled windows in this step."""
        return self._step % REFRESH == 0

    def graph_key(self) -> Hashable | None:
        """While all words weigh the same a step is like any other."""
        return math.inf if self._warming_up and not self._looks else None

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        weights, losses = self.weighed(tagger, batch)
        weighed = (weights > 0).sum() / batch.selected.sum().clamp(min=1)
        return (weights * torch.where(batch.selected, losses, 0.0)).sum(), {"weighed": weighed}

    def weighed(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, Tensor]:
        """(weights (B, W) that sum to 1, 0 where a word is not selected; the losses (B, W) that they are for)."""
        labels, selected = batch.labels, batch.selected
        assert labels is not None
        if self._looks:
            self._losses["before"].copy_(self._losses["now"])
            self._losses["now"].copy_(window_losses(tagger, self._labelled))
            self._chances = None
        if self._warming_up:
            return selected / selected.sum().clamp(min=1), word_losses(tagger(batch), labels)
        meta, rate = self._labelled.batch(self._draw(), tagger), self._settings.rate
        parameters = {name: value for name, value in tagger.named_parameters() if value.requires_grad}

        def meta_slopes(at: Parameters) -> Mapping[str, Tensor]:
            with same_dropout(tagger, derive(self._seed, "dropout", self._step)):
                return call_with(tagger, at, lambda tagger: slopes_of(tagger.loss(meta), at))

        def losses_at(at: Parameters) -> Tensor:
            with same_dropout(tagger, derive(self._seed, "masks", self._step)):
                return call_with(tagger, at, lambda tagger: word_losses(tagger(batch), labels))

        if not tagger.encoder.has_second_derivative(batch):
            worth = worth_by_tangent(losses_at, selected, parameters, meta_slopes, rate)
            losses = losses_at(parameters)
        else:
            with twice_differentiable():
                losses = word_losses(tagger(batch), labels)
                worth = worth_of_words(losses[selected], parameters, meta_slopes, rate)
            worth = torch.zeros_like(losses).masked_scatter(selected, worth)
        return normalised(worth).detach(), losses

    def _draw(self) -> list[int]:
        """The labelled windows of this step's meta batch."""
        if self._chances is None:
            chances = decay_weights(self._losses["before"], self._losses["now"], SMOOTHING).double().cpu().numpy()
            self._chances = chances / chances.sum()
        rng = np.random.default_rng(derive(self._seed, "meta", self._step))
        count = min(META_BATCH, len(self._chances))
        chosen: list[int] = rng.choice(len(self._chances), count, replace=False, p=self._chances).tolist()
        return chosen


@contextlib.contextmanager
def twice_differentiable() -> Iterator[None]:
    """Within it attention and LSTMs are made of operations that have a second derivative."""
    with sdpa_kernel(SDPBackend.MATH), torch.backends.cudnn.flags(enabled=False):
        yield


@torch.no_grad()
def window_losses(tagger: Tagger, examples: Examples) -> Tensor:
    """The mean cross-entropy of the words of each window, without dropout."""
    found = torch.zeros(len(examples.windows), device=tagger.device)
    was_training = tagger.training
    tagger.eval()
    try:
        for batch in batches_of(examples, tagger):
            assert batch.labels is not None
            losses = torch.where(batch.owned, word_losses(tagger(batch), batch.labels), 0.0)
            found[batch.windows] = (losses.sum(-1) / batch.owned.sum(-1).clamp(min=1)).to(found)
    finally:
        tagger.train(was_training)
        torch.clear_autocast_cache()  # older ones of torch would learn with casts of weights that were made without a gradient
    return found


class _Call(nn.Module):
    """Lets `functional_call` reach more than a tagger's forward."""

    def __init__(self, tagger: Tagger) -> None:
        super().__init__()
        self.tagger = tagger

    def forward(self, function: Callable[[Tagger], Any]) -> Any:
        return function(self.tagger)


def call_with(tagger: Tagger, parameters: Parameters, function: Callable[[Tagger], T]) -> T:
    """What the function gives for a tagger that has these parameters; the tagger itself keeps its own."""
    named = {f"tagger.{name}": value for name, value in parameters.items()}
    return torch.func.functional_call(_Call(tagger), named, (function,))  # type: ignore[no-any-return]
