from __future__ import annotations

import torch
from torch import Tensor

from sequst.objectives.adversarial import adversarial_direction, mean_norm, unit

MASK = torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])


def test_directions_have_norm_one_over_a_sentence() -> None:
    found = unit(torch.randn(2, 3, 4), MASK)
    assert torch.allclose(found.flatten(1).norm(dim=1), torch.ones(2))
    assert not found[1, 2].any()
    assert not unit(torch.zeros(2, 3, 4), MASK).any()
    tiny = unit(1e-20 * torch.randn(2, 3, 4), MASK)
    assert torch.allclose(tiny.flatten(1).norm(dim=1), torch.ones(2))


def test_the_direction_is_the_one_that_moves_most() -> None:
    """Of a quadratic form one step of the power iteration points, more than any random direction, along its largest axis."""
    torch.manual_seed(0)
    axes = torch.ones(12)
    axes[3] = 50.0
    embeddings = torch.randn(2, 3, 4)

    def divergence(inputs: Tensor) -> Tensor:
        moved = (inputs - embeddings).flatten(1)
        return (axes * moved.pow(2)).sum()

    worst = adversarial_direction(embeddings, torch.ones(2, 3), divergence, torch.Generator().manual_seed(1), step=0.1)
    assert (worst.flatten(1)[:, 3].abs() > 0.95).all()
    for _ in range(20):
        random = unit(torch.randn(2, 3, 4), torch.ones(2, 3))
        assert divergence(embeddings + worst) > divergence(embeddings + random)


def test_the_mean_norm_is_of_what_is_no_padding() -> None:
    embeddings = torch.zeros(2, 3, 4)
    embeddings[0, :, 0] = torch.tensor([1.0, 2.0, 3.0])
    embeddings[1, :, 1] = torch.tensor([4.0, 6.0, 1000.0])  # the last is padding
    assert mean_norm(embeddings, MASK).flatten().tolist() == [2.0, 5.0]
