from __future__ import annotations

from collections import Counter

import pytest

from sequst.annotation.draw import Draw, shape
from sequst.annotation.judging import for_judging, interleave, judging_count
from sequst.corpus.sentence import Sentence


def test_the_number_for_judging_by_hand() -> None:
    counts = {(50, 0.2): 10, (3, 0.2): 1, (2, 0.2): 0, (7, 0.2): 1, (8, 0.2): 2, (5, 0.5): 3, (4, 0.0): 0, (6, 1.0): 6}
    assert {given: judging_count(*given) for given in counts} == counts


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 50])
@pytest.mark.parametrize("marked", [0, 1, 2, 3, 7, 50])
def test_they_are_mixed_evenly(count: int, marked: int) -> None:
    """Both keep their order, and every beginning has its share of those for judging, give or take one."""
    mixed = interleave([("c", i) for i in range(count)], [("j", i) for i in range(marked)])
    for kind, size in (("c", count), ("j", marked)):
        assert [each for each in mixed if each[0] == kind] == [(kind, i) for i in range(size)]
    for length in range(1, count + marked + 1):
        found = sum(kind == "j" for kind, _ in mixed[:length])
        assert abs(found - length * marked / (count + marked)) < 1


def test_every_fifth() -> None:
    assert "".join(interleave("cccccccc", "jj")) == "ccjccccjcc"


def drawn(lines: list[str], most: int, seed: int) -> list[str]:
    draw = Draw(most, seed)
    assert list(draw.watch(Sentence(tuple(line)) for line in lines)) == [Sentence(tuple(line)) for line in lines]
    return ["".join(sentence.words) for sentence in draw.drawn()]


def test_every_different_sentence_is_as_likely_as_another() -> None:
    """Chi-squared by hand: 2,000 draws of 2 of 10, however often a sentence stands in the stream."""
    lines = [letter * (1 + i) for i, letter in enumerate("abcdefghij") for _ in range(1 + i * i)]
    found, pairs = Counter[str](), Counter[str]()
    for seed in range(2000):
        two = drawn(lines, 2, seed)
        found.update(two)
        pairs[two[0]] += 1  # the first alone is a draw of one
    assert sum((found[line] - 400) ** 2 / 400 for line in set(lines)) * 9 / 8 < 27.9  # 99.9th percentile, 9 degrees of freedom
    assert sum((pairs[line] - 200) ** 2 / 200 for line in set(lines)) < 27.9


def test_neither_order_nor_copies_change_a_draw() -> None:
    lines = [f"{i:03}" for i in range(200)]
    assert drawn(lines, 7, 5) == drawn(lines[::-1] * 3, 7, 5) != drawn(lines, 7, 6)
    assert drawn(lines, 3, 5) == drawn(lines, 7, 5)[:3]
    assert sorted(drawn(lines, 300, 5)) == lines
    assert drawn(lines, 0, 5) == []


def test_lines_that_differ_in_numbers_count_once_where_their_shape_is_the_key() -> None:
    draw = Draw(10, 1, shape)
    for text in ("Flight 12 leaves", "flight 7 Leaves", "Oslo"):
        draw.offer(Sentence(tuple(text.split())))
    assert sorted(sentence.words for sentence in draw.drawn()) == [("Flight", "12", "leaves"), ("Oslo",)]


def test_of_a_small_pool_a_share_is_for_judging_not_all() -> None:
    pool = [Sentence((word,), ("O",)) for word in "abcde"]
    marked = for_judging(pool, [("a",), ("f",)], 50, 0.2)
    assert marked == [Sentence(("a",), None, judging=True)]
    assert len(for_judging(pool, [], 5, 1.0)) == 5
