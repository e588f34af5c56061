from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sequst.integrations.onnx.decoding import Transitions, best_path, decode, log_marginals

RANDOM = np.random.default_rng(4)
B, W, C = 5, 4, 3
WORDS = np.arange(W) < np.array([4, 1, 3, 2, 4])[:, None]
OPENS = np.array([True, True, False, False, False])
SCORES = RANDOM.normal(size=(B, W, C)) * 2
TRANSITIONS = Transitions(*(RANDOM.normal(size=shape) * 2 for shape in ((C, C), (C,), (C,), (C,))))


def enumerated(row: int) -> dict[tuple[int, ...], float]:
    """The score of every path of a row."""
    length = int(WORDS[row].sum())
    first = TRANSITIONS.start if OPENS[row] else TRANSITIONS.inside
    return {
        path: float(
            first[path[0]]
            + sum(SCORES[row, i, tag] for i, tag in enumerate(path))
            + sum(TRANSITIONS.between[one, other] for one, other in itertools.pairwise(path))
            + TRANSITIONS.end[path[-1]]
        )
        for path in itertools.product(range(C), repeat=length)
    }


def test_paths_and_marginals_are_those_of_an_enumeration() -> None:
    labels = best_path(SCORES, WORDS, OPENS, TRANSITIONS)
    marginals = np.exp(log_marginals(SCORES, WORDS, OPENS, TRANSITIONS))
    for row in range(B):
        scores = enumerated(row)
        best = max(scores, key=lambda path: scores[path])
        assert tuple(labels[row, : len(best)]) == best
        assert not labels[row, len(best) :].any()
        total = sum(np.exp(score) for score in scores.values())
        for word, tag in itertools.product(range(len(best)), range(C)):
            share = sum(np.exp(score) for path, score in scores.items() if path[word] == tag) / total
            assert marginals[row, word, tag] == pytest.approx(share)


def test_three_ways_to_decode_by_hand() -> None:
    """Two words, two labels of which the second must not come first, and not after the first."""
    scores: NDArray[np.float32] = np.log(np.array([[[0.4, 0.6], [0.3, 0.7]]], dtype=np.float32))
    words, opens = np.ones((1, 2), dtype=bool), np.array([True])
    never = -1e9
    rule = Transitions(np.array([[0, never], [0, 0]]), np.array([0, never]), np.zeros(2), np.zeros(2))
    labels, sure = decode(scores + 5, words, opens, None, marginal=False)
    assert labels.tolist() == [[1, 1]]
    assert sure[0] == pytest.approx([0.6, 0.7])
    labels, sure = decode(scores + 5, words, opens, rule, marginal=False)
    assert labels.tolist() == [[0, 0]]
    assert sure[0] == pytest.approx([0.4, 0.3])  # as the words have it, whatever is allowed
    labels, sure = decode(scores, words, ~opens, rule, marginal=False)
    assert labels.tolist() == [[1, 1]]  # inside a sentence an entity may go on
    labels, sure = decode(scores, words, opens, rule, marginal=True)
    assert sure[0] == pytest.approx([1.0, 1.0])  # one path alone is allowed
    labels, sure = decode(scores, words, ~opens, rule, marginal=True)
    paths = {(0, 0): 0.12, (1, 0): 0.18, (1, 1): 0.42}
    assert sure[0] == pytest.approx([0.60 / sum(paths.values()), 0.42 / sum(paths.values())])


def test_transitions_of_other_labels_are_refused(tmp_path: Path) -> None:
    TRANSITIONS.save(tmp_path / "t")
    found = Transitions.load(tmp_path / "t", C)
    assert all((one == other).all() for one, other in zip(found, TRANSITIONS, strict=True))
    with pytest.raises(ValueError, match="not those of 5 labels"):
        Transitions.load(tmp_path / "t", 5)
    TRANSITIONS._replace(end=np.full(C, np.nan)).save(tmp_path / "t")
    with pytest.raises(ValueError, match="no finite numbers"):
        Transitions.load(tmp_path / "t", C)
