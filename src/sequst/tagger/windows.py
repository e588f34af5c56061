"""Words -> sub-words -> windows that fit the encoder.

The first sub-word speaks for its word. A sentence that is longer than the limit is cut at words into overlapping windows; a
word in the overlap belongs to the window in which it stands further from the edge, so that every word gets exactly one tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sequst.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one sentence as the encoder sees it."""

    sentence: int
    """Which of the encoded sentences it is of."""
    first: int
    """Its first word, counted in the sentence."""
    ids: list[int]
    """Sub-words, special tokens included."""
    heads: list[int]
    """For each of its words the place of the first sub-word in `ids`."""
    owned: tuple[int, int]
    """The words, counted in the window (end exclusive), whose tags this window decides."""
    spelling: list[list[int]] | None = None
    """The characters of each of its words, where the encoder looks at them."""

    def of(self, values: Sequence[list[T]]) -> list[T]:
        """Those of its words, from values of the words of every sentence."""
        return values[self.sentence][self.first : self.first + len(self.heads)]


class Splitter:
    """Turns sentences into windows of at most `max_length` sub-words, `overlap` of which repeat the window before."""

    def __init__(
        self, max_length: int, overlap: int, prefix: Sequence[int] = (), suffix: Sequence[int] = (), unknown: int = 0
    ) -> None:
        self._prefix, self._suffix, self._unknown = list(prefix), list(suffix), unknown
        self.room = max_length - len(self._prefix) - len(self._suffix)
        if self.room < 4 or not 0 <= overlap <= self.room // 2:
            raise UsageError(
                f"max_length {max_length} with overlap {overlap} leaves no room for words; "
                f"use a max_length of 8 or more and an overlap of at most {max(0, self.room // 2)}"
            )
        self.overlap = overlap

    @property
    def closing(self) -> int:
        """Special tokens that end a window."""
        return len(self._suffix)

    def subwords(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """The sub-words of every word of every sentence, none for a word of which there are none."""
        raise NotImplementedError

    def windows(self, sentences: Sequence[Sequence[str]]) -> list[Window]:
        """The windows of all sentences, in order."""
        return [
            window
            for index, pieces in enumerate(self.subwords(sentences))
            for window in self._cut(index, [self._speakable(piece) for piece in pieces])
        ]

    def _speakable(self, pieces: list[int]) -> list[int]:
        """At least the unknown token, and never so long that one word leaves no room for its neighbours."""
        return pieces[: self.room // 2] or [self._unknown]

    def _cut(self, sentence: int, words: list[list[int]]) -> list[Window]:
        lengths = [len(piece) for piece in words]
        stretches = self._stretches(lengths) if sum(lengths) > self.room or not lengths else [(0, len(lengths))]
        windows = []
        for i, (start, end) in enumerate(stretches):
            own_start = start if i == 0 else (start + stretches[i - 1][1] + 1) // 2
            own_end = end if i + 1 == len(stretches) else (stretches[i + 1][0] + end + 1) // 2
            ids, heads = list(self._prefix), []
            for piece in words[start:end]:
                heads.append(len(ids))
                ids += piece
            ids += self._suffix
            windows.append(Window(sentence, start, ids, heads, (own_start - start, own_end - start)))
        return windows

    def _stretches(self, lengths: list[int]) -> list[tuple[int, int]]:
        """Word ranges that fit, each beginning with up to `overlap` sub-words of the one before."""
        stretches: list[tuple[int, int]] = []
        start = 0
        while start < len(lengths):
            end, used = start, 0
            while end < len(lengths) and used + lengths[end] <= self.room:
                used += lengths[end]
                end += 1
            stretches.append((start, end))
            if end == len(lengths):
                break
            start, back = end, 0
            while start - 1 > stretches[-1][0] and back + lengths[start - 1] <= self.overlap:
                start -= 1
                back += lengths[start]
        return stretches


_REMEMBERED = 200_000
"""Words whose sub-words are remembered before all are forgotten."""


class SpecialTokens(NamedTuple):
    """Special tokens before and after a sentence, and the token for words without sub-words."""

    prefix: list[int]
    suffix: list[int]
    unknown: int

    @classmethod
    def of(cls, tokenizer: Any) -> SpecialTokens:
        """Those of a tokenizer of transformers."""
        plain = tokenizer(["a"], is_split_into_words=True, add_special_tokens=False)["input_ids"]
        full = tokenizer(["a"], is_split_into_words=True)["input_ids"]
        at = next(i for i in range(len(full)) if full[i : i + len(plain)] == plain)
        candidates = (tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.pad_token_id, 0)
        return cls(full[:at], full[at + len(plain) :], next(i for i in candidates if i is not None))


class BackendSplitter(Splitter):
    """The sub-words of a tokenizer of the library `tokenizers`, which is what cuts words behind every fast tokenizer."""

    def __init__(self, backend: Any, special: SpecialTokens, max_length: int, overlap: int) -> None:
        self.backend, self.special = backend, special
        self._known: dict[str, list[int]] = {}
        super().__init__(max_length, overlap, *special)

    def subwords(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """As the tokenizer has them; of some words, such as those of control characters, it makes nothing.

        It cuts every word by itself, so what it made of a word is remembered: text repeats its words, and rounds their text.
        """
        if len(self._known) > _REMEMBERED:
            self._known = {}
        known = self._known  # another thread may begin anew meanwhile; what is in it is whole
        new = list({word for words in sentences for word in words if word not in known})
        if new:
            encoding = self.backend.encode(new, is_pretokenized=True, add_special_tokens=False)
            found: dict[str, list[int]] = {word: [] for word in new}
            for word, id_ in zip(encoding.word_ids, encoding.ids, strict=True):
                if word is not None:
                    found[new[word]].append(id_)
            known.update(found)
        return [[known[word] for word in words] for words in sentences]


class SubwordSplitter(BackendSplitter):
    """The sub-words of a fast tokenizer of transformers, with the special tokens that it puts around a sentence."""

    def __init__(self, tokenizer: Any, max_length: int, overlap: int) -> None:
        self.tokenizer = tokenizer
        super().__init__(tokenizer.backend_tokenizer, SpecialTokens.of(tokenizer), max_length, overlap)
