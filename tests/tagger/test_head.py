from __future__ import annotations

import torch
from torch import Tensor

from sequst.tagger.head import SoftmaxHead


def spread(states: Tensor) -> float:
    return float((states - states.mean(0)).pow(2).mean().sqrt())


def test_standardised_states_have_no_mean_and_unit_spread() -> None:
    states = torch.randn(500, 16) * 0.1 + torch.linspace(-1, 1, 16)
    head = SoftmaxHead(16, 3, dropout=0.0)
    head.standardise(states.mean(0), spread(states))
    seen = (states - head.mean) * head.scale
    assert torch.allclose(seen.mean(0), torch.zeros(16), atol=1e-5)
    assert abs(float(seen.pow(2).mean()) - 1) < 1e-4


def test_folding_changes_no_score() -> None:
    states = torch.randn(200, 16) * 0.05 + 2
    head = SoftmaxHead(16, 5, dropout=0.3, seed=1).eval()
    head.standardise(states.mean(0), spread(states))
    folded = torch.log_softmax(head.folded()(states), -1)
    assert torch.allclose(head(states), folded, atol=1e-4)


def test_unfolding_gives_the_saved_classifier_back() -> None:
    plain = torch.nn.Linear(16, 5)
    head = SoftmaxHead(16, 5, dropout=0.3).eval()
    head.standardise(torch.randn(16), 0.3)
    head.unfold(plain)
    states = torch.randn(7, 16)
    assert torch.equal(head(states), torch.log_softmax(plain(states), -1))


def test_a_standardised_head_learns_small_states_that_a_plain_one_does_not() -> None:
    torch.manual_seed(0)
    labels = torch.arange(400) % 4
    states = 0.01 * torch.nn.functional.one_hot(labels, 16) + 0.5 + 0.001 * torch.randn(400, 16)
    correct = {}
    for standardised in (True, False):
        head = SoftmaxHead(16, 4, dropout=0.0)
        if standardised:
            head.standardise(states.mean(0), spread(states))
        optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
        for _ in range(60):
            torch.nn.functional.nll_loss(head(states), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
        correct[standardised] = float((head(states).argmax(-1) == labels).float().mean())
    assert correct[True] > 0.95
    assert correct[False] < 0.6


def test_states_that_do_not_differ_are_left_alone() -> None:
    head = SoftmaxHead(8, 2, dropout=0.0)
    head.standardise(torch.full((8,), 3.0), 0.0)
    assert (float(head.scale.max()), float(head.mean.max())) == (1.0, 0.0)


def test_the_seed_decides_the_first_weights() -> None:
    same = [SoftmaxHead(8, 2, 0.1, seed=4).linear.weight for _ in range(2)]
    assert torch.equal(*same)
    assert not torch.equal(same[0], SoftmaxHead(8, 2, 0.1, seed=5).linear.weight)
