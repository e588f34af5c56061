from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.mentions import Mention
from sequst.corpus.sentence import Sentence
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import (
    SELECTORS,
    AllWords,
    SampledOfEachClass,
    SampledWords,
    TopOfEachClass,
    TopWords,
    WeighedOfEachClass,
    WeighedWords,
    believed_mentions,
    scores,
    units,
)


def beliefs(confidence: list[float], gain: list[float], sizes: list[int], labels: list[int] | None = None) -> Beliefs:
    as_floats = np.array(confidence, dtype=np.float32)
    labelled = np.array(labels if labels is not None else [0] * len(confidence), dtype=np.int64)
    return Beliefs(
        labelled, as_floats, as_floats, np.array(gain, dtype=np.float32), np.array([0, *itertools.accumulate(sizes)])
    )


TWO = beliefs([0.8, 0.4, 0.9, 0.6], [0.5, 0.0, 1.5, 0.5], [2, 2])


def test_weights_by_hand() -> None:
    # scores 0.8 * 0.5, 0.4 * 1 | 0.9 * 0, 0.6 * 0.5
    assert scores(TWO, "both") == pytest.approx([0.4, 0.4, 0.0, 0.3])
    assert scores(TWO, "confidence") == pytest.approx([0.8, 0.4, 0.9, 0.6])
    assert scores(TWO, "certainty") == pytest.approx([0.5, 1.0, 0.0, 0.5])
    hopeless = beliefs([0.5, 0.5], [2.0, 3.0], [2])
    assert not SampledWords().select(hopeless, np.random.default_rng(0)).any()


def test_an_entity_is_trusted_as_the_worst_of_its_words() -> None:
    names = ["O", "B-X", "I-X", "B-Y"]
    found = beliefs([0.8, 0.4, 0.9, 0.6, 0.5], [0.5, 0.0, 0.0, 0.5, 0.2], [3, 2], [1, 2, 0, 3, 3])
    sentences = [Sentence(("a", "b", "c")), Sentence(("d", "e"))]

    def mentions(selector: SampledWords | AllWords) -> list[Mention]:
        found_ = believed_mentions(found, sentences, names, selector)
        return [mention._replace(weight=round(mention.weight, 6)) for mention in found_]

    assert mentions(SampledWords()) == [Mention("X", ("a", "b"), 0.4), Mention("Y", ("d",), 0.3), Mention("Y", ("e",), 0.4)]
    assert [mention.weight for mention in mentions(SampledWords(weight="confidence", power=2.0))] == [0.16, 0.36, 0.25]
    assert [mention.weight for mention in mentions(AllWords())] == [1.0, 1.0, 1.0]
    assert not list(believed_mentions(beliefs([0.5], [0.1], [1], [0]), [Sentence(("a",))], names, AllWords()))
    drawn = dataclasses.replace(beliefs([0.5], [0.1], [1], [1]), drawn_from=np.array([0]))
    assert not list(believed_mentions(drawn, [Sentence(("a",))], names, AllWords()))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.floats(0.05, 1.0), st.integers(0, 99))
def test_every_sentence_gives_its_share(sizes: list[int], share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    some = beliefs(rng.uniform(0.1, 1, n).tolist(), rng.uniform(0, 0.9, n).tolist(), sizes, rng.integers(0, 3, n).tolist())
    for selector in (SampledWords(share), TopWords(share)):
        mask = selector.select(some, rng)
        taken = np.bincount(some.sentence_of, mask)
        assert taken.tolist() == [max(1, round(share * size)) for size in sizes]
    for selector in (SampledOfEachClass(share), TopOfEachClass(share)):
        by_class = selector.select(some, rng)
        for label in np.unique(some.labels):
            members = some.labels == label
            assert by_class[members].sum() == max(1, round(share * members.sum()))
    assert AllWords().select(some, rng).all()


def test_words_are_drawn_as_often_as_their_weights_say() -> None:
    one = beliefs([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [3])
    rng = np.random.default_rng(0)
    single = sum(SampledWords(0.34).select(one, rng) for _ in range(20_000)) / 20_000
    assert single == pytest.approx([0.6, 0.3, 0.1], abs=0.015)
    # two without replacement: P(i) = w_i + sum_j w_j w_i / (1 - w_j)
    pairs = sum(SampledWords(0.67).select(one, rng) for _ in range(20_000)) / 20_000
    w = [0.6, 0.3, 0.1]
    expected = [w[i] + sum(w[j] * w[i] / (1 - w[j]) for j in range(3) if j != i) for i in range(3)]
    assert pairs == pytest.approx(expected, abs=0.015)


def test_top_by_hand() -> None:
    rng = np.random.default_rng(0)
    assert TopWords(0.5).select(TWO, rng).tolist() == [True, False, False, True]
    assert TopWords(0.5, "certainty").select(TWO, rng).tolist() == [False, True, False, True]
    # ranking over all words would take the three of class 0 first
    labels = beliefs([0.99, 0.98, 0.97, 0.4, 0.3], [0.0] * 5, [5], [0, 0, 0, 1, 1])
    assert TopOfEachClass(0.5).select(labels, rng).tolist() == [True, True, False, True, False]


def test_weighed_words_by_hand() -> None:
    # scores 0.4, 0.4, 0.0, 0.3: what is not trusted at all is not learnt, the others weigh 1 on average
    weighed = WeighedWords()
    assert weighed.select(TWO, np.random.default_rng(0)).tolist() == [True, True, False, True]
    assert weighed.weights(TWO) == pytest.approx([12 / 11, 12 / 11, 0.0, 9 / 11])
    assert WeighedWords("confidence", 2.0).weights(TWO) == pytest.approx(np.array([0.64, 0.16, 0.81, 0.36]) * 4 / 1.97)
    assert WeighedWords(power=0.0).weights(TWO).tolist() == [1.0, 1.0, 0.0, 1.0]
    entity = beliefs([0.8, 0.4, 0.9], [0.0] * 3, [3], [1, 2, 0])
    assert WeighedWords(unit="entity", names=("O", "B-X", "I-X")).weights(entity) == pytest.approx(
        np.array([0.4, 0.4, 0.9]) * 3 / 1.7
    )
    hopeless = beliefs([0.5, 0.5], [2.0, 3.0], [2])
    assert not weighed.select(hopeless, np.random.default_rng(0)).any()
    assert weighed.weights(hopeless).tolist() == [0.0, 0.0]
    # of class 0 scores 0.9 and 0.3, of class 1 0.2: 1 on average of each
    classes = beliefs([0.9, 0.3, 0.2], [0.0] * 3, [3], [0, 0, 1])
    assert WeighedOfEachClass().weights(classes) == pytest.approx([1.5, 0.5, 1.0])
    two = beliefs([0.8, 0.4, 0.6], [0.0] * 3, [3], [1, 2, 1])  # an entity of two words, and one of one
    whole = WeighedOfEachClass(unit="entity", names=("O", "B-X", "I-X")).weights(two)
    assert whole == pytest.approx(np.array([0.4, 0.4, 0.6]) * 3 / 1.4)
    doubted = dataclasses.replace(TWO, doubtful=np.array([False, True, False, False]))
    assert weighed.weights(doubted) == pytest.approx([8 / 7, 0.0, 0.0, 6 / 7])
    assert all(make().weights(TWO) is None for name, make in SELECTORS.items() if not name.startswith("weighed"))


def test_weights_are_what_draws_of_single_words_come_to() -> None:
    one = beliefs([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [3])
    rng = np.random.default_rng(0)
    often = sum(SampledWords(0.34).select(one, rng) for _ in range(20_000)) / 20_000
    assert WeighedWords().weights(one) / 3 == pytest.approx(often, abs=0.015)


def test_registered_by_name_with_defaults_that_select_something() -> None:
    for make in SELECTORS.values():
        assert make().select(TWO, np.random.default_rng(0)).any()


NAMES = ("O", "B-A", "I-A", "B-B", "I-B")


def test_an_entity_is_taken_whole_or_not_at_all() -> None:
    # a B-A of three words whose worst is 0.2, a word outside, an I-B that nothing began; then a sentence that goes on with I-A
    tags = [1, 2, 2, 0, 4, 2, 0]
    some = beliefs([0.9, 0.2, 0.9, 0.5, 0.3, 0.1, 0.8], [0.0] * 7, [5, 2], tags)
    assert units(some, NAMES).tolist() == [0, 3, 4, 5, 6]
    taken = TopWords(0.4, unit="entity", names=NAMES).select(some, np.random.default_rng(0))
    assert taken.tolist() == [False, False, False, True, True, False, True]
    more = TopWords(0.6, unit="entity", names=NAMES).select(some, np.random.default_rng(0))
    assert more.tolist() == [True, True, True, True, True, False, True]  # three words of five: the entity is there at the third


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.floats(0.05, 1.0), st.integers(0, 99))
def test_no_entity_is_cut(sizes: list[int], share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    some = beliefs(rng.uniform(0.1, 1, n).tolist(), rng.uniform(0, 0.9, n).tolist(), sizes, rng.integers(0, 5, n).tolist())
    firsts = units(some, NAMES)
    for kind in (SampledWords, TopWords, SampledOfEachClass, TopOfEachClass):
        mask = kind(share, unit="entity", names=NAMES).select(some, rng)
        assert all(len(set(part.tolist())) == 1 for part in np.split(mask, firsts[1:]))
    whole = SampledWords(share, unit="entity", names=NAMES).select(some, rng)
    taken, longest = np.bincount(some.sentence_of, whole), np.diff(firsts, append=n).max()
    wanted = np.array([max(1, round(share * size)) for size in sizes])
    assert (taken >= wanted).all()
    assert (taken < wanted + longest).all()


def test_a_power_sharpens_the_draw() -> None:
    one = beliefs([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [3])
    rng = np.random.default_rng(0)
    squared = sum(SampledWords(0.34, power=2.0).select(one, rng) for _ in range(20_000)) / 20_000
    assert squared == pytest.approx(np.array([0.36, 0.09, 0.01]) / 0.46, abs=0.015)
    even = sum(SampledWords(0.34, power=0.0).select(one, rng) for _ in range(20_000)) / 20_000
    assert even == pytest.approx([1 / 3] * 3, abs=0.015)
