from __future__ import annotations

from pathlib import Path

import pytest

from sequst.errors import SequstError
from sequst.tagger.encoders.vocabulary import UNKNOWN, UNKNOWN_CHARACTER, Vocabulary, WordSplitter


def test_words_of_a_text_are_known_in_lower_case() -> None:
    vocabulary = Vocabulary.of([["The", "cat"], ["the", "Dog"]])
    assert vocabulary.words == ["cat", "dog", "the"]
    assert [vocabulary.id(word) for word in ("the", "THE", "cat", "bird")] == [3, 3, 1, UNKNOWN]


def test_a_word_is_looked_for_as_it_is_before_in_lower_case() -> None:
    vocabulary = Vocabulary.of([["x"]], known=["us", "US"])
    assert [vocabulary.id(word) for word in ("US", "us", "Us")] == [2, 1, 1]


def test_spelling() -> None:
    vocabulary = Vocabulary([], ["a", "b"])
    assert vocabulary.spelling("abz") == [2, 3, UNKNOWN_CHARACTER]
    assert vocabulary.spelling("a" * 40 + "b" * 40) == [2] * 12 + [3] * 12  # both ends of a long word


def test_windows_carry_the_characters_of_their_own_words() -> None:
    vocabulary = Vocabulary.of([["a", "b", "c", "d", "e", "f", "g", "h"]])
    splitter = WordSplitter(vocabulary, max_length=6, overlap=2)
    windows = splitter.windows([["x"], list("abcdefgh")])
    assert [(w.sentence, w.first, len(w.heads)) for w in windows] == [(0, 0, 1), (1, 0, 6), (1, 4, 4)]
    assert windows[0].ids == [UNKNOWN]
    for window in windows[1:]:
        assert window.spelling is not None
        letters = "abcdefgh"[window.first : window.first + len(window.heads)]
        assert window.spelling == [vocabulary.spelling(letter) for letter in letters]
        assert window.ids == [vocabulary.id(letter) for letter in letters]
        assert window.heads == list(range(len(letters)))


def test_saved_and_loaded(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of([["Köln", "東京", "\u2028"]])
    vocabulary.save(tmp_path / "v.json")
    again = Vocabulary.load(tmp_path / "v.json")
    assert (again.words, again.characters) == (vocabulary.words, vocabulary.characters)


@pytest.mark.parametrize(
    "text", ["[]", '{"words": ["a"]}', '{"words": ["a", "a"], "characters": []}', '{"words": [1], "characters": []}', "{"]
)
def test_a_file_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(SequstError, match=r"v\.json"):
        Vocabulary.load(tmp_path / "v.json")
