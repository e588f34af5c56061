"""The one rule that cuts running text into words. Reading text, `text` + `spans`, and `predict` all share it.

1. White space separates.
2. A number keeps its inner points, commas and colons (3.5, 1,000, 12:30); an abbreviation of single letters keeps its points
   (U.S., e.g.).
3. An apostrophe with the short ending that follows it is a word ('s, 're, 've, 'll, 'd, 'm, 't).
4. A run of letters, digits, marks and underscores is a word; each Chinese character and each kana is one by itself.
5. Every other character is a word by itself.

The words and the white space between them give the text back: nothing is changed or dropped.
"""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(
    r"""
      \d+(?:[.,:]\d+)+                                # 3.5  1,000  12:30
    | (?:(?<!\w)[^\W\d_]\.){2,}                       # U.S.  e.g.
    | ['’](?:s|re|ve|ll|d|m|t)(?!\w)                  # Berlin 's
    | [\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]                            # kana and Chinese characters
    | [^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+                        # words
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)


def split_words(text: str) -> list[tuple[int, int]]:
    """(start, end) of every word of the text, in order."""
    pieces = [match.span() for match in _WORD.finditer(text)]
    return pieces if text.isascii() else _join_marks(text, pieces)


def _join_marks(text: str, pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Combining marks and joiners, which `re` does not count as word characters, belong to the word they touch."""
    joined: list[tuple[int, int]] = []
    for start, end in pieces:
        if joined and joined[-1][1] == start and _is_word_like(text[joined[-1][1] - 1]) and _is_word_like(text[start]):
            if _is_mark(text[start]) or _is_mark(text[start - 1]):
                joined[-1] = (joined[-1][0], end)
                continue
        joined.append((start, end))
    return joined


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M" or character in "\u200c\u200d"


def _is_word_like(character: str) -> bool:
    return character.isalnum() or _is_mark(character)
