"""Linear chains: exact sums, maxima and samples over all tag sequences of a sentence, in log space, for a whole batch at once.

The score of a path is the sum of its emissions, its transitions and those of its two ends; its probability is proportional to
the exponential. Everything here is a pure function of a `Chain`, differentiable where that means something. Words come first
in a row and padding after them.

Scores may be large and rows long: emissions are shifted so that the best of every word is 0, and running sums are shifted back
to 0 at every step, so that float32 keeps its digits for the differences, which are all that counts.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FORBIDDEN = -1e9
"""Score of a forbidden transition. Its paths have probability 0; it is finite, so gradients stay finite."""


class Chain(NamedTuple):
    """B rows of at most L words with C tags."""

    emissions: Tensor  # (B, L, C)
    mask: Tensor  # (B, L) true where there is a word
    transitions: Tensor  # (C, C) from a row's tag to a column's
    start: Tensor  # (C,), or (B, C) where rows begin in different ways
    end: Tensor  # (C,)

    @property
    def lengths(self) -> Tensor:
        return self.mask.sum(-1)

    def without_large_scores(self) -> tuple[Chain, Tensor]:
        """(the chain with the best emission of every word at 0, what was taken away from the score of every path (B,))."""
        best = torch.where(self.mask, self.emissions.detach().amax(-1), 0.0)
        return self._replace(emissions=self.emissions - best.unsqueeze(-1)), best.sum(-1)


def path_score(chain: Chain, tags: Tensor) -> Tensor:
    """The score of a path (..., B, L) of tags: (..., B). Tags beyond the words are not looked at."""
    tags = torch.where(chain.mask, tags, 0)
    emissions = chain.emissions.expand(*tags.shape, -1).gather(-1, tags.unsqueeze(-1)).squeeze(-1)
    between = chain.transitions[tags[..., :-1], tags[..., 1:]]
    score = torch.where(chain.mask, emissions, 0.0).sum(-1) + torch.where(chain.mask[..., 1:], between, 0.0).sum(-1)
    last = (chain.lengths - 1).clamp(min=0).expand(tags.shape[:-1])
    start = chain.start.expand(*tags.shape[:-1], -1).gather(-1, tags[..., :1]).squeeze(-1)
    ends = start + chain.end[tags.gather(-1, last.unsqueeze(-1)).squeeze(-1)]
    return score + torch.where(chain.lengths > 0, ends, 0.0)


def log_normaliser(chain: Chain) -> Tensor:
    """The logarithm of the sum over all paths (B,); 0 for a row without words."""
    chain, taken = chain.without_large_scores()
    alphas, shifts = _forward(chain)
    total = torch.where(chain.lengths > 0, torch.logsumexp(alphas[-1] + chain.end, -1), 0.0)
    return total + shifts + taken


def _forward(chain: Chain) -> tuple[list[Tensor], Tensor]:
    """(of every step the log sum over the paths that end in each tag, shifted to a maximum of 0, and what the last was shifted
    by (B,))."""
    emissions = chain.emissions.unbind(1)
    whole = _where_all_are(chain.mask)
    alpha = chain.start + emissions[0]
    alphas = [alpha]
    shifts = alpha.new_zeros(len(alpha))
    for step in range(1, len(emissions)):
        after = torch.logsumexp(alpha.unsqueeze(2) + chain.transitions, dim=1) + emissions[step]  # (B, from, to) -> (B, to)
        shift = after.detach().amax(-1)
        after = after - shift.unsqueeze(-1)
        if not whole[step]:
            here = chain.mask[:, step]
            after, shift = torch.where(here.unsqueeze(-1), after, alpha), torch.where(here, shift, 0.0)
        alpha, shifts = after, shifts + shift
        alphas.append(alpha)
    return alphas, shifts


def _where_all_are(mask: Tensor) -> list[bool]:
    """Of every step whether no row is known to have ended before it; a GPU is not asked, for who asks waits until it has come
    so far."""
    return [False] * mask.shape[1] if mask.is_cuda else mask.all(0).tolist()


def _backward(chain: Chain) -> list[Tensor]:
    """Of every step the log sum over all ways to go on from each tag, shifted to a maximum of 0."""
    emissions = chain.emissions.unbind(1)
    mask = chain.mask.unbind(1)
    beta = chain.end.expand_as(emissions[0])
    betas = [beta]
    for step in range(len(emissions) - 1, 0, -1):
        before = torch.logsumexp(chain.transitions + (emissions[step] + beta).unsqueeze(1), dim=2)  # (B, from)
        before = before - before.detach().amax(-1, keepdim=True)
        beta = torch.where(mask[step].unsqueeze(-1), before, beta)
        betas.append(beta)
    return betas[::-1]


def log_marginals(chain: Chain) -> Tensor:
    """log p(tag of the word) for every word and tag (B, L, C); 0 beyond the words."""
    chain, _ = chain.without_large_scores()
    alphas, _ = _forward(chain)
    scores = torch.stack(alphas, 1) + torch.stack(_backward(chain), 1)
    return torch.where(chain.mask.unsqueeze(-1), torch.log_softmax(scores, -1), 0.0)


def viterbi(chain: Chain) -> Tensor:
    """The best path (B, L); 0 beyond the words."""
    return k_best(chain, 1)[0][:, 0]


@torch.no_grad()
def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """(the k best paths (B, K, L) from the best down, their scores (B, K)).

    Where a row has fewer than k paths, the scores of those that are not there are -inf, and their tags mean nothing.
    """
    scaled, taken = chain.without_large_scores()
    rows, longest, tags = scaled.emissions.shape
    emissions, mask = scaled.emissions.unbind(1), scaled.mask.unbind(1)
    whole = _where_all_are(scaled.mask)
    # (B, C, K): the best K paths that end in each tag; only the first is there at the start
    best = torch.full((rows, tags, k), -torch.inf, dtype=scaled.emissions.dtype, device=scaled.emissions.device)
    best[..., 0] = scaled.start + emissions[0]
    stay = torch.arange(tags * k, device=best.device).expand(rows, -1).view(rows, tags, k)
    came_from = []
    for step in range(1, longest):
        ways = best.unsqueeze(2) + scaled.transitions[None, :, :, None]  # (B, from, to, K)
        ways = ways.transpose(1, 2).flatten(2)  # (B, to, from x K)
        after, origin = ways.max(-1, keepdim=True) if k == 1 else ways.topk(k, -1)
        after = after + emissions[step].unsqueeze(-1)
        if not whole[step]:
            here = mask[step][:, None, None]
            after, origin = torch.where(here, after, best), torch.where(here, origin, stay)
        best = after
        came_from.append(origin)
    final = (best + scaled.end[None, :, None]).flatten(1)  # (B, C x K)
    place = final.topk(k, -1).indices  # (B, K)
    paths = [place // k]
    for origin in reversed(came_from):
        place = origin.flatten(1).gather(1, place)
        paths.append(place // k)
    found = torch.where(scaled.mask.unsqueeze(1), torch.stack(paths[::-1], -1), 0)
    return found, torch.where((chain.lengths > 0).unsqueeze(1), final.topk(k, -1).values + taken.unsqueeze(1), 0.0)


def iob2_constraints(labels: list[str]) -> tuple[Tensor, Tensor]:
    """(transitions (C, C), start (C,)) that are FORBIDDEN where IOB2 does not allow them, and 0 elsewhere: I-X comes after B-X
    and I-X alone."""
    inside = [label[2:] if label.startswith("I-") else None for label in labels]
    own = [label[2:] for label in labels]
    transitions = torch.zeros(len(labels), len(labels))
    for to, type_ in enumerate(inside):
        if type_ is not None:
            allowed = [label != "O" and own[i] == type_ for i, label in enumerate(labels)]
            transitions[:, to] = torch.where(torch.tensor(allowed), 0.0, FORBIDDEN)
    start = torch.tensor([0.0 if type_ is None else FORBIDDEN for type_ in inside])
    return transitions, start
