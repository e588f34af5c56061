from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sequst.corpus.sampling import Split
from sequst.tagger.tagger import Tagger
from sequst.tagger.transitions import count_transitions, kind_of
from sequst.uncertainty.beliefs import Beliefs, form_beliefs
from sequst.uncertainty.ensembles import best_valid, mixture, with_drawn_labels, with_labels
from sequst.uncertainty.information import posterior


def of_passes(passes: torch.Tensor) -> Beliefs:
    """The beliefs that passes (P, N, C) of log probabilities add up to."""
    mean, gain = (each.float().numpy() for each in posterior([passes]))
    confidence = mean.max(-1)
    return Beliefs(mean.argmax(-1), confidence, confidence, gain, np.array([0, len(mean)]), mean)


def test_two_that_disagree_by_hand() -> None:
    sure = np.array([[1.0, 0.0]], dtype=np.float32)
    one, other = (
        Beliefs(np.array([label]), np.ones(1, np.float32), np.ones(1, np.float32), np.zeros(1, np.float32), np.array([0, 1]), p)
        for label, p in ((0, sure), (1, sure[:, ::-1]))
    )
    found = mixture([one, one, one, other])
    assert found.labels.tolist() == [0]
    assert found.confidence.tolist() == [0.75]
    # each is certain, so all of the entropy of (3/4, 1/4) is disagreement
    assert found.information_gain[0] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert found.probabilities is not None
    assert found.probabilities.tolist() == [[0.75, 0.25]]


def test_it_is_as_if_all_passes_were_those_of_one() -> None:
    passes = torch.log_softmax(2.0 * torch.randn(12, 40, 5, generator=torch.Generator().manual_seed(1)), -1)
    whole, parts = of_passes(passes), [of_passes(passes[:6]), of_passes(passes[6:])]
    found = mixture(parts)
    assert found.labels.tolist() == whole.labels.tolist()
    assert found.confidence == pytest.approx(whole.confidence, abs=1e-6)
    assert found.information_gain == pytest.approx(whole.information_gain, abs=1e-5)
    assert (found.information_gain > parts[0].information_gain).mean() > 0.5


def test_of_taggers(tiny_encoder: str, split: Split) -> None:
    taggers = [Tagger.from_encoder(tiny_encoder, ["O", "B-X", "I-X"], seed=seed) for seed in (1, 2)]
    members = [form_beliefs(tagger, split.dev, passes=3, seed=1, probabilities=True) for tagger in taggers]
    found, alone = mixture(members), mixture(members[:1])
    assert found.information_gain.mean() > max(member.information_gain.mean() for member in members)
    assert alone.probabilities == pytest.approx(members[0].probabilities)
    assert alone.information_gain == pytest.approx(members[0].information_gain, abs=1e-5)
    assert found.starts.tolist() == members[0].starts.tolist()


NAMES = ("O", "B-A", "I-A", "B-B", "I-B")


def allowed(path: tuple[int, ...]) -> bool:
    tags = [NAMES[label] for label in path]
    return all(not tag.startswith("I-") or before[2:] == tag[2:] for before, tag in itertools.pairwise(("O", *tags)))


def of(probabilities: NDArray[np.float32], starts: list[int]) -> Beliefs:
    best, sure = probabilities.argmax(-1), probabilities.max(-1)
    return Beliefs(best, sure, sure, np.zeros(len(best), np.float32), np.array(starts), probabilities)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 99), st.booleans())
def test_the_best_valid_path_is_that_of_all_paths(sizes: list[int], seed: int, weighs: bool) -> None:
    transitions = count_transitions([("O", "B-A", "I-A", "B-B"), ("B-B", "O", "O")], NAMES) if weighs else {}

    def worth(path: tuple[int, ...], logs: NDArray[np.float64]) -> float:
        kinds = (kind_of(NAMES[before], NAMES[after]) for before, after in itertools.pairwise(path))
        return sum(logs[i, label] for i, label in enumerate(path)) + sum(transitions.get(kind or "", 0.0) for kind in kinds)

    probabilities = np.random.default_rng(seed).dirichlet([0.5] * len(NAMES), sum(sizes)).astype(np.float32)
    starts = [0, *itertools.accumulate(sizes)]
    found = best_valid(of(probabilities, starts), NAMES, transitions)
    for begin, end in itertools.pairwise(starts):
        logs = np.log(np.maximum(probabilities[begin:end], 1e-37)).astype(np.float64)
        paths = [path for path in itertools.product(range(len(NAMES)), repeat=end - begin) if allowed(path)]
        own = tuple(found[begin:end].tolist())
        assert allowed(own)
        assert worth(own, logs) == pytest.approx(max(worth(path, logs) for path in paths), abs=1e-4)


def test_labels_of_several_teachers_are_repaired_or_drawn() -> None:
    p = np.array([[0.1, 0.2, 0.7, 0.0, 0.0], [0.6, 0.0, 0.4, 0.0, 0.0]], dtype=np.float32)  # I-A, which nothing begins, then O
    some = of(p, [0, 2])
    repaired = with_labels(some, best_valid(some, NAMES, {}))
    assert repaired.labels.tolist() == [1, 0]  # B-A O at 0.12, before B-A I-A at 0.08 and O O at 0.06
    assert repaired.confidence == pytest.approx([0.2, 0.6])
    drawn = [with_drawn_labels(some, seed) for seed in range(300)]
    assert np.mean([each.labels[0] == 2 for each in drawn]) == pytest.approx(0.7, abs=0.1)
    assert all(each.best.tolist() == [2, 0] for each in drawn)
    assert all(each.confidence[0] == p[0, each.labels[0]] for each in drawn)


def test_drawn_labels_come_as_often_as_they_are_probable() -> None:
    p = np.array([0.7, 0.2, 0.1, 0.0, 0.0], dtype=np.float32)
    drawn = with_drawn_labels(of(np.tile(p, (30_000, 1)), [0, 30_000]), 1)
    assert np.bincount(drawn.labels, minlength=5) / 30_000 == pytest.approx(p, abs=0.01)
    assert np.array_equal(drawn.labels, with_drawn_labels(of(np.tile(p, (30_000, 1)), [0, 30_000]), 1).labels)
    assert drawn.confidence == pytest.approx(p[drawn.labels])
    assert drawn.plain_confidence == pytest.approx(p[drawn.labels])
    sure = np.tile(np.array([0.0, 1.0, 0.0], dtype=np.float32), (50, 1))
    assert (with_drawn_labels(of(sure, [0, 50]), 1).labels == 1).all()
