from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sequst.corpus.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Ada came. Bob left!", ["Ada came.", "Bob left!"]),
        ("Dr. Brown met J. R. Smith in St. Gallen. He smiled.", ["Dr. Brown met J. R. Smith in St. Gallen.", "He smiled."]),
        ("It cost 3.50 dollars, e.g. in Oslo.", ["It cost 3.50 dollars, e.g. in Oslo."]),
        ('"Is it late?" "No." She slept.', ['"Is it late?"', '"No."', "She slept."]),
        ("They live in the U.S. Now they move.", ["They live in the U.S. Now they move."]),  # an abbreviation: no cut is safer
        ("No. 5 is it. 7 are not.", ["No. 5 is it.", "7 are not."]),
        ("她来了。他走了！为什么？", ["她来了。", "他走了！", "为什么？"]),
        ("Élan est là. Où va-t-il ?  Ça va.", ["Élan est là.", "Où va-t-il ?", "Ça va."]),
        ("one line without an end", ["one line without an end"]),
        ("  ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet="aAB.!? \n\"'é。", max_size=60))
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())
