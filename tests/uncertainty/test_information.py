from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sequst.uncertainty.information import posterior


def of(passes: list[list[list[float]]]) -> tuple[torch.Tensor, torch.Tensor]:
    return posterior(torch.tensor([probabilities], dtype=torch.double).log() for probabilities in passes)


def test_by_hand() -> None:
    mean, gain = of([[[0.8, 0.2]], [[0.4, 0.6]]])
    entropy = -(0.6 * math.log(0.6) + 0.4 * math.log(0.4))
    mean_entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2) + 0.4 * math.log(0.4) + 0.6 * math.log(0.6)) / 2
    assert mean.tolist() == [pytest.approx([0.6, 0.4])]
    assert float(gain) == pytest.approx(entropy - mean_entropy)
    both = posterior([torch.tensor([[[0.8, 0.2]], [[0.4, 0.6]]], dtype=torch.double).log()])  # two at once
    assert torch.equal(both[0], mean)
    assert float(both[1]) == pytest.approx(float(gain))


def test_corners() -> None:
    # passes that agree, whatever they say, leave nothing to gain; passes that are sure of different classes leave log C
    assert float(of([[[0.5, 0.5]], [[0.5, 0.5]]])[1]) == pytest.approx(0.0, abs=1e-12)
    assert float(of([[[1.0, 0.0]]])[1]) == 0.0
    three = of([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    assert float(three[1]) == pytest.approx(math.log(3))
    assert float(of([[[1.0]], [[1.0]]])[1]) == 0.0  # one class


@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 10_000), st.floats(0.1, 30))
def test_never_negative_and_never_above_log_c(passes: int, classes: int, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    mean, gain = posterior((torch.randn(1, 5, classes, generator=generator) * scale).log_softmax(-1) for _ in range(passes))
    assert bool((gain >= 0).all())
    assert bool((gain <= math.log(classes) + 1e-6).all())
    assert mean.sum(-1).tolist() == pytest.approx([1.0] * 5)
