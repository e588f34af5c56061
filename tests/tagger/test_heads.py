from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from sequst.tagger.batches import IGNORED, Rows
from sequst.tagger.crf import path_score
from sequst.tagger.heads import CrfHead, SoftmaxHead


def rows(words: Tensor) -> Rows:
    return Rows(words, torch.ones(len(words), dtype=torch.bool))


EVERY = rows(torch.ones(1, 1, dtype=torch.bool))
LABELS = ["O", "B-X", "I-X"]


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
    assert torch.allclose(head(states, EVERY), folded, atol=1e-4)


def test_unfolding_gives_the_saved_classifier_back() -> None:
    plain = torch.nn.Linear(16, 5)
    head = SoftmaxHead(16, 5, dropout=0.3).eval()
    head.standardise(torch.randn(16), 0.3)
    head.unfold(plain)
    states = torch.randn(7, 16)
    assert torch.equal(head(states, EVERY), torch.log_softmax(plain(states), -1))


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
            torch.nn.functional.nll_loss(head(states, EVERY), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
        correct[standardised] = float((head(states, EVERY).argmax(-1) == labels).float().mean())
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


def test_cross_entropy_by_hand() -> None:
    head = SoftmaxHead(4, 2, dropout=0.0)
    scores = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]]).log()
    words = rows(torch.ones(1, 3, dtype=torch.bool))
    expected = -(math.log(0.5) + math.log(0.75)) / 2
    assert head.loss(scores, torch.tensor([[0, 1, IGNORED]]), words).item() == pytest.approx(expected, rel=1e-6)
    nothing = head.loss(scores.requires_grad_(), torch.full((1, 3), IGNORED), words)
    nothing.backward()  # type: ignore[no-untyped-call]
    assert nothing.item() == 0
    assert scores.grad is not None
    assert not scores.grad.any()


@pytest.mark.parametrize("kind", ["softmax", "crf"])
def test_gradient_of_the_loss(kind: str) -> None:
    head = (SoftmaxHead(4, 3, 0.0) if kind == "softmax" else free_chain()).double()
    scores = torch.randn(2, 3, 3, dtype=torch.double, requires_grad=True)
    words = rows(torch.tensor([[True, True, False], [True, True, True]]))
    labels = torch.tensor([[0, 1, IGNORED], [1, IGNORED, 2]])
    assert torch.autograd.gradcheck(lambda x: head.loss(x, labels, words), scores)


def free_chain(hidden: int = 4) -> CrfHead:
    """With no tags that are forbidden."""
    head = CrfHead(hidden, LABELS, 0.0, seed=3)
    head.forbidden.zero_()
    head.forbidden_start.zero_()
    return head


def random_chain(constrained: bool) -> CrfHead:
    head = (CrfHead(4, LABELS, dropout=0.0) if constrained else free_chain()).double()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in head.parameters(recurse=False):
            parameter.normal_(generator=rng)
    return head


@pytest.mark.parametrize("constrained", [True, False])
def test_a_chain_that_knows_some_labels_sums_over_the_others(constrained: bool) -> None:
    head = random_chain(constrained)
    scores = torch.randn(1, 4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.double)
    words = rows(torch.tensor([[True, True, True, False]]))
    labels = torch.tensor([[IGNORED, 2, 0, IGNORED]])
    chain = head.chain(scores, words)
    weights = {
        path: math.exp(path_score(chain, torch.tensor([[*path, 0]])).item()) for path in itertools.product(range(3), repeat=3)
    }
    allowed = sum(weight for path, weight in weights.items() if path[1:] == (2, 0))
    expected = -math.log(allowed / sum(weights.values())) / 2  # two words are labelled
    assert head.loss(scores, labels, words).item() == pytest.approx(expected, rel=1e-6)
    decoded = head.decode(scores, words)
    assert decoded.labels[0, :3].tolist() == list(max(weights, key=weights.__getitem__))
    for word, tag in itertools.product(range(3), range(3)):
        share = sum(weight for path, weight in weights.items() if path[word] == tag) / sum(weights.values())
        assert decoded.log_probs[0, word, tag].exp().item() == pytest.approx(share, abs=1e-9)
    best = decoded.labels[0, :3]
    assert decoded.confidences[0, :3].tolist() == pytest.approx(decoded.log_probs[0, range(3), best].exp().tolist())


def test_a_chain_at_its_start_is_a_softmax() -> None:
    crf, plain = free_chain(16).eval(), SoftmaxHead(16, 3, 0.0, seed=3).eval()
    states, words = torch.randn(2, 5, 16), rows(torch.ones(2, 5, dtype=torch.bool))
    assert torch.allclose(crf(states, words), plain(states, words), atol=1e-6)
    assert torch.equal(crf.decode(crf.scores(states), words).labels, plain.decode(plain.scores(states), words).labels)


def test_a_softmax_head_that_knows_its_tags_decodes_what_is_allowed() -> None:
    # I-X alone, B-X I-X, and a window that goes on within a sentence
    alone = [[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]]
    scores = torch.tensor([alone, [[0.0, 2.0, 0.0], [0.0, 1.0, 3.0]], alone])
    rows = Rows(torch.ones(3, 2, dtype=torch.bool), torch.tensor([True, True, False]))
    raw, valid = SoftmaxHead(4, 3, 0.0).eval(), SoftmaxHead(4, 3, 0.0, names=LABELS).eval()
    assert raw.decode(scores, rows).labels.tolist() == [[2, 0], [1, 2], [2, 0]]
    found = valid.decode(scores, rows)
    assert found.labels.tolist() == [[1, 0], [1, 2], [2, 0]]
    assert torch.equal(found.log_probs, raw.decode(scores, rows).log_probs)
    assert found.confidences[0, 0] == pytest.approx(torch.softmax(scores[0, 0], -1)[1].item())
    assert (raw.valid, valid.valid) == (False, True)
    assert raw.state_dict().keys() == valid.state_dict().keys()
