"""The steps of a packed forward that are more than a matrix product, in plain torch and fused for a GPU."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor, nn


class Spans(NamedTuple):
    """Sentences whose sub-words lie one after the other without padding, and all of them again for every further pass."""

    starts: Tensor  # (B + 1,) int32: where each sentence begins, and the end of the last
    tokens: int
    """Sub-words of one pass."""
    longest: int
    """Sub-words of the longest sentence."""

    @property
    def rows(self) -> int:
        return len(self.starts) - 1


class Drop(NamedTuple):
    """A dropout: its rate, and two numbers below 2^31 that decide its mask."""

    rate: float
    keys: tuple[int, int]

    @property
    def threshold(self) -> int:
        """An element stays where 16 random bits are no less than this."""
        return min(round(self.rate * 2**16), 2**16 - 1)

    @property
    def scale(self) -> float:
        """What those that stay are scaled by."""
        return 2**16 / (2**16 - self.threshold)


class Kernels(Protocol):
    """N sub-words of all passes together, H features."""

    def attention(self, qkv: Tensor, spans: Spans, heads: int, bias: Tensor | None, drop: Drop | None) -> Tensor:
        """(N, H) from queries, keys and values side by side (N, 3H); every sub-word sees those of its own sentence and pass.

        `bias` (heads, 2 x longest - 1) is added to scores by how far a key lies from its query: [.., longest - 1] at 0.
        """

    def up_gelu(self, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """(N, I): the GELU of a linear layer."""

    def add_norm(self, change: Tensor, to: Tensor, norm: nn.LayerNorm, drop: Drop | None) -> Tensor:
        """The normalised sum (N, H) of what is left of `change` and `to`."""
