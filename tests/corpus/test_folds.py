from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.folds import fold_of
from sequst.corpus.generated import generate
from sequst.corpus.sentence import Sentence
from sequst.errors import SequstError, UsageError

TAGS = ("O", "B-a", "B-b", "B-c")


def sentence(word: str, *tags: str) -> Sentence:
    return Sentence((word, *map(str, range(len(tags)))), ("O", *tags))


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(TAGS)), min_size=1), st.integers(2, 5), st.integers(0, 3))
def test_copies_stay_together_and_no_fold_is_empty(drawn: list[tuple[int, str]], folds: int, seed: int) -> None:
    sentences = [Sentence((f"w{word}",), (tag,)) for word, tag in drawn]
    if len({each.words for each in sentences}) < folds:
        with pytest.raises(SequstError, match="too few for"):
            fold_of(sentences, folds, seed)
        return
    found = fold_of(sentences, folds, seed)
    assert set(found) == set(range(folds))
    assert len(set(zip([each.words for each in sentences], found, strict=True))) == len({each.words for each in sentences})
    assert found == fold_of(sentences, folds, seed)


def test_every_type_is_spread() -> None:
    rare = [sentence(f"r{i}", "B-rare") for i in range(5)]
    often = [sentence(f"o{i}", "B-often") for i in range(40)]
    none = [sentence(f"n{i}") for i in range(30)]
    found = fold_of([*none, *often, *rare], 5, 7)
    assert Counter(found[70:]) == dict.fromkeys(range(5), 1)
    assert Counter(found[30:70]) == dict.fromkeys(range(5), 8)
    assert Counter(found[:30]) == dict.fromkeys(range(5), 6)


def test_the_seed_decides_and_a_corpus_is_even() -> None:
    pool = generate().pool
    first, second = fold_of(pool, 5, 1), fold_of(pool, 5, 2)
    assert first != second
    for type_ in ("person", "work", "date"):
        mentions = Counter(
            fold for fold, each in zip(first, pool, strict=True) for tag in each.tags or () if tag == f"B-{type_}"
        )
        assert max(mentions.values()) <= 1.25 * min(mentions.values())


def test_one_fold_is_none() -> None:
    with pytest.raises(UsageError, match="1 folds: at least 2"):
        fold_of(generate().pool, 1, 1)
