"""The fused losses against the plain ones; on a GPU."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from sequst.methods.finetune import LabelledWords
from sequst.methods.self_training import PseudoLabelledWords
from sequst.objectives import consistency as plain
from sequst.objectives.masked import CrossEntropy, HuberisedCrossEntropy, masked_mean
from sequst.tagger.batches import IGNORED, Rows
from sequst.tagger.heads import SoftmaxHead

SIZES = [(5, 7, 9, 32, 3), (3, 16, 33, 48, 2), (4, 5, 1, 16, 1), (33, 64, 37, 768, 3)]
"""Sentences, words, tags, features, samples."""


def close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-5) -> None:
    ours, theirs = ours.detach().float(), theirs.detach().float()
    torch.testing.assert_close(ours, theirs, atol=tolerance * float(theirs.abs().max()) + 1e-12, rtol=tolerance)


def weighed(labels: Tensor, tags: int) -> Tensor:
    """One label a word, which counts for more or less; as labels of a batch are, for none where there is none."""
    counts = 2 * torch.rand(labels.shape, device=labels.device) * (labels != IGNORED)
    return torch.nn.functional.one_hot(labels.clamp(min=0), tags) * counts.unsqueeze(-1)


def spread(labels: Tensor, tags: int) -> Tensor:
    """Some of every label."""
    return torch.softmax(torch.randn(*labels.shape, tags, device=labels.device), -1) * (labels != IGNORED).unsqueeze(-1)


def losses_agree(device: str, size: tuple[int, ...]) -> None:
    from sequst.objectives import accel as fused

    rows, words, tags, width, samples = size
    torch.manual_seed(0)
    scores = (3 * torch.randn(rows, words, tags, device=device)).requires_grad_()
    labels = torch.randint(0, tags, (rows, words), device=device)
    selected = torch.rand(rows, words, device=device) < 0.5
    labels[0, -1], selected[0, -1], selected[1] = IGNORED, False, False
    for tau in (10.0, 1.5, math.inf):
        loss = HuberisedCrossEntropy(tau) if math.isfinite(tau) else CrossEntropy()
        for targets in (labels, weighed(labels, tags), spread(labels, tags)):
            theirs = masked_mean(loss(torch.log_softmax(scores, -1), targets, 0.5), selected)
            ours = fused.masked_loss(scores, targets, selected, loss.tau_at(0.5))
            close(ours, theirs)
            close(*(torch.autograd.grad(2 * each, scores)[0] for each in (ours, theirs)))
    assert fused.masked_loss(scores, labels, torch.zeros_like(selected), 10.0).item() == 0
    head = SoftmaxHead(width, tags, 0.1, 1).to(device)
    both = fused.labelled_loss(scores, labels), head.loss(scores, labels, Rows(selected, selected[:, 0]))
    close(*both)
    close(*(torch.autograd.grad(each, scores)[0] for each in both))

    head.mean.normal_()
    head.scale.fill_(1.3)
    nets = plain.GaussianNets(width, "random").to(device)
    hidden = torch.randn(rows, words, width, device=device, requires_grad=True)
    marked = torch.rand(rows, words, device=device) < 0.7
    own = Rows(marked, marked[:, 0])
    learners = [hidden, *nets.parameters(), *head.parameters()]
    found = []
    for kind in ("ours", "theirs"):
        rng = torch.Generator(device).manual_seed(3)
        if kind == "ours":
            each = fused.consistency(hidden, marked, nets, head, samples, rng)
        else:
            each = plain.consistency(hidden, marked, nets, lambda states: head(states, own, False), samples, rng)
        found.append([each.loss, each.mean, each.scale, *torch.autograd.grad(3 * each.loss, learners)])
    for one, other in zip(*found, strict=True):
        close(one, other, 1e-4)


def objectives_agree(device: str, tau: float, warmup: float, selected_only: bool, weighs: bool) -> None:
    """That of a student as a whole, and that of a teacher, with an encoder that gives the same states either way."""
    torch.manual_seed(0)
    rows, words, tags, width = 4, 8, 17, 40
    head = SoftmaxHead(width, tags, 0.0, 1).to(device)
    head.mean.normal_()
    hidden = torch.randn(rows, words, width, device=device, requires_grad=True)
    owned = torch.rand(rows, words, device=device) < 0.8
    selected = owned & (torch.rand(rows, words, device=device) < 0.6)
    labels = torch.where(owned, torch.randint(0, tags, (rows, words), device=device), IGNORED)
    batch: Any = SimpleNamespace(labels=labels, selected=selected, owned=owned, rows=Rows(owned, owned[:, 0]))
    learnt: Any = SimpleNamespace(**{**vars(batch), "labels": weighed(labels, tags) if weighs else labels})
    found = []
    for fast in (False, True):
        tagger: Any = SimpleNamespace(
            head=head, labels=["O"] * tags, encoder=SimpleNamespace(is_fast=fast), hidden=lambda batch: hidden * 1.0,
            log_probs=lambda states, batch, dropout=True: head(states, batch.rows, dropout),
            loss=lambda batch: head.loss(head.scores(hidden), batch.labels, batch.rows),
        )  # fmt: skip
        noise = plain.GaussianConsistency(
            width, 3, weight=0.5, samples=2, prior=0.0, start="random", detach=True, selected_only=selected_only
        )
        noise.nets.to(device)
        student = PseudoLabelledWords(HuberisedCrossEntropy(tau, warmup), noise)
        student.begin_epoch(5)
        student.begin_step(3, 10)
        loss, told = student.loss(tagger, learnt)
        learners = [hidden, *noise.nets.parameters(), *head.parameters()]
        labelled, _ = LabelledWords().loss(tagger, batch)
        slopes = torch.autograd.grad(loss, learners), torch.autograd.grad(labelled, [hidden, *head.parameters()])
        found.append([loss, *told.values(), labelled, *slopes[0], *slopes[1]])
    for one, other in zip(*found, strict=True):
        close(one, other, 1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("selected_only", [False, True])
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize(("tau", "warmup"), [(10.0, 0.0), (2.0, 0.0), (10.0, 1.0)])
def test_a_fused_objective_is_the_plain_one(tau: float, warmup: float, selected_only: bool, weighs: bool) -> None:
    objectives_agree("cuda", tau, warmup, selected_only, weighs)


@pytest.mark.gpu
@pytest.mark.parametrize("size", SIZES)
def test_fused_losses_are_the_plain_ones(size: tuple[int, ...]) -> None:
    losses_agree("cuda", size)


@pytest.mark.gpu
def test_in_half_precision_they_are_as_near_as_it_gets() -> None:
    """Under autocast both round; what they differ by is no more than what rounding makes of the plain ones."""
    from sequst.objectives import accel as fused

    torch.manual_seed(0)
    head, nets = SoftmaxHead(64, 9, 0.0, 1).cuda(), plain.GaussianNets(64, "identity").cuda()
    hidden = torch.randn(8, 20, 64, device="cuda", requires_grad=True)
    marked = torch.rand(8, 20, device="cuda") < 0.7
    own, learners = Rows(marked, marked[:, 0]), [hidden, *nets.parameters(), *head.parameters()]
    found = {}
    for kind in ("exact", "rounded", "fused"):
        rng = torch.Generator("cuda").manual_seed(3)
        with torch.autocast("cuda", torch.bfloat16, enabled=kind != "exact"):
            if kind == "fused":
                each = fused.consistency(hidden, marked, nets, head, 3, rng)
            else:
                each = plain.consistency(hidden, marked, nets, lambda states: head(states, own, False), 3, rng)
        found[kind] = [each.loss.detach(), *torch.autograd.grad(each.loss, learners)]
    for exact, rounded, ours in zip(*found.values(), strict=True):
        assert (ours - exact).norm() <= 2 * (rounded - exact).norm() + 1e-3 * exact.norm()


def test_what_the_kernels_take() -> None:
    triton = pytest.importorskip("triton")
    assert triton
    from sequst.objectives import accel as fused

    assert fused.takes(torch.zeros(4, 7), 9)
    assert fused.takes(torch.zeros(4, 7, 9), 9)  # soft labels
    assert not fused.takes(torch.zeros(5000, 1, 9), 9)
    assert not fused.takes(torch.zeros(4, 7), 10_000)
