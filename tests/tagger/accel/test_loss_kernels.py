"""The kernels of losses against the plain forms; on a GPU."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from sequst.methods.finetune import LabelledWords
from sequst.methods.self_training import PseudoLabelledWords
from sequst.objectives import consistency as plain
from sequst.objectives import masked
from sequst.objectives.masked import masked_mean, word_losses
from sequst.tagger import heads
from sequst.tagger.accel import available
from sequst.tagger.accel.available import loss_kernels
from sequst.tagger.batches import IGNORED, Rows
from sequst.tagger.heads import SoftmaxHead

SIZES = [(5, 7, 9, 32, 3), (3, 16, 33, 48, 2), (4, 5, 1, 16, 1), (33, 64, 37, 768, 3)]
"""Sentences, words, tags, features, samples."""


def close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-5) -> None:
    ours, theirs = ours.detach().float(), theirs.detach().float()
    torch.testing.assert_close(ours, theirs, atol=tolerance * float(theirs.abs().max()) + 1e-12, rtol=tolerance)


def losses_agree(device: str, size: tuple[int, ...]) -> None:
    from sequst.tagger.accel.kernels import losses as fused

    rows, words, tags, width, samples = size
    torch.manual_seed(0)
    scores = (3 * torch.randn(rows, words, tags, device=device)).requires_grad_()
    labels = torch.randint(0, tags, (rows, words), device=device)
    selected = torch.rand(rows, words, device=device) < 0.5
    labels[0, -1], selected[0, -1], selected[1] = IGNORED, False, False
    weights = 2 * torch.rand(labels.shape, device=device)
    for tau in (10.0, 1.5, math.inf):
        for each in (None, weights):
            losses = word_losses(torch.log_softmax(scores, -1), labels, tau)
            theirs = masked_mean(losses if each is None else each * losses, selected)
            ours = fused.masked_loss(scores, labels, selected, each, tau)
            close(ours, theirs)
            close(*(torch.autograd.grad(2 * each, scores)[0] for each in (ours, theirs)))
    assert fused.masked_loss(scores, labels, torch.zeros_like(selected), None, 10.0).item() == 0
    head = SoftmaxHead(width, tags, 0.1, 1).to(device)
    both = fused.labelled_loss(scores, labels), plain_labelled(scores, labels)
    close(*both)
    close(*(torch.autograd.grad(each, scores)[0] for each in both))

    head.mean.normal_()
    head.scale.fill_(1.3)
    nets = random_nets(width).to(device)
    hidden = torch.randn(rows, words, width, device=device, requires_grad=True)
    marked = torch.rand(rows, words, device=device) < 0.7
    own = Rows(marked, marked[:, 0])
    learners = [hidden, *nets.parameters(), *head.parameters()]
    found = []
    for kind in ("ours", "theirs"):
        rng = torch.Generator(device).manual_seed(3)
        if kind == "ours":
            noise = torch.randn((samples, *hidden.shape), generator=rng, device=device)
            told = fused.gaussian_divergence(hidden, marked, nets.mean, nets.scale, head, noise)
        else:
            told = plainly(plain.consistency, hidden, marked, nets, head, own, samples, rng)
        found.append([*told, *torch.autograd.grad(3 * told[0], learners)])
    for one, other in zip(*found, strict=True):
        close(one, other, 1e-4)


def plainly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Without kernels."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (heads, masked, plain):
            patch.setattr(module, "loss_kernels", lambda *_: None)
        return function(*arguments)


def plain_labelled(scores: Tensor, labels: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


def random_nets(width: int) -> plain.GaussianNets:
    nets = plain.GaussianNets(width)
    for layer in (nets.mean, nets.scale):
        layer.reset_parameters()
    return nets


def objectives_agree(device: str, tau: float, warmup: float, weighs: bool) -> None:
    """That of a student as a whole, and that of a teacher, with an encoder that gives the same states either way."""
    torch.manual_seed(0)
    rows, words, tags, width = 4, 8, 17, 40
    head = SoftmaxHead(width, tags, 0.0, 1).to(device)
    head.mean.normal_()
    hidden = torch.randn(rows, words, width, device=device, requires_grad=True)
    owned = torch.rand(rows, words, device=device) < 0.8
    selected = owned & (torch.rand(rows, words, device=device) < 0.6)
    labels = torch.where(owned, torch.randint(0, tags, (rows, words), device=device), IGNORED)
    weights = 2 * torch.rand(rows, words, device=device) if weighs else None
    own = Rows(owned, owned[:, 0])
    batch: Any = SimpleNamespace(labels=labels, selected=selected, weights=weights, owned=owned, rows=own)
    tagger: Any = SimpleNamespace(
        head=head, hidden=lambda batch: hidden * 1.0,
        loss=lambda batch: head.loss(head.raw_scores(hidden), batch.labels, batch.rows),
    )  # fmt: skip
    noise = plain.GaussianConsistency(width, weight=0.5, samples=2)
    noise.nets = random_nets(width).to(device)
    found = []
    for run in (plainly, lambda function, *given: function(*given)):
        student = PseudoLabelledWords(masked.WordLoss(tau, warmup), noise)
        student.generator = torch.Generator(device).manual_seed(5)
        student.begin_step(3, 10)
        loss, told = run(student.loss, tagger, batch)
        labelled, _ = run(LabelledWords().loss, tagger, batch)
        learners = [hidden, *noise.nets.parameters(), *head.parameters()]
        slopes = torch.autograd.grad(loss, learners), torch.autograd.grad(labelled, [hidden, *head.parameters()])
        found.append([loss, *told.values(), labelled, *slopes[0], *slopes[1]])
    for one, other in zip(*found, strict=True):
        close(one, other, 1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize(("tau", "warmup"), [(10.0, 0.0), (2.0, 0.0), (10.0, 1.0)])
def test_an_objective_with_kernels_is_the_plain_one(tau: float, warmup: float, weighs: bool) -> None:
    objectives_agree("cuda", tau, warmup, weighs)


@pytest.mark.gpu
@pytest.mark.parametrize("size", SIZES)
def test_fused_losses_are_the_plain_ones(size: tuple[int, ...]) -> None:
    losses_agree("cuda", size)


@pytest.mark.gpu
def test_in_half_precision_they_are_as_near_as_it_gets() -> None:
    """Under autocast both round; what they differ by is no more than what rounding makes of the plain ones."""
    from sequst.tagger.accel.kernels import losses as fused

    torch.manual_seed(0)
    head, nets = SoftmaxHead(64, 9, 0.0, 1).cuda(), plain.GaussianNets(64).cuda()
    hidden = torch.randn(8, 20, 64, device="cuda", requires_grad=True)
    marked = torch.rand(8, 20, device="cuda") < 0.7
    own, learners = Rows(marked, marked[:, 0]), [hidden, *nets.parameters(), *head.parameters()]
    found = {}
    for kind in ("exact", "rounded", "fused"):
        rng = torch.Generator("cuda").manual_seed(3)
        with torch.autocast("cuda", torch.bfloat16, enabled=kind != "exact"):
            if kind == "fused":
                noise = torch.randn((3, *hidden.shape), generator=rng, device="cuda")
                loss, *_ = fused.gaussian_divergence(hidden, marked, nets.mean, nets.scale, head, noise)
            else:
                loss, *_ = plainly(plain.consistency, hidden, marked, nets, head, own, 3, rng)
        found[kind] = [loss.detach(), *torch.autograd.grad(loss, learners)]
    for exact, rounded, ours in zip(*found.values(), strict=True):
        assert (ours - exact).norm() <= 2 * (rounded - exact).norm() + 1e-3 * exact.norm()


def test_kernels_are_tried_before_they_are_relied_on(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    tried: list[tuple[Any, ...]] = []

    def try_out(*given: Any) -> None:
        tried.append(given)
        if len(tried) > 1:
            raise RuntimeError("no compiler")

    kernels = SimpleNamespace(try_out=try_out)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(available.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(available.importlib, "import_module", lambda name: kernels)
    for size, expected in ((32, kernels), (32, kernels), (64, None)):  # once for each size
        assert available._tried("training", torch.device("cuda"), size, torch.bfloat16) is expected
    assert tried == [(torch.device("cuda"), size, torch.bfloat16) for size in (32, 64)]
    assert "no compiler" in caplog.text
    available._tried.cache_clear()


def test_a_cpu_has_no_kernels() -> None:
    assert loss_kernels(torch.zeros(4, 7, 9), 4) is None
