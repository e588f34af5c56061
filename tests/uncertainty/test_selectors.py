from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sequst.training.settings import SELECTORS
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.selectors import AllWords, SampledWords, WeighedOfEachClass, scores, selector_of


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


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.floats(0.05, 1.0), st.integers(0, 99))
def test_every_sentence_gives_its_share(sizes: list[int], share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    some = beliefs(rng.uniform(0.1, 1, n).tolist(), rng.uniform(0, 0.9, n).tolist(), sizes, rng.integers(0, 3, n).tolist())
    taken = np.bincount(some.sentence_of, SampledWords(share=share).select(some, rng))
    assert taken.tolist() == [max(1, round(share * size)) for size in sizes]
    assert AllWords().select(some, rng).all()


def test_words_are_drawn_as_often_as_their_weights_say() -> None:
    one = beliefs([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [3])
    rng = np.random.default_rng(0)
    single = sum(SampledWords(share=0.34).select(one, rng) for _ in range(20_000)) / 20_000
    assert single == pytest.approx([0.6, 0.3, 0.1], abs=0.015)
    # two without replacement: P(i) = w_i + sum_j w_j w_i / (1 - w_j)
    pairs = sum(SampledWords(share=0.67).select(one, rng) for _ in range(20_000)) / 20_000
    w = [0.6, 0.3, 0.1]
    expected = [w[i] + sum(w[j] * w[i] / (1 - w[j]) for j in range(3) if j != i) for i in range(3)]
    assert pairs == pytest.approx(expected, abs=0.015)


def test_weighed_words_by_hand() -> None:
    def weights(beliefs: Beliefs, *options: Any, **more: Any) -> NDArray[np.float64]:
        return WeighedOfEachClass(*options, **more).select(beliefs, np.random.default_rng(0))

    # scores 0.4, 0.4, 0.0, 0.3: a word of score 0 is not learnt, the others weigh 1 on average
    assert weights(TWO) == pytest.approx([12 / 11, 12 / 11, 0.0, 9 / 11])
    assert weights(TWO, 2.0, "confidence") == pytest.approx(np.array([0.64, 0.16, 0.81, 0.36]) * 4 / 1.97)
    assert weights(TWO, power=0.0).tolist() == [1.0, 1.0, 0.0, 1.0]
    assert weights(beliefs([0.5, 0.5], [2.0, 3.0], [2])).tolist() == [0.0, 0.0]
    # of class 0 scores 0.9 and 0.3, of class 1 0.2: 1 on average of each
    assert weights(beliefs([0.9, 0.3, 0.2], [0.0] * 3, [3], [0, 0, 1])) == pytest.approx([1.5, 0.5, 1.0])


def test_weights_are_what_draws_of_single_words_come_to() -> None:
    one = beliefs([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [3])
    rng = np.random.default_rng(0)
    often = sum(SampledWords(share=0.34).select(one, rng) for _ in range(20_000)) / 20_000
    assert WeighedOfEachClass().select(one, rng) / 3 == pytest.approx(often, abs=0.015)


def test_every_selector_of_the_settings_selects_something() -> None:
    kinds = {name: selector_of(name, 0.5, 1.0) for name in SELECTORS}
    assert all(selector.select(TWO, np.random.default_rng(0)).any() for selector in kinds.values())
    assert len({type(selector) for selector in kinds.values()}) == len(SELECTORS)


def test_a_power_sharpens_the_draw() -> None:
    one = beliefs([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [3])
    rng = np.random.default_rng(0)
    squared = sum(SampledWords(share=0.34, power=2.0).select(one, rng) for _ in range(20_000)) / 20_000
    assert squared == pytest.approx(np.array([0.36, 0.09, 0.01]) / 0.46, abs=0.015)
    even = sum(SampledWords(share=0.34, power=0.0).select(one, rng) for _ in range(20_000)) / 20_000
    assert even == pytest.approx([1 / 3] * 3, abs=0.015)
