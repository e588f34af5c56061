from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.annotation import diversity as spreading
from sequst.annotation.diversity import NEAR_COPY, Highest, features, near_copies, spread_out
from sequst.corpus.sentence import Sentence


def greedy(scores: list[float], vectors: np.ndarray, count: int) -> list[int]:
    """The same with a matrix of all distances, word for word as the docstring has it."""
    centred = vectors - vectors.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    distances = 1.0 - unit @ unit.T
    plain = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    distances[1.0 - plain @ plain.T < NEAR_COPY] = 0.0
    taken = [int(np.argmax(scores))]
    while len(taken) < count:
        rest = [i for i in range(len(scores)) if i not in taken]
        taken.append(max(rest, key=lambda i: scores[i] * min(distances[i, j] for j in taken)))
    return taken


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_greedy_choice_over_all_distances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, vectors = rng.random(40).tolist(), rng.normal(size=(40, 6)) + 3.0
    assert spread_out(scores, vectors, 12, vectors) == greedy(scores, vectors, 12)


def test_by_hand() -> None:
    # four points on a circle around their mean: distances are 0 (itself), 1 (a quarter), 2 (opposite)
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert spread_out([1.0, 0.9, 0.5, 0.3], vectors, 4, vectors) == [0, 2, 1, 3]  # 0.9 x 1 < 0.5 x 2
    assert spread_out([1.0, 0.9, 0.4, 0.3], vectors, 4, vectors) == [0, 1, 2, 3]  # 0.9 x 1 > 0.4 x 2


def test_near_copies_come_last() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(10, 8))
    copies = np.concatenate([vectors, vectors + 1e-3 * rng.normal(size=(10, 8))])
    scores = [*[0.5] * 10, *[1.0] * 10]  # the copies have the higher scores
    first = spread_out(scores, copies, 10, copies)
    assert sorted(place % 10 for place in first) == list(range(10))
    assert sorted(spread_out(scores, copies, 20, copies)) == list(range(20))


def test_many_copies_of_one_are_one() -> None:
    """They make the mean, and what they differ from it in is noise."""
    rng = np.random.default_rng(2)
    others, one = rng.normal(size=(5, 32)), rng.normal(size=32)
    vectors = np.concatenate([others, one + 0.05 * rng.normal(size=(95, 32))])
    first = spread_out([*[0.5] * 5, *[1.0] * 95], vectors, 6, vectors)
    assert sorted(first)[:5] == [0, 1, 2, 3, 4]


def test_all_alike_nothing_left_and_none() -> None:
    ones, none = np.ones((3, 4)), np.zeros((0, 4))
    assert spread_out([0.2, 0.3, 0.1], ones, 2, ones) == [1, 0]  # no direction tells them apart
    assert spread_out([0.0, 0.0], np.eye(2), 9, np.eye(2)) == [0, 1]
    assert spread_out([], none, 3, none) == []


def copies_one_by_one(vectors: np.ndarray) -> list[int]:
    """Those that are near-copies of one before them, one after the other."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    first: list[int] = []
    for place in range(len(vectors)):
        if all(1.0 - unit[place] @ unit[other] >= NEAR_COPY for other in first):
            first.append(place)
    return [place for place in range(len(vectors)) if place not in first]


@pytest.mark.parametrize("block", [1, 4, 512])
def test_near_copies_are_those_found_one_by_one(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also chains: a copy of a copy that is far from the first is none."""
    monkeypatch.setattr(spreading, "BLOCK", block)
    angles = np.random.default_rng(3).random(40) * 3
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    found = np.flatnonzero(near_copies(vectors)).tolist()
    assert found == copies_one_by_one(vectors)
    assert 10 < len(found) < 40
    assert near_copies(np.zeros((0, 3))).tolist() == []


@given(st.permutations(range(60)), st.integers(1, 6), st.integers(1, 7), st.integers(1, 60), st.booleans())
def test_near_copies_crowd_out_nothing(scores: list[int], most: int, groups: int, count: int, twice: bool) -> None:
    """Some things of a few kinds, of which one each is enough: the best of every kind, then the best of the others, as many as
    there is room for; where few are offered, or no copy was set aside, all by their scores."""
    varied = Highest[int](most, lambda things: np.eye(groups)[[thing % groups for thing in things]])
    held = 0
    offered = list(enumerate(scores[:count]))
    for thing, score in [*offered, *offered] if twice else offered:
        varied.offer(score, thing, thing)
        held = max(held, len(varied._held) + len(varied._aside))
    by_score = sorted(offered, key=lambda each: -each[1])
    firsts = [
        min((place for place, (t, _) in enumerate(by_score) if t % groups == kind), default=None) for kind in range(groups)
    ]
    best = sorted(place for place in firsts if place is not None)
    rest = [place for place in range(len(by_score)) if place not in best]
    expected = [by_score[place][::-1] for place in (*best, *rest)][:most]
    found = varied.ranked()
    assert found == expected or (count <= most and sorted(found) == sorted(expected))
    assert held <= 3 * most


def test_near_copies_have_words_in_common() -> None:
    """To a tagger that knows nothing all sentences are the same; they are not."""
    lost = ("lost", "a", "bag", "in", "Oslo", ".")
    one, other, third = map(Sentence, [("Anna", *lost), ("Eve", *lost), ("we", "will", "meet", "her", "tomorrow", ".")])
    assert near_copies(features(np.ones((3, 4)), [one, other, third])).tolist() == [False, True, False]
    far = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert near_copies(features(far, [one, one, third])).tolist() == [False, False, False]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8))), st.integers(1, 5))
def test_the_highest_are_those_of_sorting_all_and_never_more(offers: list[tuple[int, int]], most: int) -> None:
    """Copies of a key have one score, as copies of a sentence nearly do."""
    score_of = {key: score for score, key in offers}
    highest = Highest[str](most)
    for place, (_, key) in enumerate(offers):
        highest.offer(score_of[key], key, f"{key} at {place}")
        assert len(highest._held) <= 2 * most
    firsts = {key: place for place, (_, key) in reversed(list(enumerate(offers)))}
    expected = sorted(firsts, key=lambda key: (-score_of[key], firsts[key]))[:most]
    found = highest.ranked()
    assert [score for score, _ in found] == [score_of[key] for key in expected]
    assert {thing.split()[0] for _, thing in found} == {str(key) for key in expected}


def test_a_copy_comes_in_only_where_the_other_is_gone() -> None:
    highest = Highest[str](1)
    highest.offer(1.0, "key", "first")
    highest.offer(5.0, "key", "copy")
    assert highest.ranked() == [(1.0, "first")]
    highest.offer(2.0, "other", "other")
    highest.offer(3.0, "key", "copy")
    assert highest.ranked() == [(3.0, "copy")]
