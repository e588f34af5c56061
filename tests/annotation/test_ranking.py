from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.annotation.ranking import Highest, sentence_score


def test_three_words_decide() -> None:
    assert sentence_score([0.1, 0.5, 0.0, 0.3, 0.4]) == pytest.approx((0.5 + 0.4 + 0.3) / 3)
    assert sentence_score([0.9]) == pytest.approx(0.3)  # one odd word is a third of three
    assert sentence_score([]) == 0.0


def test_neither_length_nor_one_odd_word_decides() -> None:
    known, odd, hard = [0.01] * 60, [0.01, 0.6, 0.01], [0.3, 0.3, 0.3, 0.01]
    assert sentence_score(known) < sentence_score(odd) < sentence_score(hard)
    assert sentence_score(hard) == pytest.approx(sentence_score([*hard, *known]))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8))), st.integers(1, 5))
def test_the_highest_are_those_of_sorting_all_and_never_more(offers: list[tuple[int, int]], most: int) -> None:
    """Copies of a key have one score, as copies of a sentence nearly do."""
    score_of = {key: score for score, key in offers}
    highest = Highest[str](most)
    for place, (_, key) in enumerate(offers):
        highest.offer(score_of[key], key, f"{key} at {place}")
        assert len(highest) <= most
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
