"""Cohen's kappa against numbers worked by hand and scikit-learn."""

from __future__ import annotations

import math
import random

import pytest

from sequst.annotation.agreement import agreement
from sequst.corpus.generated import generate

Tags = tuple[str, ...]
cohen_kappa_score = pytest.importorskip("sklearn.metrics").cohen_kappa_score


def types_of_words(tags: Tags) -> list[str]:
    return ["" if tag == "O" else tag[2:] for tag in tags]


def test_by_hand() -> None:
    """Ten words. On PER both say yes at three, one alone at one, the other alone at two: 7 of 10 agree, by chance 0.5."""
    first = ("B-PER", "I-PER", "O", "B-PER", "O", "O", "B-PER", "O", "O", "O")
    second = ("B-PER", "I-PER", "O", "B-PER", "B-PER", "O", "O", "B-PER", "O", "O")
    found = agreement([(first, second)])
    assert found.words == 10
    assert found.types == {"PER": pytest.approx((0.7 - (0.4 * 0.5 + 0.6 * 0.5)) / (1 - 0.5))}
    assert found.overall == found.types["PER"]  # there is no other type


def test_overall_is_of_all_types_by_hand() -> None:
    """Six words: agreed at three. One gave O, PER, LOC at 3, 2 and 1 words, the other at 2, 2 and 2: (6 + 4 + 2) / 36."""
    first = ("O", "O", "O", "B-PER", "B-PER", "B-LOC")
    second = ("O", "O", "B-LOC", "B-PER", "B-LOC", "B-PER")
    found = agreement([(first[:4], second[:4]), (first[4:], second[4:])])
    assert found.overall == pytest.approx((3 / 6 - 12 / 36) / (1 - 12 / 36))
    assert found.types["LOC"] == pytest.approx((3 / 6 - (1 * 2 + 5 * 4) / 36) / (1 - (1 * 2 + 5 * 4) / 36))


@pytest.mark.parametrize("wrong", [0.0, 0.05, 0.3, 1.0])
def test_it_is_what_scikit_learn_says(wrong: float) -> None:
    rng = random.Random(4)
    pairs: list[tuple[Tags, Tags]] = []
    tags = [sentence.tags or () for sentence in generate().pool[:100]]
    for mine in tags:
        other = list(mine)
        for word in range(len(other)):
            if rng.random() < wrong:
                other[word] = rng.choice(["O", "B-person", "B-place", "I-work"])
        pairs.append((mine, tuple(other)))
    found = agreement(pairs)
    one = [type_ for first, _ in pairs for type_ in types_of_words(first)]
    other_ = [type_ for _, second in pairs for type_ in types_of_words(second)]
    assert found.words == len(one)
    assert found.overall == pytest.approx(cohen_kappa_score(one, other_))
    assert set(found.types) == {*one, *other_} - {""}
    for type_, kappa in found.types.items():
        assert kappa == pytest.approx(cohen_kappa_score([t == type_ for t in one], [t == type_ for t in other_]))


def test_where_kappa_has_no_value() -> None:
    nothing = agreement([(("O", "O"), ("O", "O"))], ["PER"])
    assert nothing == (None, {"PER": None}, 2)
    every = agreement([(("B-PER", "I-PER"), ("B-PER", "B-PER"))])
    assert every == (None, {"PER": None}, 2)  # chance alone would agree
    assert agreement([]) == (None, {}, 0)
    one_alone = agreement([(("B-PER", "O"), ("O", "O"))])
    assert one_alone.types == {"PER": 0.0}
    assert math.isfinite(one_alone.overall or 0.0)


def test_a_type_may_be_called_o() -> None:
    found = agreement([(("B-O", "O", "O"), ("B-O", "O", "B-O"))])
    assert found.types == {"O": pytest.approx(cohen_kappa_score([1, 0, 0], [1, 0, 1]))}
    assert found.overall == found.types["O"]


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="sentence 2: 1 and 2 tags"):
        agreement([(("O",), ("O",)), (("O",), ("O", "O"))])
