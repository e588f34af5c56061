from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sequst.objectives.reweighting import (
    Parameters,
    Slopes,
    decay_weights,
    normalised,
    slopes_of,
    worth_by_tangent,
    worth_of_words,
)


def problem(noisy: int = 4, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[str, Tensor]]:
    """Twenty points of two classes, the first `noisy` with the wrong label; clean ones to judge by; a linear classifier."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(20) % 2
    points = torch.randn(20, 3, generator=rng, dtype=torch.double) + 2.0 * (2 * labels - 1).unsqueeze(1)
    given = labels.clone()
    given[:noisy] = 1 - given[:noisy]
    meta_labels = torch.arange(8) % 2
    meta = torch.randn(8, 3, generator=rng, dtype=torch.double) + 2.0 * (2 * meta_labels - 1).unsqueeze(1)
    start = 0.1 * torch.randn(2, 3, generator=rng, dtype=torch.double)
    return points, given, meta, meta_labels, {"weight": start.requires_grad_(), "unused": torch.ones(2, requires_grad=True)}


def losses_of(points: Tensor, labels: Tensor, at: Parameters) -> Tensor:
    return torch.nn.functional.cross_entropy(torch.tanh(points @ at["weight"].T), labels, reduction="none")


def slopes_on(meta: Tensor, labels: Tensor) -> Slopes:
    return lambda at: slopes_of(losses_of(meta, labels, at).mean(), at)


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_the_worth_of_a_word_is_the_slope_of_the_meta_loss_in_its_weight(rate: float) -> None:
    points, given, meta, meta_labels, parameters = problem()

    def after(weights: Tensor) -> Tensor:
        """The meta loss after a step with these weights, all by hand."""
        [gradient] = torch.autograd.grad((weights * losses_of(points, given, parameters)).sum(), parameters["weight"])
        return losses_of(meta, meta_labels, {"weight": parameters["weight"] - rate * gradient}).mean().detach()

    found = worth_of_words(losses_of(points, given, parameters), parameters, slopes_on(meta, meta_labels), rate)
    even = torch.full((20,), 1 / 20, dtype=torch.double)
    for i in range(20):
        little = torch.zeros(20, dtype=torch.double)
        little[i] = 1e-5
        slope = (after(even + little) - after(even - little)) / 2e-5
        assert found[i].item() == pytest.approx(-slope.item(), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_along_a_tangent_it_is_the_same(rate: float) -> None:
    """Of words that count; the others are worth nothing, and take no part in the step."""
    points, given, meta, meta_labels, parameters = problem()
    counted = torch.arange(20) % 3 > 0
    meta_slopes = slopes_on(meta, meta_labels)
    expected = worth_of_words(losses_of(points, given, parameters)[counted], parameters, meta_slopes, rate)
    found = worth_by_tangent(
        lambda at: losses_of(points, given, at).view(4, 5), counted.view(4, 5), parameters, meta_slopes, rate
    ).flatten()
    assert torch.allclose(found[counted], expected, rtol=1e-10, atol=1e-14)
    assert not found[~counted].any()
    assert expected.abs().min() > 0
    assert parameters["weight"].grad is None


def test_the_graph_of_the_losses_is_left_for_the_real_step() -> None:
    points, given, meta, meta_labels, parameters = problem()
    losses = losses_of(points, given, parameters)
    worth_of_words(losses, parameters, slopes_on(meta, meta_labels), 0.1)
    assert parameters["weight"].grad is None
    losses.sum().backward()  # type: ignore[no-untyped-call]
    assert parameters["weight"].grad is not None


@pytest.mark.parametrize("seed", range(5))
def test_corrupted_words_weigh_less(seed: int) -> None:
    points, given, meta, meta_labels, parameters = problem(noisy=4, seed=seed)
    meta_slopes = slopes_on(meta, meta_labels)
    weights = normalised(worth_of_words(losses_of(points, given, parameters), parameters, meta_slopes, 0.1))
    assert weights.sum().item() == pytest.approx(1.0)
    assert weights[:4].mean() < 0.1 * weights[4:].mean()


def test_words_that_do_harm_weigh_nothing() -> None:
    assert normalised(torch.tensor([3.0, -5.0, 1.0])).tolist() == [0.75, 0.0, 0.25]
    assert normalised(torch.tensor([-1.0, 0.0])).tolist() == [0.0, 0.0]


def test_what_fell_most_is_drawn_most() -> None:
    before, now = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 1.0])
    assert decay_weights(before, now, smoothing=1.0).tolist() == pytest.approx([0.5, 0.25, 0.25])
    unknown = torch.full((3,), torch.nan)
    assert decay_weights(unknown, now, smoothing=0.5).tolist() == pytest.approx([1 / 3] * 3)
