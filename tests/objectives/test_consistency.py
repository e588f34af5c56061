from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from sequst.objectives.consistency import GaussianConsistency, GaussianNets, consistency, divergence, perturb
from sequst.tagger.batches import Rows


class Plain(torch.nn.Module):
    """A head whose scores are the states themselves."""

    linear = torch.nn.Linear(4, 4)

    def forward(self, hidden: Tensor, rows: Rows | None = None, dropout: bool = False) -> Tensor:
        return hidden.log_softmax(-1)


head: Any = Plain()
ROWS: Any = None


def regularised(hidden: Tensor, words: Tensor, nets: GaussianNets, samples: int, generator: torch.Generator) -> Tensor:
    return consistency(hidden, words, nets, head, ROWS, samples, generator)[0]


def constant_nets(mean: float, scale: float, hidden: int = 4) -> GaussianNets:
    nets = GaussianNets(hidden)
    for layer, value in ((nets.mean, mean), (nets.scale, scale)):
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.constant_(layer.bias, value)
    return nets


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


WORDS = torch.tensor([[True, True, False]])


def test_divergence_by_hand() -> None:
    clean, perturbed = torch.tensor([0.5, 0.5]).log(), torch.tensor([0.25, 0.75]).log()
    expected = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert divergence(clean, perturbed).item() == pytest.approx(expected, rel=1e-5)


def test_the_trivial_optimum_is_an_identical_representation_without_loss() -> None:
    hidden = torch.randn(1, 3, 4)
    loss, mu, sigma = consistency(hidden, WORDS, constant_nets(1.0, 0.0), head, ROWS, 3, generator())
    assert loss.item() == pytest.approx(0.0, abs=1e-7)
    assert (mu.item(), sigma.item()) == (1.0, 0.0)


def test_it_starts_near_the_identity() -> None:
    hidden = torch.randn(2, 3, 4) * 5
    mean, scale = GaussianNets(4)(hidden)
    assert torch.equal(mean, torch.ones_like(hidden))
    assert torch.equal(scale, torch.full_like(hidden, 0.1))


def test_by_hand_without_noise() -> None:
    # mu = 2 and Sigma = 0 double every feature
    hidden = torch.randn(1, 3, 4)
    expected = divergence(head(hidden), head(2 * hidden))[0, :2].mean()
    found = regularised(hidden, WORDS, constant_nets(2.0, 0.0), 2, generator())
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_perturbation_by_hand_and_noise_from_the_generator_alone() -> None:
    h, mu, sigma, eps = torch.tensor([2.0]), torch.tensor([1.5]), torch.tensor([0.5]), torch.tensor([-2.0])
    assert perturb(h, mu, sigma, eps).item() == 2.0 * (1.5 - 1.0)
    hidden, nets = torch.randn(1, 3, 4), constant_nets(1.0, 1.0)
    before = torch.get_rng_state()
    values = [regularised(hidden, WORDS, nets, 3, generator()).item() for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert values[0] == values[1] > 0


def test_words_that_are_not_marked_do_not_count() -> None:
    hidden = torch.randn(1, 3, 4)
    changed = hidden.clone()
    changed[0, 2] = 100.0
    values = [regularised(h, WORDS, constant_nets(2.0, 0.0), 1, generator()).item() for h in (hidden, changed)]
    assert values[0] == values[1]
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert regularised(hidden, nothing, constant_nets(2.0, 0.0), 1, generator()).item() == 0


def test_the_clean_side_is_kept_out_of_the_gradient() -> None:
    grads = []
    for by_hand in (False, True):
        hidden = torch.arange(4.0).reshape(1, 1, 4).requires_grad_()
        if by_hand:
            loss = divergence(head(hidden).detach(), head(2 * hidden)).sum()
        else:
            loss = regularised(hidden, torch.ones(1, 1, dtype=torch.bool), constant_nets(2.0, 0.0), 1, generator())
        loss.backward()  # type: ignore[no-untyped-call]
        grads.append(hidden.grad)
    assert grads[0] is not None
    assert grads[1] is not None
    assert torch.allclose(grads[0], grads[1])


def test_gradient_reaches_the_nets() -> None:
    nets = GaussianNets(3).double()
    hidden = torch.randn(1, 2, 3, dtype=torch.double)
    words = torch.ones(1, 2, dtype=torch.bool)

    def loss(*weights: Tensor) -> Tensor:
        named = dict(zip(dict(nets.named_parameters()), weights, strict=True))
        return torch.func.functional_call(_Regularised(nets), {f"nets.{k}": v for k, v in named.items()}, (hidden, words))

    weights = [weight.detach().clone().requires_grad_() for weight in nets.parameters()]
    assert torch.autograd.gradcheck(loss, weights)
    regularised(hidden, words, nets, 2, generator()).backward()  # type: ignore[no-untyped-call]
    assert nets.scale.weight.grad is not None
    assert nets.scale.weight.grad.abs().sum() > 0


class _Regularised(torch.nn.Module):
    def __init__(self, nets: GaussianNets) -> None:
        super().__init__()
        self.nets = nets

    def forward(self, hidden: Tensor, words: Tensor) -> Tensor:
        return regularised(hidden, words, self.nets, 2, generator())


def test_as_a_part_it_is_weighted_and_shows_its_noise() -> None:
    hidden = torch.randn(1, 3, 4)
    before = torch.get_rng_state()
    part = GaussianConsistency(4, weight=0.5, samples=2)
    assert torch.equal(torch.get_rng_state(), before)  # it draws nothing of what dropout draws from
    loss, values = part(hidden, WORDS, head, ROWS, generator())
    assert loss.item() == pytest.approx(0.5 * values["gcr"].item())
    assert set(values) == {"gcr", "gcr_mu", "gcr_sigma"}
