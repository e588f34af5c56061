from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.tags import Span, detect_scheme, is_tag, spans, tags_of, to_iob2, violations

IOB2_TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def test_spans_by_hand() -> None:
    assert spans(["B-X", "I-X", "O", "B-X", "B-X"]) == [Span("X", 0, 2), Span("X", 3, 4), Span("X", 4, 5)]
    assert spans([]) == []


def test_an_inside_tag_that_continues_nothing_begins_an_entity() -> None:
    assert spans(["I-X", "I-X", "I-Y", "O", "I-Y"]) == [Span("X", 0, 2), Span("Y", 2, 3), Span("Y", 4, 5)]


def test_spans_equal_seqevals_on_every_short_sequence() -> None:
    from seqeval.metrics.sequence_labeling import get_entities

    for length in range(1, 6):
        for tags in itertools.product(IOB2_TAGS, repeat=length):
            expected = {(kind, start, end + 1) for kind, start, end in get_entities(list(tags))}
            assert {tuple(span) for span in spans(tags)} == expected, tags


@given(st.lists(st.sampled_from(IOB2_TAGS), max_size=12))
def test_tags_of_spans_have_the_same_spans(tags: list[str]) -> None:
    again = tags_of(spans(tags), len(tags))
    assert spans(again) == spans(tags)
    assert violations(again, "IOB2") == []


CASES = {
    # the same entities: X over words 0-1, X over 2, Y over 4, nothing at 3
    "IOB1": ["I-X", "I-X", "B-X", "O", "I-Y"],
    "IOB2": ["B-X", "I-X", "B-X", "O", "B-Y"],
    "BIOES": ["B-X", "E-X", "S-X", "O", "S-Y"],
    "BILOU": ["B-X", "L-X", "U-X", "O", "U-Y"],
}


@pytest.mark.parametrize("scheme", CASES)
def test_every_scheme_is_recognised_and_turned(scheme: str) -> None:
    tags = CASES[scheme]
    assert detect_scheme([["O"], tags]) == scheme
    assert violations(tags, scheme) == []  # type: ignore[arg-type]
    assert list(to_iob2(tags, scheme)) == CASES["IOB2"]  # type: ignore[arg-type]


def test_iob2_without_touching_entities_is_not_taken_for_iob1() -> None:
    assert detect_scheme([["B-X", "I-X", "O"]]) == "IOB2"
    assert detect_scheme([["O", "O"]]) == "IOB2"
    assert detect_scheme([["I-X", "I-X", "O"]]) == "IOB1"


def test_a_mixture_is_iob2_with_violations() -> None:
    sequences = [["B-X", "O"], ["O", "I-X"]]
    assert detect_scheme(sequences) == "IOB2"
    assert violations(sequences[0], "IOB2") == []
    [(word, found, expected)] = violations(sequences[1], "IOB2")
    assert word == 1
    assert "I-X" in found
    assert "B-X" in expected


@pytest.mark.parametrize(
    ("tags", "word"),
    [
        (["B-X", "O"], 1),  # not closed
        (["B-X"], 0),  # not closed at the end
        (["E-X"], 0),  # never begun
        (["B-X", "E-Y"], 1),  # closed as another type
        (["I-X", "E-X"], 0),
        (["S-X", "L-X"], 1),  # a letter of the other scheme
    ],
)
def test_broken_bioes_is_found(tags: list[str], word: int) -> None:
    assert violations(tags, "BIOES")[0][0] == word


def test_what_a_tag_is() -> None:
    assert all(map(is_tag, ("O", "B-a.b", "I-PER", "E-X", "S-X", "L-X", "U-X")))
    assert not any(map(is_tag, ("", "I-", "X-PER", "b-PER", "B-a b", "PER", "o")))
