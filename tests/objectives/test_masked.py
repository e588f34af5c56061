from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sequst.objectives.masked import CROSS_ENTROPY, WordLoss, huberised, masked_loss, masked_mean, word_losses
from sequst.tagger.batches import IGNORED, Rows
from sequst.tagger.heads import SoftmaxHead

LOG_PROBS = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]], [[0.04, 0.96], [0.5, 0.5], [0.5, 0.5]]]).log()
LABELS = torch.tensor([[0, 1, 0], [0, IGNORED, IGNORED]])


def masked_cross_entropy(log_probs: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return masked_mean(word_losses(log_probs, labels), mask)


def masked_phce(log_probs: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor, tau: float) -> torch.Tensor:
    return masked_mean(word_losses(log_probs, labels, tau), mask)


def test_cross_entropy_by_hand() -> None:
    mask = torch.tensor([[True, True, False], [True, False, False]])
    first = -(math.log(0.5) + math.log(0.75)) / 2
    second = -math.log(0.04)
    assert masked_cross_entropy(LOG_PROBS, LABELS, mask).item() == pytest.approx((first + second) / 2, rel=1e-5)


def test_phce_by_hand() -> None:
    mask = LABELS != IGNORED
    first = -(math.log(0.5) + math.log(0.75) + math.log(0.9)) / 3
    second = -10 * 0.04 + math.log(10) + 1  # 0.04 is below 1/10
    assert masked_phce(LOG_PROBS, LABELS, mask, tau=10).item() == pytest.approx((first + second) / 2, rel=1e-5)


def test_tau_is_infinite_while_cross_entropy_comes_first() -> None:
    loss = WordLoss(10.0, warmup=0.3)
    assert [loss.tau_at(done) for done in (0.0, 0.29, 0.3, 1.0)] == [math.inf, math.inf, 10.0, 10.0]
    assert CROSS_ENTROPY.tau_at(1.0) == math.inf


@pytest.mark.parametrize("tau", [10.0, math.inf])
def test_the_loss_of_a_batch_weighs_its_words(tau: float) -> None:
    """By hand: a mean over the selected words of each sentence, each loss times its weight, then a mean over sentences."""
    torch.manual_seed(0)
    head = SoftmaxHead(4, 2, 0.0, 1)
    hidden, mask = 30 * torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])
    weights = torch.tensor([[0.5, 1.5, 9.0], [2.0, 9.0, 9.0]])
    rows = Rows(torch.ones(2, 3, dtype=torch.bool), torch.ones(2, dtype=torch.bool))
    batch: Any = SimpleNamespace(labels=LABELS, selected=mask, weights=weights, rows=rows)
    losses = word_losses(head(hidden, rows), LABELS, tau)
    expected = ((0.5 * losses[0, 0] + 1.5 * losses[0, 1]) / 2 + 2.0 * losses[1, 0]) / 2
    assert masked_loss(head, hidden, batch, tau).item() == pytest.approx(expected.item(), rel=1e-6)
    batch.weights = None
    assert masked_loss(head, hidden, batch, tau).item() == pytest.approx(masked_mean(losses, mask).item(), rel=1e-6)


def test_nothing_selected_is_no_loss_and_no_gradient() -> None:
    scores = torch.randn(2, 3, 4, requires_grad=True)
    loss = masked_phce(scores.log_softmax(-1), torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool), tau=10)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0
    assert scores.grad is not None
    assert scores.grad.abs().sum().item() == 0


def test_a_sentence_without_a_selected_word_does_not_thin_the_mean() -> None:
    values = torch.tensor([[2.0, 4.0], [9.0, 9.0]])
    assert masked_mean(values, torch.tensor([[True, True], [False, False]])).item() == 3.0


@pytest.mark.parametrize("tau", [1.5, 10.0, 100.0])
def test_huberised_is_smooth_at_one_over_tau(tau: float) -> None:
    border = torch.tensor(1 / tau, dtype=torch.double)
    values, slopes = [], []
    for p in (border - 1e-9, border, border + 1e-9):
        p = p.clone().requires_grad_()
        value = huberised(p.log(), tau)
        value.backward()  # type: ignore[no-untyped-call]
        assert p.grad is not None
        values.append(value.item())
        slopes.append(p.grad.item())
    assert values == pytest.approx([math.log(tau)] * 3, abs=1e-6)
    assert slopes == pytest.approx([-tau] * 3, rel=1e-6)


@given(st.floats(1e-6, 1.0), st.floats(1.01, 1000))
def test_huberised_never_pulls_harder_than_cross_entropy(p: float, tau: float) -> None:
    probability = torch.tensor(p, dtype=torch.double, requires_grad=True)
    value = huberised(probability.log(), tau)
    value.backward()  # type: ignore[no-untyped-call]
    assert probability.grad is not None
    assert -probability.grad.item() <= 1 / p * (1 + 1e-9)
    assert -probability.grad.item() <= tau * (1 + 1e-9)
    assert value.item() <= -math.log(p) + 1e-9


def test_one_class_has_no_loss() -> None:
    log_probs = torch.zeros(1, 2, 1)
    everything = torch.ones(1, 2, dtype=torch.bool)
    assert masked_phce(log_probs, torch.zeros(1, 2, dtype=torch.long), everything, tau=10).item() == 0


def test_gradients() -> None:
    scores = torch.randn(2, 3, 5, dtype=torch.double, requires_grad=True)
    labels = torch.tensor([[0, 4, IGNORED], [1, 2, 2]])
    mask = torch.tensor([[True, False, True], [True, True, False]])
    assert torch.autograd.gradcheck(lambda x: masked_phce(x.log_softmax(-1), labels, mask, 3.0), scores)
    assert torch.autograd.gradcheck(lambda x: masked_cross_entropy(x.log_softmax(-1), labels, mask), scores)
