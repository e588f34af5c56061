"""A tagger's forward when nothing is learnt: the lean one where its encoder and machine have one, else the plain one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from sequst.tagger.batches import Batch
from sequst.tagger.head import Decoded
from sequst.tagger.tagger import Tagger
from sequst.tagger.transformer import states_of_words


class Forward:
    """Batches through a tagger in evaluation mode, without gradients."""

    def __init__(self, tagger: Tagger) -> None:
        self._tagger = tagger
        on_cpu = tagger.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        self.lean = tagger.encoder.lean() if on_cpu else None

    @property
    def token_budget(self) -> int:
        """Sub-words in a batch: enough to fill the machine, few enough to stay in its caches."""
        if self._tagger.device.type != "cpu":
            return 65536
        return self.lean.token_budget if self.lean is not None else 1024

    def hidden(self, batch: Batch) -> Tensor:
        """(B, W, H): the state of every word."""
        if self.lean is None:
            return self._tagger.hidden(batch)
        return states_of_words(self.lean.finish(self.lean.begin(batch)), batch)

    def decode(self, batch: Batch) -> Decoded:
        head = self._tagger.head
        return head.decode(head.scores(self.hidden(batch)), batch.rows)


@contextlib.contextmanager
def forward_of(tagger: Tagger) -> Iterator[Forward]:
    """Within it the tagger is in evaluation mode."""
    was_training = tagger.training
    tagger.eval()
    try:
        yield Forward(tagger)
    finally:
        tagger.train(was_training)
