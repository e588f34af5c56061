from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.words import split_words


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna flew to Paris.", ["Anna", "flew", "to", "Paris", "."]),
        ("the U.S. army, e.g.", ["the", "U.S.", "army", ",", "e.g."]),
        ("3.5 or 1,000 at 12:30", ["3.5", "or", "1,000", "at", "12:30"]),
        ("3.5kg", ["3.5", "kg"]),
        ("Berlin's don't she’ll", ["Berlin", "'s", "don", "'t", "she", "’ll"]),
        ("London-based (UK)", ["London", "-", "based", "(", "UK", ")"]),
        ("東京に行く", ["東", "京", "に", "行", "く"]),
        ("किताब पढ़ना", ["किताब", "पढ़ना"]),
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("  two\tlines \u00a0", ["two", "lines"]),
        ("", []),
    ],
)
def test_the_rule(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text(max_size=60))
def test_words_and_white_space_give_the_text_back(text: str) -> None:
    at = 0
    for start, end in split_words(text):
        assert text[at:start].strip() == ""
        assert start < end
        assert not any(c.isspace() for c in text[start:end])
        at = end
    assert text[at:].strip() == ""
