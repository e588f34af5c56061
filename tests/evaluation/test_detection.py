from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.evaluation.detection import auroc, risk_coverage


def test_by_hand() -> None:
    scores, right = [0.9, 0.8, 0.8, 0.1], [True, True, False, False]
    # pairs of right and wrong: 0.9 beats both, 0.8 ties with 0.8 and beats 0.1
    assert auroc(scores, right) == pytest.approx(3.5 / 4)
    # errors among the first one, two (half of one), three and four
    assert risk_coverage(scores, right) == pytest.approx(100 * (0 + 0.25 + 1 / 3 + 0.5) / 4)


def test_without_one_of_each() -> None:
    assert auroc([0.1, 0.2], [True, True]) is None
    assert auroc([], []) is None
    assert risk_coverage([], []) is None
    assert risk_coverage([0.1, 0.2], [True, True]) == 0.0
    assert risk_coverage([0.1, 0.2], [False, False]) == 100.0


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=12))
def test_as_counted_pair_by_pair(pairs: list[tuple[int, bool]]) -> None:
    scores, right = zip(*pairs, strict=True)
    wins = [
        1.0 if a > b else 0.5 if a == b else 0.0 for (a, good), (b, bad) in itertools.product(pairs, pairs) if good and not bad
    ]
    found = auroc(scores, right)
    assert (found is None) == (not wins)
    if wins:
        assert found == pytest.approx(np.mean(wins))
    # the mean over all orders of equals
    risks = []
    for seed in range(300):
        order = np.lexsort((np.random.default_rng(seed).random(len(pairs)), -np.array(scores)))
        wrong = ~np.array(right)[order]
        risks.append(100 * (np.cumsum(wrong) / np.arange(1, len(pairs) + 1)).mean())
    assert risk_coverage(scores, right) == pytest.approx(np.mean(risks), abs=6.0)
