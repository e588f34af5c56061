"""Dynamic programs against brute force: every path of small chains, one by one."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from sequst.tagger.crf import (
    FORBIDDEN,
    Chain,
    iob2_constraints,
    k_best,
    log_marginals,
    log_normaliser,
    path_score,
    viterbi,
)
from sequst.tagger.crf import _where_all_are as where_all_are


def chain(rows: int, longest: int, tags: int, seed: int, scale: float = 2.0) -> Chain:
    """A random chain in double precision; the first row has all words, the others as many as it happens."""
    rng = torch.Generator().manual_seed(seed)

    def scores(*shape: int) -> Tensor:
        return scale * torch.randn(*shape, generator=rng, dtype=torch.double)

    lengths = torch.randint(1, longest + 1, (rows,), generator=rng)
    lengths[0] = longest
    mask = torch.arange(longest) < lengths[:, None]
    return Chain(scores(rows, longest, tags), mask, scores(tags, tags), scores(tags), scores(tags))


def every_path(whole: Chain, row: int) -> list[tuple[float, tuple[int, ...]]]:
    """(score, path) of all paths of a row, from the best down, added up by hand."""
    length = int(whole.mask[row].sum())
    found = []
    for path in itertools.product(range(whole.emissions.shape[-1]), repeat=length):
        score = whole.start[path[0]] + whole.end[path[-1]] + sum(whole.emissions[row, i, tag] for i, tag in enumerate(path))
        score = score + sum(whole.transitions[a, b] for a, b in itertools.pairwise(path))
        found.append((float(score), path))
    return sorted(found, reverse=True)


def test_what_a_gpu_is_not_asked_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a step may look at rows that have ended before it: bit by bit the same."""
    some = chain(6, 9, 4, 1)

    def everything() -> list[Tensor]:
        return [*k_best(some, 3), viterbi(some), log_normaliser(some), log_marginals(some)]

    asked = everything()
    assert any(where_all_are(some.mask))
    monkeypatch.setattr("sequst.tagger.crf._where_all_are", lambda mask: [False] * mask.shape[1])
    assert all(torch.equal(one, other) for one, other in zip(everything(), asked, strict=True))


def probabilities(paths: list[tuple[float, tuple[int, ...]]]) -> list[float]:
    best = paths[0][0]
    weights = [math.exp(score - best) for score, _ in paths]
    return [weight / sum(weights) for weight in weights]


def negative_log_likelihood(whole: Chain, tags: Tensor) -> Tensor:
    """-log p(tags) of every row."""
    return log_normaliser(whole) - path_score(whole, tags)


def _shares(whole: Chain, row: int) -> tuple[list[float], list[tuple[float, tuple[int, ...]]]]:
    paths = every_path(whole, row)
    return probabilities(paths), paths


CASES = given(rows=st.integers(1, 3), longest=st.integers(1, 5), tags=st.integers(2, 5), seed=st.integers(0, 10_000))


@CASES
@settings(max_examples=30, deadline=None)
def test_everything_by_enumeration(rows: int, longest: int, tags: int, seed: int) -> None:
    whole = chain(rows, longest, tags, seed)
    total, single = log_normaliser(whole), log_marginals(whole)
    best, best_score = viterbi(whole), k_best(whole, 1)[1][:, 0]
    top, top_scores = k_best(whole, 7)
    for row in range(rows):
        paths = every_path(whole, row)
        shares = probabilities(paths)
        length = len(paths[0][1])
        assert total[row].item() == pytest.approx(paths[0][0] - math.log(shares[0]))
        assert best[row, :length].tolist() == list(paths[0][1])
        assert best_score[row].item() == pytest.approx(paths[0][0])
        for place, (score, path) in enumerate(paths[:7]):
            assert top_scores[row, place].item() == pytest.approx(score)
            assert top[row, place, :length].tolist() == list(path)
        assert top_scores[row, len(paths) :].tolist() == [-math.inf] * max(0, 7 - len(paths))
        for word, tag in itertools.product(range(length), range(tags)):
            expected = sum(p for p, (_, path) in zip(shares, paths, strict=True) if path[word] == tag)
            assert single[row, word, tag].exp().item() == pytest.approx(expected, abs=1e-9)
        assert not single[row, length:].any()
        path = torch.zeros(rows, longest, dtype=torch.long)
        path[row, :length] = torch.tensor(paths[-1][1])
        assert path_score(whole, path)[row].item() == pytest.approx(paths[-1][0])
        assert negative_log_likelihood(whole, path)[row].item() == pytest.approx(-math.log(shares[-1]), abs=1e-8)


@CASES
@settings(max_examples=20, deadline=None)
def test_marginals_are_the_gradient_of_the_normaliser(rows: int, longest: int, tags: int, seed: int) -> None:
    whole = chain(rows, longest, tags, seed)
    emissions = whole.emissions.clone().requires_grad_()
    [gradient] = torch.autograd.grad(log_normaliser(whole._replace(emissions=emissions)).sum(), emissions)
    expected = torch.where(whole.mask.unsqueeze(-1), log_marginals(whole).exp(), 0.0)
    assert torch.allclose(gradient, expected, atol=1e-9)


def test_gradients() -> None:
    whole = chain(3, 4, 3, seed=1)
    tags = torch.randint(0, 3, (3, 4), generator=torch.Generator().manual_seed(2))
    inputs = [part.clone().requires_grad_() for part in (whole.emissions, whole.transitions, whole.start, whole.end)]

    def built(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Chain:
        return Chain(emissions, whole.mask, transitions, start, end)

    assert torch.autograd.gradcheck(lambda *parts: negative_log_likelihood(built(*parts), tags), inputs)
    assert torch.autograd.gradcheck(lambda *parts: log_marginals(built(*parts)), inputs)
    assert torch.autograd.gradgradcheck(lambda *parts: negative_log_likelihood(built(*parts), tags), inputs)


def test_padding_changes_nothing() -> None:
    whole = chain(4, 6, 4, seed=3)
    for row, length in enumerate(whole.lengths.tolist()):
        alone = Chain(whole.emissions[row : row + 1, :length], whole.mask[row : row + 1, :length], *whole[2:])
        assert log_normaliser(alone)[0] == pytest.approx(log_normaliser(whole)[row].item())
        assert torch.allclose(log_marginals(alone)[0], log_marginals(whole)[row, :length])
        assert torch.equal(viterbi(alone)[0], viterbi(whole)[row, :length])
        assert torch.equal(k_best(alone, 5)[0][0], k_best(whole, 5)[0][row, :, :length])


def test_large_scores_and_long_rows_in_single_precision() -> None:
    rng = torch.Generator().manual_seed(4)

    def scores(*shape: int) -> Tensor:
        return (2e4 * torch.rand(*shape, generator=rng, dtype=torch.double) - 1e4).round()

    exact = Chain(scores(2, 512, 7), torch.ones(2, 512, dtype=torch.bool), scores(7, 7), scores(7), scores(7))
    exact.mask[1, 300:] = False
    single = Chain(*(part if part.dtype == torch.bool else part.float() for part in exact))
    gold = viterbi(exact)
    gold[:, 10] = (gold[:, 10] + 1) % 7
    assert torch.allclose(log_normaliser(single).double(), log_normaliser(exact), rtol=1e-5, atol=1e-2)
    assert torch.equal(viterbi(single), viterbi(exact))
    assert torch.allclose(log_marginals(single).exp().double(), log_marginals(exact).exp(), atol=1e-3)
    emissions = single.emissions.clone().requires_grad_()
    negative_log_likelihood(single._replace(emissions=emissions), gold).sum().backward()  # type: ignore[no-untyped-call]
    assert emissions.grad is not None
    assert emissions.grad.isfinite().all()


def test_what_iob2_forbids_has_no_probability() -> None:
    labels = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    transitions, start = iob2_constraints(labels)
    allowed = {(a, b) for a, b in itertools.product(labels, repeat=2) if transitions[labels.index(a), labels.index(b)] == 0}
    forbidden = set(itertools.product(labels, repeat=2)) - allowed
    assert forbidden == {(a, f"I-{t}") for t in "XY" for a in labels if a not in (f"B-{t}", f"I-{t}")}
    assert [label for label, score in zip(labels, start.tolist(), strict=True) if score == FORBIDDEN] == ["I-X", "I-Y"]
    free = chain(3, 4, 5, seed=7, scale=6.0)
    bound = Chain(*(p if p.dtype == torch.bool else p.float() for p in free))
    bound = bound._replace(transitions=bound.transitions + transitions, start=bound.start + start)
    single = log_marginals(bound).exp()
    for row in range(3):  # every path that has a probability is allowed
        likely = [path for share, (_, path) in zip(*_shares(bound, row), strict=True) if share > 0]
        assert not {pair for path in likely for pair in itertools.pairwise(labels[tag] for tag in path)} & forbidden
    assert not single[:, 0, start == FORBIDDEN].any()
    for path, length in zip(viterbi(bound).tolist(), bound.lengths.tolist(), strict=True):
        tags = [labels[tag] for tag in path[:length]]
        assert not tags[0].startswith("I-")
        assert not set(itertools.pairwise(tags)) & forbidden


def test_a_row_without_words() -> None:
    whole = chain(2, 3, 3, seed=8)
    whole.mask[1] = False
    assert log_normaliser(whole)[1] == 0
    assert not log_marginals(whole)[1].any()
    assert viterbi(whole)[1].tolist() == [0, 0, 0]
