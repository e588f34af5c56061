from __future__ import annotations

import numpy as np
import pytest

from sequst.tagger.trust import Trust
from sequst.uncertainty.beliefs import Beliefs
from sequst.uncertainty.leaving_out import doubtful_words, judged_beliefs, outside

NAMES = ["O", "B-X", "I-X", "B-Y", "I-Y"]
# two sentences: X X O, and Y Y X (the last two entities side by side)
SOME = Beliefs(
    labels=np.array([1, 2, 0, 3, 4, 1]),
    plain_confidence=np.full(6, 0.5, dtype=np.float32),
    confidence=np.array([0.9, 0.5, 0.8, 0.2, 0.4, 0.6], dtype=np.float32),
    information_gain=np.zeros(6, dtype=np.float32),
    starts=np.array([0, 3, 6]),
)


def test_entities_are_judged_one_by_one() -> None:
    found = judged_beliefs(SOME, NAMES, [("B-X", "I-X", "O"), ("B-Y", "O", "B-X")])
    assert found.types == ["X", "Y", "X"]
    assert found.confidences == pytest.approx([0.7, 0.3, 0.6])
    assert found.correct == [True, False, True]
    # an entity does not go on into the next sentence, and a right place with another type is wrong
    other = judged_beliefs(SOME, NAMES, [("B-Y", "I-Y", "O"), ("B-Y", "I-Y", "O")])
    assert other.correct == [False, True, False]


def test_the_words_of_doubtful_entities() -> None:
    trust = Trust(least=0.5)
    assert doubtful_words(SOME, NAMES, trust).tolist() == [False, False, False, True, True, False]
    assert doubtful_words(SOME, NAMES, trust._replace(types=(("X", -9.0),))).tolist() == [True, True, False, True, True, True]
    assert not doubtful_words(SOME, NAMES, Trust()).any()


def test_outside() -> None:
    words = doubtful_words(SOME, NAMES, Trust(least=0.5))
    found = outside(SOME, words, NAMES.index("O"))
    assert found.labels.tolist() == [1, 2, 0, 0, 0, 1]
    assert found.confidence == pytest.approx([0.9, 0.5, 0.8, 0.8, 0.6, 0.6])
    assert found.confidence.dtype == np.float32
    assert SOME.labels.tolist() == [1, 2, 0, 3, 4, 1]


def test_no_words_at_all() -> None:
    nothing = Beliefs(*(np.zeros(0, dtype=kind) for kind in (np.int64, *[np.float32] * 3)), starts=np.zeros(1, dtype=np.int64))
    assert judged_beliefs(nothing, NAMES, []).types == []
    assert doubtful_words(nothing, NAMES, Trust(least=0.5)).tolist() == []
