"""What is told to the kernels of this folder, whose modules need Triton; this one does not."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

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

    @classmethod
    def of_training(cls, rate: float, number: int) -> Drop:
        """The dropout of this number in a forward that learns. Its keys are added to those of the step, which lie on the
        device, so that a step which is replayed drops something else every time."""
        return cls(rate, (number * 0x1E3779B9 % 2**31, 0))

    @property
    def threshold(self) -> int:
        """An element stays where 16 random bits are no less than this."""
        return min(round(self.rate * 2**16), 2**16 - 1)

    @property
    def scale(self) -> float:
        """What those that stay are scaled by."""
        return 2**16 / (2**16 - self.threshold)


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
