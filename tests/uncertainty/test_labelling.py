from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sequst.tagger.transitions import count_transitions, kind_of
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.labelling import Labelling, best_valid, sharpened

NAMES = ("O", "B-A", "I-A", "B-B", "I-B")


def allowed(path: tuple[int, ...]) -> bool:
    tags = [NAMES[label] for label in path]
    return all(not tag.startswith("I-") or before[2:] == tag[2:] for before, tag in itertools.pairwise(("O", *tags)))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 99), st.booleans())
def test_the_best_valid_path_is_that_of_all_paths(sizes: list[int], seed: int, weighs: bool) -> None:
    transitions = count_transitions([("O", "B-A", "I-A", "B-B"), ("B-B", "O", "O")], NAMES) if weighs else {}

    def worth(path: tuple[int, ...], logs: NDArray[np.float64]) -> float:
        kinds = (kind_of(NAMES[before], NAMES[after]) for before, after in itertools.pairwise(path))
        return sum(logs[i, label] for i, label in enumerate(path)) + sum(transitions.get(kind or "", 0.0) for kind in kinds)

    probabilities = np.random.default_rng(seed).dirichlet([0.5] * len(NAMES), sum(sizes)).astype(np.float32)
    starts = np.array([0, *itertools.accumulate(sizes)])
    found = best_valid(probabilities, starts, NAMES, transitions)
    for begin, end in itertools.pairwise(starts):
        logs = np.log(np.maximum(probabilities[begin:end], 1e-37)).astype(np.float64)
        paths = [path for path in itertools.product(range(len(NAMES)), repeat=end - begin) if allowed(path)]
        scores = [worth(path, logs) for path in paths]
        own = tuple(found[begin:end].tolist())
        assert allowed(own)
        assert worth(own, logs) == pytest.approx(max(scores), abs=1e-4)


def test_soft_labels_are_sharpened_and_stay_probabilities() -> None:
    p = np.array([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0]], dtype=np.float32)
    assert sharpened(p, 1.0) is p
    assert sharpened(p, 2.0)[0] == pytest.approx(np.array([0.36, 0.09, 0.01]) / 0.46)
    assert sharpened(p, 200.0).tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    flat = sharpened(np.full((1, 100), 0.01, dtype=np.float32), 300.0)  # 0.01^300 is nothing to a float
    assert flat.sum() == pytest.approx(1.0, abs=1e-5)


def of(probabilities: list[list[float]]) -> Beliefs:
    p = np.array(probabilities, dtype=np.float32)
    labels = p.argmax(-1)
    return Beliefs(labels, p.max(-1), p.max(-1), np.zeros(len(p), np.float32), np.array([0, len(p)]), p)


def test_each_kind() -> None:
    some = of([[0.1, 0.2, 0.7, 0.0, 0.0], [0.6, 0.0, 0.4, 0.0, 0.0]])  # I-A, which nothing begins, then O
    hard, valid = Labelling("hard"), Labelling("hard", valid=True)
    assert hard.apply(some, NAMES, 1, mixed=True) is some
    nothing = np.zeros(2, dtype=np.bool_)
    assert hard.targets(some, nothing).tolist() == [2, 0]
    assert valid.apply(some, NAMES, 1, mixed=False) is some  # a teacher alone has decoded its own
    repaired = valid.apply(some, NAMES, 1, mixed=True)
    assert repaired.labels.tolist() == [1, 0]  # B-A O at 0.12, before B-A I-A at 0.08 and O O at 0.06
    assert repaired.confidence == pytest.approx([0.2, 0.6])
    assert Labelling("mean", sharpness=2.0).targets(some, nothing)[0] == pytest.approx(
        np.array([0.01, 0.04, 0.49, 0, 0]) / 0.54
    )
    drawn = [Labelling("sampled").apply(some, NAMES, seed, mixed=True) for seed in range(300)]
    assert np.mean([each.labels[0] == 2 for each in drawn]) == pytest.approx(0.7, abs=0.1)
    assert all(each.best.tolist() == [2, 0] for each in drawn)
    assert all(each.confidence[0] == some.probabilities[0, each.labels[0]] for each in drawn)  # type: ignore[index]


def test_labels_are_weighed() -> None:
    some = of([[0.1, 0.2, 0.7, 0.0, 0.0], [0.6, 0.0, 0.4, 0.0, 0.0]])
    all_, weights = np.ones(2, dtype=np.bool_), np.array([0.5, 1.5])
    assert Labelling("hard").targets(some, all_, weights, 5).tolist() == [[0, 0, 0.5, 0, 0], [1.5, 0, 0, 0, 0]]
    assert Labelling("mean").targets(some, all_, weights, 5) == pytest.approx(some.probabilities * weights[:, None])  # type: ignore[operator]


def test_what_each_kind_needs_of_a_teacher() -> None:
    assert [Labelling(kind).needs(20, mixed=False) for kind in ("hard", "sampled", "soft", "mean")] == [
        "none", "none", "plain", "mean",
    ]  # fmt: skip
    assert [Labelling(kind).needs(20, mixed=True) for kind in ("hard", "soft")] == ["mean", "mean"]
    assert Labelling("hard").needs(0, mixed=True) == "plain"


def test_the_rest_is_learnt_as_the_passes_see_it() -> None:
    some = of([[0.1, 0.2, 0.7, 0.0, 0.0], [0.6, 0.0, 0.4, 0.0, 0.0]])
    first = np.array([True, False])
    labelling = Labelling("hard", sharpness=2.0, rest="mean")
    found = labelling.targets(some, first)
    assert found[0].tolist() == [0, 0, 1, 0, 0]  # selected: its label, and nothing else
    assert found[1] == pytest.approx(np.array([0.36, 0, 0.16, 0, 0]) / 0.52)
    assert labelling.needs(20, mixed=False) == "mean"
    assert labelling.soft
    assert labelling.learns_rest
    assert not Labelling("hard").learns_rest
    assert not Labelling("hard").soft
