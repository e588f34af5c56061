"""The steps of a forward that are more than a matrix product, in plain torch and fused for a GPU."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

LONGEST = 64
"""Sub-words of a row that is learnt from at most: a kernel of attention sees all of them at once."""


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


class VarlenKernels(Protocol):
    """N sub-words of all passes together, H features."""

    def attention(self, qkv: Tensor, spans: Spans, heads: int, bias: Tensor | None, drop: Drop | None) -> Tensor:
        """(N, H) from queries, keys and values side by side (N, 3H); every sub-word sees those of its own sentence and pass.

        `bias` (heads, 2 x longest - 1) is added to scores by how far a key lies from its query: [.., longest - 1] at 0.
        """

    def up_gelu(self, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """(N, I): the GELU of a linear layer."""

    def add_norm(self, change: Tensor, to: Tensor, norm: nn.LayerNorm, drop: Drop | None) -> Tensor:
        """The normalised sum (N, H) of what is left of `change` and `to`."""


class Site(NamedTuple):
    """A dropout of training: its rate and its number. The keys of a step, two numbers on the device, and that number decide
    its mask, so that a step which is replayed drops something else every time."""

    rate: float
    number: int

    @property
    def drop(self) -> Drop:
        """Its first key is to be added to that of the step, its second is that of the step."""
        return Drop(self.rate, (self.number * 0x1E3779B9 % 2**31, 0))


class Normed(NamedTuple):
    """A normalised sum and what its gradient takes."""

    out: Tensor  # (N, H)
    normal: Tensor  # (N, H), before weight and bias
    inverse: Tensor  # (N,) of the standard deviation


class NormedBack(NamedTuple):
    """The gradients of a normalised sum."""

    change: Tensor  # (N, H)
    to: Tensor  # (N, H)
    sums: Tensor  # (P, 3, H) of the weight, of the bias, and of a bias that was added to `change`: P parts of their sum


class TrainingKernels(Protocol):
    """N = B x L sub-words with their padding, H features; every forward with its gradient."""

    def attention(self, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, site: Site) -> Tensor:
        """(N, H) from queries, keys and values side by side (N, 3H); a sub-word sees the first `sizes` (B,) of its row.
        `bias` (heads, L, L) is added to the scores."""

    def attention_back(
        self, out: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, keys: Tensor, site: Site,
        of_scores: Tensor | None,
    ) -> Tensor:  # fmt: skip
        """From the gradient of what it gave, that of qkv (N, 3H), in its place, and where there is room for it, that of all
        scores (B, heads, L, L)."""

    def attention_along(
        self, along: Tensor, qkv: Tensor, sizes: Tensor, heads: int, bias: Tensor | None, of_bias: Tensor | None, keys: Tensor,
        site: Site,
    ) -> Tensor:  # fmt: skip
        """(N, H): how what it gives changes, where qkv (N, 3H) changes `along` this and the bias by `of_bias`."""

    def add_norm(self, change: Tensor, to: Tensor, norm: nn.LayerNorm, keys: Tensor, site: Site, dtype: torch.dtype) -> Normed:
        """The normalised sum of what is left of `change` and `to`."""

    def add_norm_back(self, out: Tensor, normed: Normed, norm: nn.LayerNorm, keys: Tensor, site: Site) -> NormedBack:
        """From the gradient of the sum, those of what it was made of."""

    def add_norm_along(
        self, change: Tensor, to: Tensor, normed: Normed, norm: nn.LayerNorm, of_norm: tuple[Tensor, Tensor], keys: Tensor,
        site: Site, dtype: torch.dtype,
    ) -> Tensor:  # fmt: skip
        """How the sum changes, where what it is made of changes by `change` and `to`, and weight and bias by `of_norm`."""
