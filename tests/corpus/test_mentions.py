from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.generated import generate
from sequst.corpus.mentions import Mention, Mentions, mentions_of
from sequst.corpus.sentence import Sentence
from sequst.corpus.tags import spans, violations

HERE = Sentence(("fly", "to", "New", "York", "with", "Ann"), ("O", "O", "B-LOC", "I-LOC", "O", "B-PER"), id=7)


def test_mentions_by_hand() -> None:
    assert mentions_of([HERE, Sentence(("hm",)), HERE]) == 2 * [Mention("LOC", ("New", "York")), Mention("PER", ("Ann",))]


def test_another_of_its_type_takes_the_place() -> None:
    known = Mentions([Mention("LOC", ("Rio",)), Mention("PER", ("Bo", "Li"))])
    assert known.swapped(HERE, 1.0, np.random.default_rng(0)) == Sentence(
        ("fly", "to", "Rio", "with", "Bo", "Li"), ("O", "O", "B-LOC", "O", "B-PER", "I-PER")
    )
    # of a type that nothing is known of, and where nothing is to be swapped, all stays, with its id
    assert Mentions([Mention("ORG", ("UN",))]).swapped(HERE, 1.0, np.random.default_rng(0)) is HERE
    assert known.swapped(HERE, 0.0, np.random.default_rng(0)) is HERE
    nothing = Sentence(("hello", "there"), ("O", "O"))
    assert known.swapped(nothing, 1.0, np.random.default_rng(0)) is nothing
    half = Mentions([Mention("PER", ("Bo", "Li"))]).swapped(HERE, 1.0, np.random.default_rng(0))
    assert (half.words, half.tags) == (("fly", "to", "New", "York", "with", "Bo", "Li"), (*(HERE.tags or ()), "I-PER"))


def test_drawn_by_weight() -> None:
    found = [Mention("X", ("often",), 3.0), Mention("X", ("never",), 0.0), Mention("X", ("rarely",), 1.0)]
    rng = np.random.default_rng(1)
    drawn = Counter(Mentions(found).draw("X", rng) for _ in range(4000))
    assert set(drawn) == {("often",), ("rarely",)}
    assert drawn["often",] / 4000 == pytest.approx(0.75, abs=0.03)
    assert Mentions(found).draw("Y", rng) is None
    assert Mentions([Mention("X", ("never",), 0.0)]).draw("X", rng) is None


@given(st.floats(0, 1), st.integers(0, 99))
def test_what_is_outside_of_entities_stays(share: float, seed: int) -> None:
    pool = generate().pool[:40]
    known = Mentions(mentions_of(pool))
    rng = np.random.default_rng(seed)
    for before in pool:
        after = known.swapped(before, share, rng)
        assert not violations(after.tags or (), "IOB2")
        assert [span.type for span in spans(after.tags or ())] == [span.type for span in spans(before.tags or ())]
        outside = [
            [word for word, tag in zip(each.words, each.tags or (), strict=True) if tag == "O"] for each in (before, after)
        ]
        assert outside[0] == outside[1]
