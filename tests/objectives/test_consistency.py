from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sequst.objectives.consistency import GaussianConsistency, GaussianNets, consistency, divergence, noise_prior, perturb


def head(hidden: Tensor) -> Tensor:
    return hidden.log_softmax(-1)


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
    found = consistency(hidden, WORDS, constant_nets(1.0, 0.0), head, samples=3, generator=generator())
    assert found.loss.item() == pytest.approx(0.0, abs=1e-7)
    assert (found.mean.item(), found.scale.item()) == (1.0, 0.0)


def test_it_starts_near_the_identity() -> None:
    hidden = torch.randn(2, 3, 4) * 5
    mean, scale = GaussianNets(4)(hidden)
    assert torch.equal(mean, torch.ones_like(hidden))
    assert torch.equal(scale, torch.full_like(hidden, 0.1))
    torch.manual_seed(0)
    mean, _ = GaussianNets(64, start="random")(torch.randn(20, 64))
    assert mean.mean() < 0.5  # far from the identity: almost all of the representation is taken away


def test_by_hand_without_noise() -> None:
    # mu = 2 and Sigma = 0 double every feature
    hidden = torch.randn(1, 3, 4)
    expected = divergence(head(hidden), head(2 * hidden))[0, :2].mean()
    found = consistency(hidden, WORDS, constant_nets(2.0, 0.0), head, samples=2, generator=generator())
    assert found.loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_perturbation_by_hand_and_noise_from_the_generator_alone() -> None:
    h, mu, sigma, eps = torch.tensor([2.0]), torch.tensor([1.5]), torch.tensor([0.5]), torch.tensor([-2.0])
    assert perturb(h, mu, sigma, eps).item() == 2.0 * (1.5 - 1.0)
    hidden, nets = torch.randn(1, 3, 4), constant_nets(1.0, 1.0)
    before = torch.get_rng_state()
    values = [consistency(hidden, WORDS, nets, head, samples=3, generator=generator()).loss.item() for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), before)
    assert values[0] == values[1] > 0


def test_words_that_are_not_marked_do_not_count() -> None:
    hidden = torch.randn(1, 3, 4)
    changed = hidden.clone()
    changed[0, 2] = 100.0
    values = [
        consistency(h, WORDS, constant_nets(2.0, 0.0), head, samples=1, generator=generator()).loss.item()
        for h in (hidden, changed)
    ]
    assert values[0] == values[1]
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert consistency(hidden, nothing, constant_nets(2.0, 0.0), head, 1, generator()).loss.item() == 0


@pytest.mark.parametrize("detach", [True, False])
def test_the_clean_side_can_be_kept_out_of_the_gradient(detach: bool) -> None:
    grads = []
    for by_hand in (False, True):
        hidden = torch.arange(4.0).reshape(1, 1, 4).requires_grad_()
        if by_hand:
            clean = head(hidden).detach() if detach else head(hidden)
            loss = divergence(clean, head(2 * hidden)).sum()
        else:
            word = torch.ones(1, 1, dtype=torch.bool)
            loss = consistency(hidden, word, constant_nets(2.0, 0.0), head, 1, generator(), detach=detach).loss
        loss.backward()  # type: ignore[no-untyped-call]
        grads.append(hidden.grad)
    assert grads[0] is not None
    assert grads[1] is not None
    assert torch.allclose(grads[0], grads[1])


def test_gradient_reaches_the_nets_and_the_representation() -> None:
    nets = GaussianNets(3).double()

    def loss(hidden: Tensor) -> Tensor:
        words = torch.ones(1, 2, dtype=torch.bool)
        return consistency(hidden, words, nets, head, 2, generator(), detach=False).loss

    hidden = torch.randn(1, 2, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(loss, hidden)
    loss(hidden).backward()  # type: ignore[no-untyped-call]
    assert nets.scale.weight.grad is not None


def test_the_prior_is_zero_at_itself_and_grows_when_the_noise_collapses() -> None:
    words = torch.ones(1, 1, dtype=torch.bool)
    at = noise_prior(torch.ones(1, 1, 2), torch.full((1, 1, 2), 0.3), words, 0.3).item()
    off = noise_prior(torch.full((1, 1, 2), 1.5), torch.full((1, 1, 2), 0.3), words, 0.3).item()
    gone = noise_prior(torch.ones(1, 1, 2), torch.zeros(1, 1, 2), words, 0.3).item()
    assert at == pytest.approx(0.0, abs=1e-6)
    assert off == pytest.approx(0.5 * 0.25 / 0.09, rel=1e-4)
    assert gone > 5


def test_as_a_part_it_is_weighted_seeded_and_shows_its_noise() -> None:
    hidden = torch.randn(1, 3, 4)
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    options = {"weight": 0.5, "samples": 2, "prior": 0.0, "start": "random", "detach": True, "selected_only": False}
    parts = [GaussianConsistency(4, 7, **options) for _ in range(2)]  # type: ignore[arg-type]
    for part in parts:
        part.begin_epoch(5)
    (first, values), (second, _) = (part(hidden, WORDS, nothing, head) for part in parts)
    assert first.item() == second.item() == pytest.approx(0.5 * values["gcr"].item())
    assert set(values) == {"gcr", "gcr_mu", "gcr_sigma"}
    only = GaussianConsistency(4, 7, **{**options, "selected_only": True})  # type: ignore[arg-type]
    assert only(hidden, WORDS, nothing, head)[0].item() == 0
    with_prior = GaussianConsistency(4, 7, **{**options, "prior": 0.3})  # type: ignore[arg-type]
    with_prior.begin_epoch(5)
    assert with_prior(hidden, WORDS, nothing, head)[0].item() > first.item()
