"""The mean of several taggers' weights: one tagger that costs what one costs, and errs less by chance.

It is a tagger at all where they began with the same encoder and have not gone far: then the way from one to the other leads
through nothing worse than either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sequst.tagger.tagger import Tagger


@torch.no_grad()
def merge(tagger: Tagger, states: Sequence[Mapping[str, Tensor]], shares: Sequence[float] | None = None) -> None:
    """Give the tagger the mean of these states of taggers like it, each with its share; without shares they count alike.

    Heads that see states standardised in different ways are first brought to plain states, where they can be compared.
    """
    shares = [1.0] * len(states) if shares is None else shares
    total, means = sum(shares), [torch.zeros_like(weight, dtype=torch.float64) for weight in tagger.parameters()]
    for state, share in zip(states, shares, strict=True):
        tagger.load_state_dict(dict(state))
        tagger.head.unfold(tagger.head.folded())
        for mean, weight in zip(means, tagger.parameters(), strict=True):
            mean.add_(weight.double(), alpha=share / total)
    for mean, weight in zip(means, tagger.parameters(), strict=True):
        weight.copy_(mean)
