"""What a tagger asks of its encoder: words in, a state of every word out."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn

from sequst.tagger.accel.layers import Layers
from sequst.tagger.batches import Batch
from sequst.tagger.windows import Splitter


class Way(contextlib.AbstractContextManager[None]):
    """A way through an encoder, which it goes within this context, as often as that is entered: its own one here."""

    copies: Mapping[Tensor, Tensor] = MappingProxyType({})
    """What it computes with in place of weights: the same side by side, or in another precision."""

    def refresh(self) -> None:
        """Make the copies equal to the weights, after these have changed."""

    def __exit__(self, *raised: object) -> None:
        """Nothing is to be undone."""


class Encoder(nn.Module):
    """The part of a tagger below its head."""

    kind: str
    width: int
    """H, the size of a word's state."""
    dropout: float
    """The rate that the head drops states at."""
    pad_id: int
    """What input ids are padded with."""
    mask_id: int
    """The input id that stands for a word which is not to be seen."""

    def splitter(self, max_length: int, overlap: int) -> Splitter:
        """What cuts sentences into windows that this encoder reads."""
        raise NotImplementedError

    def embeddings(self, batch: Batch) -> Tensor:
        """(B, L, E): what the encoder makes of each input id by itself, before it looks at the others."""
        raise NotImplementedError

    def forward(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        """(B, W, H): the state of every word; from these embeddings where they are given."""
        raise NotImplementedError

    def known_layers(self) -> Layers | None:
        """Its layers, where there are faster ways through them than its own."""
        return None

    def narrowed(self, ids: Tensor) -> contextlib.AbstractContextManager[None]:
        """Within it what the encoder knows of other input ids than these may be left out of what is trained, and stay as it is;
        learn from no others."""
        return contextlib.nullcontext()

    @property
    def is_fast(self) -> bool:
        """Whether it goes a faster way now, by kernels of Triton."""
        return False

    def goes_fast(self, batch: Batch) -> bool:
        """Whether it would go that way with this batch."""
        return False

    def learning(self, dtype: torch.dtype) -> Way:
        """A way that may be faster, for the device where the encoder is now, with products in this precision. It has first
        derivatives alone, backward and forward, and goes by the weights that were there when it was last refreshed."""
        return Way()

    def refresh(self) -> None:
        """Let that way, where it is gone now, go by what stands in the place of the weights."""

    def save(self, folder: Path, classifier: nn.Linear) -> None:
        """Write the weights, those of the classifier on top of them, and what it takes to load them again."""
        raise NotImplementedError
