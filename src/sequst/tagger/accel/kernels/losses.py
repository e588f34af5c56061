"""Losses of words, each a Triton kernel or two with its gradient. On few words a loss takes as long as it has kernels, and
torch makes some 150 of them.

The plain forms are in `SoftmaxHead.loss`, `sequst.objectives.masked` and `sequst.objectives.consistency`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor, nn

from sequst.tagger.batches import IGNORED

if TYPE_CHECKING:
    from sequst.tagger.heads import Head

_TILE = 1024
"""Scores that a program takes."""
_NEVER = 1e30
"""The logarithm of a tau below which no probability comes: cross-entropy throughout."""


@triton.jit
def _log_probs(scores, at, known):
    score = tl.load(scores + at, mask=known, other=-1e30).to(tl.float32)
    score -= tl.max(score, 1)[:, None]
    return score - tl.log(tl.sum(tl.exp(score), 1))[:, None]


@triton.jit(do_not_specialize=["count", "words", "rows", "tags"])
def _masked(
    scores, labels, selected, weights, counts, sums, slopes, count, words, rows, tags, tau, log_tau,
    WORDS: tl.constexpr, TAGS: tl.constexpr, ROWS: tl.constexpr, WEIGHED: tl.constexpr,
):  # fmt: skip
    place, column, row = tl.program_id(0) * WORDS + tl.arange(0, WORDS), tl.arange(0, TAGS), tl.arange(0, ROWS)
    inside = place < count
    at = place[:, None] * tags + column[None, :]
    known = inside[:, None] & (column < tags)[None, :]
    log_probs = _log_probs(scores, at, known)
    label = tl.load(labels + place, mask=inside, other=-1)
    target = tl.where(column[None, :] == label[:, None], 1.0, 0.0)
    if WEIGHED:
        target = target * tl.load(weights + place, mask=inside, other=0.0)[:, None]
    counted = (tl.load(selected + place, mask=inside, other=0) != 0) & (label >= 0)
    sentences = tl.sum((tl.load(counts + row, mask=row < rows, other=0) > 0).to(tl.int32))
    own = tl.load(counts + place // words, mask=inside, other=1)
    share = 1.0 / (tl.maximum(own, 1) * tl.maximum(sentences, 1)).to(tl.float32)
    weight = tl.where(counted, share, 0.0)
    probs = tl.exp(log_probs)
    rare = log_probs <= -log_tau
    loss = tl.sum(tl.where(target > 0, target * tl.where(rare, log_tau + 1.0 - tau * probs, -log_probs), 0.0), 1)
    pull = target * tl.where(rare, tau * probs, 1.0)
    slope = weight[:, None] * (probs * tl.sum(pull, 1)[:, None] - pull)
    tl.store(sums + tl.program_id(0), tl.sum(weight * loss))
    tl.store(slopes + at, slope.to(slopes.dtype.element_ty), mask=known)


@triton.jit(do_not_specialize=["count", "samples", "tags"])
def _apart(scores, marked, total, sums, slopes, count, samples, tags, WORDS: tl.constexpr, TAGS: tl.constexpr):
    """Of one of the perturbed, whose scores lie after the clean ones."""
    place, column, sample = tl.program_id(0) * WORDS + tl.arange(0, WORDS), tl.arange(0, TAGS), tl.program_id(1)
    inside = place < count
    at = place[:, None] * tags + column[None, :]
    further = (sample + 1) * count * tags
    known = inside[:, None] & (column < tags)[None, :]
    clean, other = _log_probs(scores, at, known), _log_probs(scores + further, at, known)
    share = 1.0 / (tl.maximum(tl.load(total), 1) * samples).to(tl.float32)
    weight = tl.where(tl.load(marked + place, mask=inside, other=0) != 0, share, 0.0)
    p = tl.exp(clean)
    apart = tl.sum(tl.where(known, p * (clean - other), 0.0), 1)
    tl.store(sums + tl.program_id(0) * samples + sample, tl.sum(weight * apart))
    slope = weight[:, None] * (tl.exp(other) - p)
    tl.store(slopes + further + at, slope.to(slopes.dtype.element_ty), mask=known)
    if sample == 0:  # the clean side is kept out of the gradient
        tl.store(slopes + at, tl.zeros((WORDS, TAGS), slopes.dtype.element_ty), mask=known)


@triton.jit(do_not_specialize=["count", "samples"])
def _perturb(
    hidden, mean, scale, noise, marked, centre, by, states, told, count, samples, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):
    """The states of a word as the head standardises them, and after them its perturbed ones."""
    word, column = tl.program_id(0), tl.arange(0, BLOCK)
    known = column < WIDTH
    at = word * WIDTH + column
    state = tl.load(hidden + at, mask=known, other=0.0).to(tl.float32)
    mu = tl.maximum(tl.load(mean + at, mask=known, other=0.0).to(tl.float32), 0.0)
    sigma = tl.maximum(tl.load(scale + at, mask=known, other=0.0).to(tl.float32), 0.0)
    middle, factor = tl.load(centre + column, mask=known, other=0.0), tl.load(by + column, mask=known, other=0.0)
    tl.store(states + at, ((state - middle) * factor).to(states.dtype.element_ty), mask=known)
    counts = (tl.load(marked + word) != 0).to(tl.float32)
    tl.store(told + word, tl.sum(mu) * counts)
    tl.store(told + count + word, tl.sum(sigma) * counts)
    for sample in range(samples):
        epsilon = tl.load(noise + sample * count * WIDTH + at, mask=known, other=0.0)
        moved = (state * (mu + sigma * epsilon) - middle) * factor
        tl.store(states + (sample + 1) * count * WIDTH + at, moved.to(states.dtype.element_ty), mask=known)


@triton.jit(do_not_specialize=["count", "samples"])
def _perturb_back(
    out, hidden, mean, scale, noise, by, of_hidden, of_mean, of_scale, count, samples, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):
    word, column = tl.program_id(0), tl.arange(0, BLOCK)
    known = column < WIDTH
    at = word * WIDTH + column
    state = tl.load(hidden + at, mask=known, other=0.0).to(tl.float32)
    before_mu = tl.load(mean + at, mask=known, other=0.0).to(tl.float32)
    before_sigma = tl.load(scale + at, mask=known, other=0.0).to(tl.float32)
    mu, sigma = tl.maximum(before_mu, 0.0), tl.maximum(before_sigma, 0.0)
    factor = tl.load(by + column, mask=known, other=0.0)
    to_state = tl.zeros((BLOCK,), tl.float32)
    to_mu = tl.zeros((BLOCK,), tl.float32)
    to_sigma = tl.zeros((BLOCK,), tl.float32)
    for sample in range(samples):
        epsilon = tl.load(noise + sample * count * WIDTH + at, mask=known, other=0.0)
        slope = tl.load(out + (sample + 1) * count * WIDTH + at, mask=known, other=0.0).to(tl.float32) * factor
        to_state += slope * (mu + sigma * epsilon)
        to_mu += slope * state
        to_sigma += slope * state * epsilon
    tl.store(of_hidden + at, to_state, mask=known)
    tl.store(of_mean + at, tl.where(before_mu > 0, to_mu, 0.0).to(of_mean.dtype.element_ty), mask=known)
    tl.store(of_scale + at, tl.where(before_sigma > 0, to_sigma, 0.0).to(of_scale.dtype.element_ty), mask=known)


class _MaskedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, selected: Tensor, weights: Tensor | None, tau: float) -> Tensor:
        scores = scores.contiguous()
        rows, words, tags = scores.shape
        tile, block = _tile(tags)
        programs = triton.cdiv(rows * words, tile)
        sums, slopes = torch.empty(programs, device=scores.device), torch.empty_like(scores)
        bounded = math.isfinite(tau)
        _masked[(programs,)](
            scores, labels.contiguous(), selected, scores if weights is None else weights, selected.sum(-1), sums, slopes,
            rows * words, words, rows, tags,
            float(tau) if bounded else 1.0, math.log(tau) if bounded else _NEVER,
            WORDS=tile, TAGS=block, ROWS=triton.next_power_of_2(rows), WEIGHED=weights is not None,
        )  # fmt: skip
        ctx.slopes = slopes
        return sums.sum()

    @staticmethod
    def backward(ctx: Any, out: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.slopes * out, None, None, None, None


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, words: Tensor, total: Tensor) -> Tensor:
        scores = scores.contiguous()
        samples, count, tags = len(scores) - 1, words.numel(), scores.shape[-1]
        tile, block = _tile(tags)
        programs = triton.cdiv(count, tile)
        sums, slopes = torch.empty(programs * samples, device=scores.device), torch.empty_like(scores)
        _apart[(programs, samples)](scores, words, total, sums, slopes, count, samples, tags, WORDS=tile, TAGS=block)
        ctx.slopes = slopes
        return sums.sum()

    @staticmethod
    def backward(ctx: Any, out: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.slopes * out, None, None


class _Perturbed(torch.autograd.Function):
    """States (B, W, H), and what the nets give before their ReLU -> states for the linear layer of a head (1 + K, B, W, H)."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, mean: Tensor, scale: Tensor, noise: Tensor, words: Tensor, head: Head) -> Any:
        samples, width, count = len(noise), hidden.shape[-1], words.numel()
        states = torch.empty(samples + 1, *hidden.shape, device=hidden.device, dtype=mean.dtype)
        told = torch.empty(2, count, device=hidden.device)
        block = triton.next_power_of_2(width)
        _perturb[(count,)](
            hidden, mean, scale, noise, words, head.mean, head.scale, states, told, count, samples, WIDTH=width, BLOCK=block
        )
        ctx.kept = hidden, mean, scale, noise, head.scale, count
        ctx.mark_non_differentiable(told)
        return states, told

    @staticmethod
    def backward(ctx: Any, out: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden, mean, scale, noise, by, count = ctx.kept
        ctx.kept = None
        width = hidden.shape[-1]
        slopes = torch.empty_like(hidden), torch.empty_like(mean), torch.empty_like(scale)
        block = triton.next_power_of_2(width)
        _perturb_back[(count,)](
            out.contiguous(), hidden, mean, scale, noise, by, *slopes, count, len(noise), WIDTH=width, BLOCK=block
        )
        return *slopes, None, None, None


def _tile(tags: int) -> tuple[int, int]:
    """Words of a program, and the block that holds the scores of one."""
    block = triton.next_power_of_2(tags)
    return max(1, _TILE // block), block


def masked_loss(scores: Tensor, labels: Tensor, selected: Tensor, weights: Tensor | None, tau: float) -> Tensor:
    """The mean over rows of the mean PHCE of the selected words' labels (B, W), each times its weight (B, W), under the softmax
    of scores (B, W, C). With an infinite tau it is cross-entropy."""
    return _MaskedLoss.apply(scores, labels, selected, weights, tau)  # type: ignore[no-any-return]


def labelled_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of the labels (B, W) that are known, under the softmax of scores (B, W, C)."""
    labels = labels.reshape(1, -1)  # as of one sentence
    return masked_loss(scores.reshape(1, labels.shape[1], -1), labels, labels != IGNORED, None, math.inf)


def gaussian_divergence(
    hidden: Tensor, words: Tensor, mean: nn.Linear, scale: nn.Linear, head: Head, noise: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(the mean divergence of the marked words (B, W) under noise (K, B, W, H), the mean mu, the mean Sigma), for a softmax
    head; the clean side is detached."""
    dtype = torch.get_autocast_dtype(hidden.device.type) if torch.is_autocast_enabled(hidden.device.type) else hidden.dtype
    hidden = hidden.contiguous()
    half = hidden.to(dtype)
    mu, sigma = (F.linear(half, net.weight, net.bias) for net in (mean, scale))
    states, told = _Perturbed.apply(hidden, mu, sigma, noise, words, head)
    total = words.sum()
    loss = _Divergence.apply(head.linear(states), words, total)
    averages = told.sum(1) / (total.clamp(min=1) * hidden.shape[-1])
    return loss, averages[0], averages[1]


def try_out(device: torch.device) -> None:
    """Fails where kernels do not run."""
    labelled_loss(torch.zeros(1, 1, 2, device=device), torch.zeros(1, 1, device=device, dtype=torch.int64))
