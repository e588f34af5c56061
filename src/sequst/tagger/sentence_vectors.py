"""A sentence as one vector: the mean of the states that the tagger has of its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sequst.corpus.sentence import Sentence
from sequst.tagger.accel.forward import forward_of
from sequst.tagger.accel.parallel import on_all_cores
from sequst.tagger.batches import Batch
from sequst.tagger.predict import Words
from sequst.tagger.tagger import Tagger

if TYPE_CHECKING:
    from numpy.typing import NDArray


@torch.inference_mode()
def sentence_vectors(tagger: Tagger, sentences: Sequence[Sentence]) -> NDArray[np.float64]:
    """(N, H), without dropout; states are added up batch by batch, never held all at once. 0 for a sentence without words."""
    words = Words(tagger, sentences)
    lengths = np.diff(words.starts)
    owner = np.repeat(np.arange(len(sentences)), lengths)
    sums = np.zeros((len(sentences), tagger.encoder.width))
    with forward_of(tagger) as forward:

        def states(item: tuple[Batch, NDArray[np.int64]]) -> tuple[NDArray[np.int64], Tensor]:
            batch, places = item
            return places, batch.owned_of(forward.hidden(batch)).double()

        for places, found in on_all_cores(tagger, forward, states, words.batches(forward.token_budget, forward.chunk)):
            np.add.at(sums, owner[places], found.cpu().numpy())
    vectors: NDArray[np.float64] = sums / np.maximum(lengths, 1)[:, None]
    return vectors
