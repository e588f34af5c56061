"""Cross-view training (Clark et al. 2018): heads that see a part of a sentence learn from the one that sees all of it.

Labelled and unlabelled batches alternate. A labelled one teaches the tagger's own head, the primary one. On an unlabelled one
the primary head teaches four auxiliary heads, each of which sees a reading from one side: up to a word (forward, backward),
or up to its neighbour, so that the word itself is not seen (future, past). What they learn goes into the encoder below; they
are thrown away in the end. Decided here, where the paper is silent:

- of a `bilstm` the readings are those of its first layer, as published. A transformer has none, so a small BiLSTM reads its
  states; these have seen the whole sentence through attention, so there a view is restricted in states, not in words;
- the primary head teaches without dropout of its own, from the same states, and is kept out of the gradient; under a CRF it
  teaches its marginals;
- there are twice as many steps as in fine-tuning, so that as many of them see labelled sentences; every second labelled batch
  gives way to an unlabelled one, another one in every pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

import torch
from torch import Tensor, nn

from sequst.methods.finetune import learn_labelled
from sequst.methods.unlabelled import BesideLabelledWords
from sequst.objectives.consistency import divergence
from sequst.tagger.batches import Batch
from sequst.tagger.encoders.bilstm import BiLstm, read_both_ways
from sequst.tagger.tagger import Tagger
from sequst.training.run import Run
from sequst.training.seeds import derive


def cvt(run: Run) -> Tagger:
    once = run.settings.teacher
    twice = dataclasses.replace(once, epochs=2 * once.epochs, min_steps=2 * once.min_steps, max_steps=2 * once.max_steps)
    return learn_labelled(run, lambda tagger: CrossViews(run, tagger), twice)[0]


VIEWS = ("forward", "backward", "future", "past")
HIDDEN = 128
"""Over a transformer's states: size of the BiLSTM that makes the views, in each direction."""


class Views(nn.Module):
    """The auxiliary heads: one hidden layer each."""

    def __init__(self, size: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Dropout(dropout), nn.Linear(size, size), nn.ReLU(), nn.Linear(size, labels)) for _ in VIEWS
        )

    def forward(self, left: Tensor, right: Tensor) -> dict[str, Tensor]:
        """Log probabilities (B, W, C) of every view."""
        before = nn.functional.pad(left, (0, 0, 1, 0))[:, :-1]  # what was read up to the word before; 0 at the first
        after = nn.functional.pad(right, (0, 0, 0, 1))[:, 1:]
        seen = zip(VIEWS, self.heads, (left, right, before, after), strict=True)
        return {name: torch.log_softmax(head(states).float(), -1) for name, head, states in seen}


def read(tagger: Tagger, batch: Batch, lstm: nn.LSTM | None) -> tuple[Tensor, Tensor, Tensor]:
    """States of words, and two readings of the sentence (B, W, H each) that know it from one side alone: those of the first
    layer of a BiLSTM, or those that the `lstm` makes of the states of another encoder."""
    if lstm is None:
        assert isinstance(tagger.encoder, BiLstm)
        layers = tagger.encoder.readings(batch)
        states, both = torch.cat(layers, -1), layers[0]
    else:
        states = tagger.hidden(batch)
        both = read_both_ways(lstm, tagger.head.standardised(states), batch.lengths)
    left, right = both.chunk(2, -1)
    return states, left, right


class CrossViews(BesideLabelledWords):
    """In turn the loss of labelled words, and how far the views are from the primary head on unlabelled ones."""

    nets_rate = 1e-3

    def __init__(self, run: Run, tagger: Tagger) -> None:
        super().__init__(run, tagger)
        self._weight, encoder = run.settings.cvt.weight, tagger.encoder
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(self._seed, "views"))
            self._lstm, size = None, HIDDEN
            if isinstance(encoder, BiLstm):
                size = encoder.shape.hidden
            else:
                self._lstm = nn.LSTM(encoder.width, size, batch_first=True, bidirectional=True)
            self._views = Views(size, len(tagger.labels), encoder.dropout)
        self.nets = nn.ModuleList([self._views] if self._lstm is None else [self._lstm, self._views])

    @property
    def _is_labelled(self) -> bool:
        return self._step % 2 == 0

    def graph_key(self) -> Hashable | None:
        """Labelled steps are like any others; an unlabelled one has a batch of its own."""
        return super().graph_key() if self._is_labelled else None

    def loss(self, tagger: Tagger, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        if self._is_labelled:
            labelled, _ = super().loss(tagger, batch)
            return labelled, {"labelled": labelled.detach()}
        apart = self.apart(tagger, self.unlabelled(self._step // 2, tagger))
        total = torch.stack(list(apart.values())).sum()
        return self._weight * total, {f"apart_{name}": value.detach() for name, value in apart.items()}

    def apart(self, tagger: Tagger, batch: Batch) -> dict[str, Tensor]:
        """The mean divergence of every view from the primary head."""
        states, left, right = read(tagger, batch, self._lstm)
        with torch.no_grad():
            target = tagger.log_probs(states, batch, dropout=False)
        views, count = self._views(left, right), batch.owned.sum().clamp(min=1)
        return {name: torch.where(batch.owned, divergence(target, view), 0.0).sum() / count for name, view in views.items()}
