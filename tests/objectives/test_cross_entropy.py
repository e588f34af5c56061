from __future__ import annotations

import math

import torch

from sequst.objectives.cross_entropy import cross_entropy
from sequst.tagger.batches import IGNORED


def test_by_hand() -> None:
    log_probs = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]]).log()
    labels = torch.tensor([[0, 1, IGNORED]])
    expected = -(math.log(0.5) + math.log(0.75)) / 2
    assert abs(float(cross_entropy(log_probs, labels)) - expected) < 1e-6


def test_a_batch_without_a_word_has_no_loss_and_no_gradient() -> None:
    scores = torch.randn(1, 2, 3, requires_grad=True)
    loss = cross_entropy(scores.log_softmax(-1), torch.full((1, 2), IGNORED))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0
    assert scores.grad is not None
    assert float(scores.grad.abs().sum()) == 0


def test_gradient() -> None:
    scores = torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True)
    labels = torch.tensor([[0, 3, IGNORED], [1, 2, 2]])
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x.log_softmax(-1), labels), scores)
