"""How far apart two distributions over tag sequences are, told by their best paths (SeqVAT, Chen et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from sequst.tagger.crf import Chain, k_best, log_normaliser, path_score


def path_divergence(clean: Chain, other: Chain, k: int) -> Tensor:
    """KL(clean || other) of every row (B,), with the k best paths of the clean side as k outcomes and all others as one.

    With k as large as the number of paths it is the exact KL between the two chains, with less a lower bound of it. The clean
    side is kept out of the gradient.
    """
    with torch.no_grad():
        paths, scores = k_best(clean, k)
        log_p = scores - log_normaliser(clean).unsqueeze(1)  # (B, K)
    there = log_p.isfinite()
    log_q = path_score(other, paths.transpose(0, 1)).transpose(0, 1) - log_normaliser(other).unsqueeze(1)
    p, q = (torch.where(there, log.exp(), 0.0) for log in (log_p, log_q))
    told = torch.where(there, p * (log_p - log_q), 0.0).sum(1)
    return told + _rest(p.sum(1), q.sum(1))


def _rest(p: Tensor, q: Tensor) -> Tensor:
    """The part of the KL that belongs to all that is left over; 0 where the clean side leaves nothing."""
    tiny = torch.finfo(p.dtype).eps
    log_p, log_q = (torch.log1p(-told.clamp(max=1.0 - tiny)) for told in (p, q))
    return torch.where(p < 1.0 - tiny, log_p.exp() * (log_p - log_q), 0.0)
