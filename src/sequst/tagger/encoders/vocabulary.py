"""The words and characters that a BiLSTM knows, and sentences as windows of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sequst.errors import SequstError
from sequst.files import write_json
from sequst.inputs import read_json
from sequst.tagger.windows import Splitter, Window

UNKNOWN = 0
"""The id of a word that is not in the vocabulary; the pad id of words and of characters, too."""
UNKNOWN_CHARACTER = 1
LONGEST = 24
"""Characters of a word that are looked at: of a longer one the first and the last half of as many."""


class Vocabulary:
    """Words have the ids from 1 on, characters those from 2 on. A word that is not there is looked for in lower case."""

    def __init__(self, words: Sequence[str], characters: Sequence[str]) -> None:
        self.words, self.characters = list(words), list(characters)
        self._ids = {word: i for i, word in enumerate(self.words, UNKNOWN + 1)}
        self._characters = {character: i for i, character in enumerate(self.characters, UNKNOWN_CHARACTER + 1)}

    @classmethod
    def of(cls, text: Iterable[Sequence[str]], known: Sequence[str] = ()) -> Vocabulary:
        """The characters of a text, and its words in lower case; or the known words, where there are any, in their place."""
        words: set[str] = set()
        characters: set[str] = set()
        for sentence in text:
            characters.update(*sentence)
            words.update(map(str.lower, sentence))
        return cls(known or sorted(words), sorted(characters))

    def id(self, word: str) -> int:
        return self._ids.get(word) or self._ids.get(word.lower(), UNKNOWN)

    def spelling(self, word: str) -> list[int]:
        half = LONGEST // 2
        shown = word if len(word) <= LONGEST else word[:half] + word[-half:]
        return [self._characters.get(character, UNKNOWN_CHARACTER) for character in shown] or [UNKNOWN_CHARACTER]

    def save(self, path: Path) -> None:
        write_json(path, {"words": self.words, "characters": self.characters})

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        found: Any = read_json(path)
        if not isinstance(found, dict) or not all(_is_texts(found.get(name)) for name in ("words", "characters")):
            raise SequstError(f"{path}: damaged or not written by sequst; expected two lists of texts, words and characters")
        if any(len(character) != 1 for character in found["characters"]):
            raise SequstError(f"{path}: damaged or not written by sequst; its characters must be single ones")
        return cls(found["words"], found["characters"])


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)


class WordSplitter(Splitter):
    """Every word is one input, and comes with its characters."""

    def __init__(self, vocabulary: Vocabulary, max_length: int, overlap: int) -> None:
        super().__init__(max_length, overlap)
        self.vocabulary = vocabulary

    def subwords(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        return [[[self.vocabulary.id(word)] for word in words] for words in sentences]

    def windows(self, sentences: Sequence[Sequence[str]]) -> list[Window]:
        spelt = [[self.vocabulary.spelling(word) for word in words] for words in sentences]
        return [dataclasses.replace(window, spelling=window.of(spelt)) for window in super().windows(sentences)]
