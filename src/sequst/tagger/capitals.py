"""How words are written, for encoders that do not see it: counted in labelled sentences, and weighed when others are tagged.

An uncased encoder reads `Turkey` and `turkey` as one word, so capitals are evidence of their own: p(tag | text, way) is as
p(tag | text) times p(way | tag), the way in which the word is written, if among the words of a tag the way tells nothing of the
text. The second factor is counted in the labelled sentences, of words that begin a sentence and of others apart, for the first
have a capital anyway. Sentences without capitals, or of nothing else, and words without letters tell nothing.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sequst.tagger.windows import Splitter

_FORMS = ("CAPITALS", "Capital", "inCapital", "small")
WAYS = tuple(f"{place}{form}" for place in ("", "first ") for form in _FORMS)
"""Ways to write a word, by their number from 1 on; 0 is none that tells anything."""
SEEN_MORE = 2.0
"""So many words of other tags with the same letter (B, I, O) are counted among those of a tag, and so many of all words among
those of a letter."""
HALF = 0.5
"""Added to how often each way comes."""
_ENDS = frozenset(".!?")
_ASKED = 200
"""Words that tell whether an encoder sees capitals."""


def ways_of(words: Sequence[str]) -> list[int]:
    """How each word of some text is written, as a number."""
    letters = "".join(words)
    if letters == letters.lower() or letters == letters.upper():
        return [0] * len(words)
    ways, place = [], len(_FORMS)
    for word in words:
        form = _form(word)
        ways.append(form + place if form else 0)
        if word in _ENDS:
            place = len(_FORMS)
        elif form or any(map(str.isalpha, word)):  # quotes and numbers do not begin a sentence
            place = 0
    return ways


@functools.lru_cache(maxsize=1 << 16)
def _form(word: str) -> int:
    """By its number from 1 on; 0 of what has no letters that could be large or small."""
    capitals = [not letter.islower() for letter in word if letter.islower() or letter.isupper() or letter.istitle()]
    if not capitals:
        return 0
    if all(capitals) and len(capitals) > 1:
        return 1
    return 2 if capitals[0] else 3 if any(capitals) else 4


def sees_capitals(splitter: Splitter, sentences: Iterable[Sequence[str]]) -> bool:
    """Whether some word of these is another to the encoder when it is written small."""
    large = itertools.islice((word for words in sentences for word in words if word != word.lower()), _ASKED)
    pairs = [each for word in large for each in ((word,), (word.lower(),))]
    seen = [(window.ids, window.spelling) for window in splitter.windows(pairs)]
    return seen[::2] != seen[1::2]


def count_capitals(sentences: Iterable[tuple[Sequence[str], Sequence[str]]], labels: Sequence[str]) -> dict[str, list[float]]:
    """{tag: log of how often its words are written in each way, over how often words are}, from words and their tags; nothing
    where no way of writing tells anything.

    A few dozen sentences say little of one tag: each is drawn towards others that have its letter, and these towards all words.
    """
    counts = Counter((tag, way) for words, tags in sentences for tag, way in zip(tags, ways_of(words), strict=True) if way > 0)
    if not counts:
        return {}
    of_tag = np.array([[counts[label, way] for way in range(1, len(WAYS) + 1)] for label in labels], dtype=np.float64)
    letters = np.array([label[0] for label in labels])
    found = np.zeros_like(of_tag)
    for place in (slice(0, len(_FORMS)), slice(len(_FORMS), len(WAYS))):
        ways = of_tag[:, place]  # (C, forms)
        usual = ways.sum(0) + HALF
        usual /= usual.sum()
        of_letter = np.stack([ways[letters == letter].sum(0) for letter in letters])
        towards = _drawn(of_letter - ways, usual)
        scores = np.log(_drawn(ways, towards) / usual)
        found[:, place] = np.where(ways.sum(0) > 0, scores, 0.0)  # a way that no word has tells nothing
    return {label: scores.tolist() for label, scores in zip(labels, found, strict=True)}


def _drawn(counts: NDArray[np.float64], towards: NDArray[np.float64]) -> NDArray[np.float64]:
    """(C, forms): shares, with `SEEN_MORE` words of other shares among those that were counted."""
    shares: NDArray[np.float64] = (counts + SEEN_MORE * towards) / (counts.sum(-1, keepdims=True) + SEEN_MORE)
    return shares


def capital_scores(found: Mapping[str, Sequence[float]], labels: Sequence[str]) -> NDArray[np.float64]:
    """(1 + ways, C): what is added to the score of every tag of a word that is written so."""
    nothing = [0.0] * len(WAYS)
    return np.array([[0.0, *found.get(label, nothing)] for label in labels]).T


def checked(found: Any) -> dict[str, list[float]]:
    """What `count_capitals` gave, read from a file; a ValueError for anything else."""
    lists: list[Any] = list(found.values()) if isinstance(found, Mapping) else [None]
    for scores in lists:
        known = isinstance(scores, list) and len(scores) == len(WAYS)
        if not known or not all(isinstance(score, int | float) and math.isfinite(score) for score in scores):
            raise ValueError("damaged or not written by sequst")
    return {label: [float(score) for score in scores] for label, scores in found.items()}
