"""The interface of an encoder: words in, a hidden state of each word out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor, nn

from sequst.tagger.batches import Batch
from sequst.tagger.windows import Splitter

if TYPE_CHECKING:
    from sequst.tagger.accel.fused_encoder import FusedEncoder


class Encoder(nn.Module):
    """The part of a tagger below its head."""

    kind: str
    width: int
    """H, the size of a hidden state."""
    dropout: float
    """Dropout rate of the head."""
    pad_id: int
    """Input id of padding."""
    mask_id: int
    """Input id of a hidden word."""
    fused: FusedEncoder | None = None
    """A faster forward for training, within its context; it has first derivatives alone."""

    def splitter(self, max_length: int, overlap: int) -> Splitter:
        """The splitter that makes windows for this encoder."""
        raise NotImplementedError

    def embeddings(self, batch: Batch) -> Tensor:
        """(B, L, E): what the encoder makes of each input id by itself, before it looks at the others."""
        raise NotImplementedError

    def forward(self, batch: Batch, embeddings: Tensor | None = None) -> Tensor:
        """(B, W, H): the state of every word; from these embeddings where they are given."""
        raise NotImplementedError

    def has_second_derivative(self, batch: Batch) -> bool:
        """Whether the forward of this batch can be differentiated twice."""
        return True

    def save(self, folder: Path, classifier: nn.Linear) -> None:
        """Write the weights, those of the classifier on top of them, and what it takes to load them again."""
        raise NotImplementedError
