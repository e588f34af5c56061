from __future__ import annotations

import math

import pytest
import torch
from tests.tagger.test_crf import chain, every_path, probabilities

from sequst.objectives.sequence import path_divergence
from sequst.tagger.crf import Chain


def pair(seed: int, tags: int = 3) -> tuple[Chain, Chain]:
    clean, other = chain(3, 4, tags, seed), chain(3, 4, tags, seed + 100)
    return clean, other._replace(mask=clean.mask)


@pytest.mark.parametrize("seed", range(5))
def test_with_all_paths_it_is_the_exact_divergence(seed: int) -> None:
    clean, other = pair(seed)
    found = path_divergence(clean, other, 3**4)
    for row in range(3):
        both = []
        for side in (clean, other):
            paths = every_path(side, row)
            both.append({path: p for p, (_, path) in zip(probabilities(paths), paths, strict=True)})
        exact = sum(p * math.log(p / both[1][path]) for path, p in both[0].items())
        assert found[row].item() == pytest.approx(exact, rel=1e-6)


def test_fewer_paths_tell_less_and_never_below_nothing() -> None:
    clean, other = pair(7)
    found = torch.stack([path_divergence(clean, other, k) for k in (1, 2, 5, 20, 81)])
    assert (found.diff(dim=0) >= -1e-9).all()
    assert (found >= -1e-9).all()
    assert path_divergence(clean, clean, 3).abs().max().item() == pytest.approx(0.0, abs=1e-9)


def test_in_single_precision() -> None:
    for seed in range(5):
        exact, other = pair(seed)
        both = [Chain(*(part if part.dtype == torch.bool else part.float() for part in side)) for side in (exact, other)]
        assert torch.allclose(path_divergence(*both, 5).double(), path_divergence(exact, other, 5), rtol=1e-3, atol=1e-5)
        assert path_divergence(both[0], both[0], 5).abs().max() < 1e-5


def test_by_hand_with_the_rest_in_one_bin() -> None:
    clean, other = pair(3)
    k = 2
    for row in range(3):
        paths = every_path(clean, row)
        p = probabilities(paths)[:k]
        theirs = {path: q for q, (_, path) in zip(probabilities(every_path(other, row)), every_path(other, row), strict=True)}
        q = [theirs[path] for _, path in paths[:k]]
        expected = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        expected += (1 - sum(p)) * math.log((1 - sum(p)) / (1 - sum(q)))
        assert path_divergence(clean, other, k)[row].item() == pytest.approx(expected, rel=1e-6)


def test_the_gradient_is_that_of_the_other_side_alone() -> None:
    clean, other = pair(9)
    inputs = other.emissions.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: path_divergence(clean, other._replace(emissions=x), 3), inputs)
    source = clean.emissions.clone().requires_grad_()
    assert not path_divergence(clean._replace(emissions=source), other, 3).requires_grad
