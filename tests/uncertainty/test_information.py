from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sequst.uncertainty.information import PassSums


def sums_of(passes: list[list[list[float]]]) -> PassSums:
    sums = PassSums()
    for probabilities in passes:
        sums.add(torch.tensor([probabilities], dtype=torch.double).log())
    return sums


def test_by_hand() -> None:
    sums = sums_of([[[0.8, 0.2]], [[0.4, 0.6]]])
    entropy = -(0.6 * math.log(0.6) + 0.4 * math.log(0.4))
    mean_entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2) + 0.4 * math.log(0.4) + 0.6 * math.log(0.6)) / 2
    assert sums.mean.tolist() == [pytest.approx([0.6, 0.4])]
    assert float(sums.information_gain()) == pytest.approx(entropy - mean_entropy)
    assert sums.confidence(torch.tensor([1])).tolist() == pytest.approx([0.4])


def test_corners() -> None:
    # passes that agree, whatever they say, leave nothing to gain; passes that are sure of different classes leave log C
    assert float(sums_of([[[0.5, 0.5]], [[0.5, 0.5]]]).information_gain()) == pytest.approx(0.0, abs=1e-12)
    assert float(sums_of([[[1.0, 0.0]]]).information_gain()) == 0.0
    three = sums_of([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    assert float(three.information_gain()) == pytest.approx(math.log(3))
    assert float(sums_of([[[1.0]], [[1.0]]]).information_gain()) == 0.0  # one class


@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 10_000), st.floats(0.1, 30))
def test_never_negative_and_never_above_log_c(passes: int, classes: int, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    sums = PassSums()
    for _ in range(passes):
        sums.add((torch.randn(1, 5, classes, generator=generator) * scale).log_softmax(-1))
    gain = sums.information_gain()
    assert bool((gain >= 0).all())
    assert bool((gain <= math.log(classes) + 1e-6).all())
    assert sums.mean.sum(-1).tolist() == pytest.approx([1.0] * 5)
